package verify

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// vector is one fault, or one thing that must not be taken for a fault.
type vector struct {
	name    string
	alter   func(*fixture)
	disk    func(t *testing.T, root string) // after writing
	profile func() profiles.Profile         // toyProfile where nil
	fails   []string                        // gates, in order; none: the submission passes
	names   string                          // what a finding's path, tensor or text must hold
	warns   string                          // gate that must have a warning which names it
}

func (v vector) run(t *testing.T) {
	f := newFixture()
	if v.alter != nil {
		v.alter(f)
	}
	root := f.write(t)
	if v.disk != nil {
		v.disk(t, root)
	}
	profile := toyProfile()
	if v.profile != nil {
		profile = v.profile()
	}
	r := run(t, root, Options{Profile: profile, Workers: 2})
	if got := r.Failed(); !slices.Equal(got, v.fails) {
		t.Fatalf("gates %v fail, want %v\n%s", got, v.fails, text(t, r))
	}
	if len(v.fails) == 0 && r.Err() != nil {
		t.Fatalf("%v\n%s", r.Err(), text(t, r))
	}
	for _, gate := range v.fails {
		v.look(t, r, gate, report.Error)
	}
	if v.warns != "" {
		v.look(t, r, v.warns, report.Warning)
	}
}

// look demands a finding of the level that names the fault's place.
func (v vector) look(t *testing.T, r *report.Report, gate string, level report.Level) {
	g, _ := r.Gate(gate)
	for _, f := range g.Findings {
		if f.Level == level && strings.Contains(f.Path+" "+f.Tensor+" "+f.Problem+" "+f.Got, v.names) {
			return
		}
	}
	t.Errorf("gate %s has no %s that names %q\n%s", gate, level, v.names, text(t, r))
}

func runVectors(t *testing.T, vectors []vector) {
	for _, v := range vectors {
		t.Run(v.name, v.run)
	}
}

func fails(gates ...string) []string { return gates }

// bad adds a third shard with any header.
func bad(header string, data int) func(*fixture) {
	return func(f *fixture) { f.files["weights/bad.safetensors"] = rawShard(header, data) }
}

const oneTensor = `{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`

func TestCleanVectors(t *testing.T) {
	runVectors(t, []vector{
		{name: "clean", profile: toyProfile},
		{name: "clean without a base", profile: withoutBase},
		{name: "clean under strict counting", profile: func() profiles.Profile { return strict(toyProfile()) }},
		{name: "clean third shard", alter: bad(oneTensor, 4), warns: "coverage", names: "weights/bad.safetensors x"},
		{
			name: "names that differ in case", warns: "safetensors", names: "weights/bad.safetensors x",
			alter: bad(`{"X":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"x":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}`, 4),
		},
		{
			name: "names that differ in Unicode form", warns: "safetensors", names: "weights/bad.safetensors mod\u00e9l",
			alter: bad("{\"mode\u0301l\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"mod\u00e9l\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}", 4),
		},
	})
}

func TestFileVectors(t *testing.T) {
	put := func(name string, data []byte) func(*fixture) {
		return func(f *fixture) { f.files[name] = data }
	}
	random := random("entropy")
	noise := make([]byte, 2<<20)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	words := bytes.Repeat([]byte("def answer(question): return model(question)\n"), 40_000)
	runVectors(t, []vector{
		{name: "A18 weights by extension", alter: put("weights/model.gguf", []byte("x")), fails: fails("files"), names: "weights/model.gguf"},
		{name: "large text", alter: put("code/server.py", words)},
		{name: "A60 weights as text in a program", alter: put("code/server.py", []byte(base64.StdEncoding.EncodeToString(noise))), fails: fails("files"), names: "code/server.py"},
		{name: "A60 weights as hexadecimal digits", alter: put("code/w.json", []byte(`"`+hex.EncodeToString(noise)+`"`)), fails: fails("files"), names: "code/w.json"},
		{name: "a megabyte of hexadecimal digits", alter: put("code/w.json", []byte(`"`+hex.EncodeToString(noise[:1<<19])+`"`))},
		{name: "A60 compiled code larger than a library of helpers", alter: put("code/lib.so", append([]byte("\x7fELF"), noise...)), fails: fails("files"), names: "code/lib.so"},
		{name: "small compiled code", alter: put("code/lib.so", append([]byte("\x7fELF"), noise[:1000]...)), warns: "files", names: "code/lib.so"},
		{name: "A60 weights under a tokenizer's name", alter: put("weights/tokenizer.model", append([]byte("x"), noise...)), fails: fails("files"), names: "weights/tokenizer.model"},
		{name: "large tokenizer", alter: put("weights/tokenizer.model", append([]byte("\n\x0e"), noise...))},
		{name: "A60 large file of no known type", alter: put("code/blob", noise), fails: fails("files"), names: "code/blob"},
		{name: "small file of no known type", alter: put("code/blob", noise[:1000])},
		{name: "wheel that is cut off", alter: put("wheels/a-1-py3-none-any.whl", []byte("PK\x03\x04")), fails: fails("files"), names: "wheels/a-1-py3-none-any.whl"},
		{name: "required file is missing", alter: func(f *fixture) { delete(f.files, "DATA.md") }, fails: fails("files"), names: "DATA.md"},
		{name: "required file is empty", alter: put("DATA.md", nil), fails: fails("files"), names: "DATA.md"},
		{name: "too large", profile: func() profiles.Profile { p := toyProfile(); p.MaxBytes = 1000; return p }, fails: fails("size"), names: "too large"},
		{name: "inventory lists a file that is gone", fails: fails("declared"), names: "notes.md", alter: put("notes.md", []byte("x")),
			disk: func(t *testing.T, root string) {
				if err := os.Remove(filepath.Join(root, "notes.md")); err != nil {
					t.Fatal(err)
				}
			}},
		{name: "file that the inventory does not list", disk: func(t *testing.T, root string) {
			if err := os.WriteFile(filepath.Join(root, "extra.txt"), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, fails: fails("declared"), names: "extra.txt"},
		{name: "inventory has another digest", disk: func(t *testing.T, root string) {
			if err := os.WriteFile(filepath.Join(root, "DATA.md"), []byte("No data was USED.\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, fails: fails("declared"), names: "DATA.md"},
		{name: "inventory has another mode", disk: func(t *testing.T, root string) {
			if err := os.Chmod(filepath.Join(root, "DATA.md"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, fails: fails("declared"), names: "DATA.md"},
		{name: "another revision is declared", alter: func(f *fixture) {
			f.files[architecturePath] = bytes.ReplaceAll(f.files[architecturePath], []byte("abab"), []byte("cdcd"))
		}, fails: fails("declared"), names: architecturePath},
		{name: "other key names", alter: put(startingPath, []byte(`{"base_model":"example/toy@`+strings.Repeat("ab", 20)+`"}`))},
		{name: "another base in the quantization manifest", alter: func(f *fixture) { other := "example/other"; f.quant.BaseModel = &other },
			fails: fails("declared"), names: "example/other"},
		{name: "contract of another shape", alter: func(f *fixture) {
			contract := toyModel().Contract()
			contract.Tensors[norm] = manifest.ContractTensor{DType: "BF16", Shape: []int64{255}, Role: manifest.RoleBackbone}
			f.files[backbonePath], _ = contract.Encode()
		}, fails: fails("declared"), names: norm},
		{name: "declaration with a key twice", alter: put(architecturePath, []byte(`{"a":1,"a":2}`)), fails: fails("declared"), names: architecturePath},
	})
}

func TestIndexVectors(t *testing.T) {
	index := func(change func(map[string]string)) func(*fixture) {
		return func(f *fixture) {
			weightMap := f.index()
			change(weightMap)
			f.addIndex(weightMap)
		}
	}
	runVectors(t, []vector{
		{name: "clean index", alter: index(func(map[string]string) {})},
		{name: "no index and no quantization manifest", profile: func() profiles.Profile { p := plainProfile(); return p },
			alter: func(f *fixture) {
				plain(f)
				f.shards["weights/b.safetensors"] = map[string]*stored{norm: f.shards[floatShard][norm]}
				delete(f.shards[floatShard], norm)
			},
			fails: fails("index"), names: "weights/model.safetensors.index.json"},
	})
}

// plain turns the fixture into a plain checkpoint of BF16 tensors.
func plain(f *fixture) {
	for _, name := range f.quant.Names() {
		if entry := f.quant.Tensors[name]; entry.Codes != nil {
			f.float(name, safetensors.BF16, entry.Shape)
		}
	}
	delete(f.shards, ternaryShard)
	f.noQuantization = true
}

func plainProfile() profiles.Profile {
	p := toyProfile()
	p.Ternary = nil
	p.Required = slices.DeleteFunc(p.Required, func(r profiles.Required) bool { return r.Path == "quantization_manifest.json" })
	return p
}

func TestCoverageVectors(t *testing.T) {
	strictToy := func() profiles.Profile { return strict(toyProfile()) }
	extra := func(f *fixture) {
		f.shards[floatShard]["side.weight"] = &stored{safetensors.BF16, []int64{2, 2}, make([]byte, 8)}
	}
	head := func(change byte) func(*fixture) {
		return func(f *fixture) {
			copied := *f.shards[floatShard][embed]
			copied.data = slices.Clone(copied.data)
			copied.data[0] ^= change
			f.shards[floatShard]["lm_head.weight"] = &copied
			f.quant.Tensors["lm_head.weight"] = manifest.Quantity{Kind: manifest.KindFloat, Shape: copied.shape, File: floatShard, Tensor: "lm_head.weight"}
		}
	}
	rename := func(from, to string) func(*fixture) {
		return func(f *fixture) {
			f.quant.Tensors[to] = f.quant.Tensors[from]
			delete(f.quant.Tensors, from)
		}
	}
	runVectors(t, []vector{
		{name: "plain checkpoint", alter: plain, profile: plainProfile},
		{name: "plain checkpoint under a ternary rule", alter: plain, fails: fails("files", "ternary", "stored"), names: "quantization_manifest.json"},
		{name: "plain checkpoint with NaN", profile: plainProfile, fails: fails("coverage"), names: norm, alter: func(f *fixture) {
			plain(f)
			f.shards[floatShard][norm].set16(7, 0x7fc1)
		}},
		{name: "block FP8", alter: blockFP8, profile: plainProfile},
		{name: "FP8 without its scales", profile: plainProfile, fails: fails("coverage"), names: gate0, alter: func(f *fixture) {
			blockFP8(f)
			delete(f.shards[floatShard], gate0+"_scale_inv")
		}},
		{name: "FP8 with scales for other blocks", profile: plainProfile, fails: fails("coverage"), names: gate0 + "_scale_inv", alter: func(f *fixture) {
			blockFP8(f)
			f.float(gate0+"_scale_inv", safetensors.BF16, []int64{1, 2})
		}},
		{name: "scales of a tensor that is not FP8", profile: plainProfile, fails: fails("coverage"), names: up1 + "_scale_inv", alter: func(f *fixture) {
			blockFP8(f)
			f.float(up1+"_scale_inv", safetensors.BF16, []int64{2, 2})
		}},
		{name: "NaN in FP8", profile: plainProfile, fails: fails("coverage"), names: gate0, alter: func(f *fixture) {
			blockFP8(f)
			f.shards[floatShard][gate0].data[9] = 0xff
		}},
		{name: "missing layer tensor", profile: withoutBase, fails: fails("coverage"), names: gate0, alter: func(f *fixture) {
			delete(f.quant.Tensors, gate0)
			delete(f.shards[ternaryShard], gate0+".codes")
			delete(f.shards[ternaryShard], gate0+".scales")
		}},
		{name: "stored tensor is missing", fails: fails("coverage"), names: gate0, alter: func(f *fixture) { delete(f.shards[ternaryShard], gate0+".scales") }},
		{name: "shard is missing", fails: fails("coverage"), names: "gone.safetensors", alter: func(f *fixture) {
			f.edit(norm, func(e *manifest.Quantity) { e.File = "gone.safetensors" })
		}},
		{name: "two quantization manifests", fails: fails("declared"), names: "weights/quantization_manifest.json", alter: func(f *fixture) {
			f.files["weights/quantization_manifest.json"], _ = f.quant.Encode()
		}},
		{name: "plain tensor in two folders", profile: plainProfile, fails: fails("coverage"), names: norm, alter: func(f *fixture) {
			plain(f)
			f.shards["more/b.safetensors"] = map[string]*stored{norm: f.shards[floatShard][norm]}
			f.files["more/config.json"] = mustJSON(f.config)
		}},
		{name: "files named from the shards' folder", alter: func(f *fixture) {
			f.edit(norm, func(e *manifest.Quantity) { e.File = "float-00001.safetensors" })
		}},
		{name: "file name that stands for two files", fails: fails("coverage"), names: "float-00001.safetensors", alter: func(f *fixture) {
			f.edit(norm, func(e *manifest.Quantity) { e.File = "float-00001.safetensors" })
			f.files["float-00001.safetensors"] = rawShard(oneTensor, 4)
			f.files["config.json"] = mustJSON(f.config)
		}},
		{name: "A24 codes counted twice", fails: fails("coverage"), names: up1, alter: func(f *fixture) {
			codes := *f.quant.Tensors[gate0].Codes
			f.edit(up1, func(e *manifest.Quantity) { e.Codes = &codes })
			delete(f.shards[ternaryShard], up1+".codes")
		}},
		{name: "A26 backbone linear named as vision", alter: rename(gate0, "model.visual.blocks.9.weight"), fails: fails("coverage"), names: gate0},
		{name: "A26 backbone linear named as vision, no base", alter: rename(gate0, "model.visual.blocks.9.weight"), profile: withoutBase, fails: fails("coverage"), names: gate0},
		{name: "A26 head inside a layer", alter: rename(embed, "model.layers.0.embed_tokens.weight"), fails: fails("coverage"), names: embed},
		{name: "A55 extra tensor", alter: extra, warns: "coverage", names: "side.weight"},
		{name: "A55 extra tensor, strict", alter: extra, profile: strictToy, fails: fails("coverage"), names: "side.weight"},
		{name: "A55 extra tensor with an entry", fails: fails("coverage"), names: "side.weight", alter: func(f *fixture) {
			f.float("side.weight", safetensors.BF16, []int64{2, 2})
		}},
		{name: "A56 low-rank side path, no base", profile: withoutBase, fails: fails("coverage"), names: gate0 + ".lora_a", alter: func(f *fixture) {
			f.float(gate0+".lora_a", safetensors.BF16, []int64{4, 256})
		}},
		{name: "A57 one vision tensor of many", fails: fails("coverage"), names: "model.visual.", alter: func(f *fixture) {
			f.float("model.visual.patch_embed.proj.bias", safetensors.BF16, []int64{16})
		}},
		{name: "all prediction tensors", alter: addRole(manifest.RoleMTP), warns: "coverage", names: "unchanged cannot be shown"},
		{name: "prediction tensor of a wider type", fails: fails("coverage"), names: "mtp.norm.weight has another type", alter: func(f *fixture) {
			addRole(manifest.RoleMTP)(f)
			widen(f.shards[floatShard]["mtp.norm.weight"])
		}},
		{name: "embedding of a wider type", alter: func(f *fixture) { widen(f.shards[floatShard][embed]) }, fails: fails("coverage"), names: embed + " is stored in a wider type"},
		{name: "untied head of a wider type", fails: fails("coverage"), names: "lm_head.weight is stored in a wider type", alter: func(f *fixture) {
			head(1)(f)
			widen(f.shards[floatShard]["lm_head.weight"])
			f.config["tie_word_embeddings"] = false
		}},
		{name: "prediction tensors are forbidden", alter: addRole(manifest.RoleMTP), fails: fails("coverage"), names: "mtp.norm.weight",
			profile: func() profiles.Profile { p := toyProfile(); p.VisionMTP = profiles.Forbidden; return p }},
		{name: "prediction tensors are required", fails: fails("coverage"), names: "mtp.norm.weight",
			profile: func() profiles.Profile { p := toyProfile(); p.VisionMTP = profiles.Needed; return p }},
		{name: "changed prediction tensor", alter: addRole(manifest.RoleMTP), fails: fails("coverage"), names: "mtp.norm.weight", profile: func() profiles.Profile {
			p := toyProfile()
			t := p.Bases[0].Contract.Tensors["mtp.norm.weight"]
			t.SHA256 = manifest.DigestBytes(nil).Hex()
			p.Bases[0].Contract.Tensors["mtp.norm.weight"] = t
			return p
		}},
		{name: "A58 norm gains as a matrix", fails: fails("coverage", "config"), names: norm, alter: func(f *fixture) {
			f.float(norm, safetensors.BF16, []int64{256, 256})
		}},
		{name: "untied head and flag", alter: func(f *fixture) { head(1)(f); f.config["tie_word_embeddings"] = false }},
		{name: "A61 copy under another stored name", warns: "coverage", names: "lm_head.weight", alter: func(f *fixture) {
			head(0)(f)
			f.shards[floatShard]["output"] = f.shards[floatShard]["lm_head.weight"]
			delete(f.shards[floatShard], "lm_head.weight")
			f.edit("lm_head.weight", func(e *manifest.Quantity) { e.Tensor = "output" })
		}},
		{name: "quantization manifest with an unknown key", disk: func(t *testing.T, root string) {
			replaceInFile(t, filepath.Join(root, "quantization_manifest.json"), `"tensors"`, `"Tensors"`)
		}, fails: fails("declared"), names: `key "Tensors" must be written "tensors"`},
	})
}

// blockFP8 is a plain checkpoint with one tensor in FP8 blocks of 128 by 128.
func blockFP8(f *fixture) {
	plain(f)
	data := make([]byte, 256*256)
	for i := range data {
		data[i] = byte(i % 0x7f)
	}
	f.shards[floatShard][gate0] = &stored{safetensors.F8E4M3, []int64{256, 256}, data}
	f.float(gate0+"_scale_inv", safetensors.BF16, []int64{2, 2})
	f.config["quantization_config"] = map[string]any{"quant_method": "fp8", "weight_block_size": []int{128, 128}}
}

// addRole stores all of the base's tensors of a role.
func addRole(role manifest.Role) func(*fixture) {
	return func(f *fixture) {
		for name, tensor := range toyModel().Contract().Tensors {
			if tensor.Role == role {
				f.float(name, safetensors.BF16, tensor.Shape)
			}
		}
	}
}

func replaceInFile(t *testing.T, file, from, to string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(from)) {
		t.Fatalf("%s does not hold %q", file, from)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(data, []byte(from), []byte(to)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTernaryVectors(t *testing.T) {
	ternary := func(name, names string, alter func(*fixture)) vector {
		return vector{name: name, alter: alter, fails: fails("ternary"), names: names}
	}
	passes := func(name string, alter func(*fixture)) vector { return vector{name: name, alter: alter} }
	warns := func(name, names string, alter func(*fixture)) vector {
		return vector{name: name, alter: alter, warns: "ternary", names: names}
	}
	regroup := func(group int64) func(*fixture) { return func(f *fixture) { *f = *newFixtureWithGroup(group) } }
	zeroGroup := func(f *fixture, name string, row, group int64) {
		perRow := f.quant.Tensors[name].Shape[1] / f.group
		begin := (row*perRow + group) * f.group / 4
		copy(f.codes(name).data[begin:], bytes.Repeat([]byte{0x55}, int(f.group/4)))
	}
	runVectors(t, []vector{
		{name: "group 32", alter: regroup(32), profile: taskBounds},
		{name: "group 128", alter: regroup(128), profile: taskBounds},
		{name: "A20 scales per 8", alter: regroup(8), profile: taskBounds, fails: fails("ternary", "stored"), names: "quantization_manifest.json"},
		{name: "A25 padding counted as weights", fails: fails("coverage", "config"), names: gate0, alter: func(f *fixture) { f.pack(gate0, []int64{256, 320}) }},
		{name: "A34 shape of the transpose", fails: fails("coverage", "ternary", "config"), names: out0, alter: func(f *fixture) {
			f.edit(out0, func(e *manifest.Quantity) { e.Shape = []int64{128, 256} })
		}},
		warns("A35 few zeros", gate0, func(f *fixture) {
			for i, c := range f.codes(gate0).data {
				f.codes(gate0).data[i] = c &^ (c & 0x55) // every zero becomes -1
			}
		}),
		passes("zero scale over zero codes", func(f *fixture) { f.scales(gate0).set16(5*4+2, 0); zeroGroup(f, gate0, 5, 2) }),
		ternary("A41 one code in a group of scale zero", "row 5, group 2", func(f *fixture) {
			f.scales(gate0).set16(5*4+2, 0)
			zeroGroup(f, gate0, 5, 2)
			f.codes(gate0).data[5*64+2*16+15] = 0x95
		}),
		ternary("A41 scales in a later shard", "row 5, group 2", func(f *fixture) {
			f.scales(gate0).set16(5*4+2, 0)
			moveTensor(f, gate0)
		}),
		passes("scales in a later shard", func(f *fixture) { moveTensor(f, gate0) }),
		warns("all scales equal", gate0, func(f *fixture) { fill(f.scales(gate0).data, 0x20) }),
		ternary("float entry with NaN", norm, func(f *fixture) { f.shards[floatShard][norm].set16(255, 0xff81) }),
		ternary("float entry of another shape", norm, func(f *fixture) { f.shards[floatShard][norm].shape = []int64{2, 128} }),
		{name: "kind that the task does not take", fails: fails("ternary"), names: gate0, profile: func() profiles.Profile {
			p := toyProfile()
			p.Ternary.Formats = []string{manifest.KindLiteral}
			return p
		}},
	})
}

// moveTensor moves an entry's scales to a shard that sorts after its codes.
func moveTensor(f *fixture, name string) {
	const later = "weights/z.safetensors"
	f.shards[later] = map[string]*stored{name + ".scales": f.scales(name)}
	delete(f.shards[ternaryShard], name+".scales")
	f.edit(name, func(e *manifest.Quantity) { e.Scales = &manifest.StoredTensor{File: later, Tensor: name + ".scales"} })
}

func fill(data []byte, b byte) {
	for i := range data {
		data[i] = b
	}
}

func TestLiteralVectors(t *testing.T) {
	runVectors(t, []vector{
		{name: "clean", alter: func(f *fixture) { f.literal(gate0) }},
		{name: "A45 weights of another tensor", warns: "ternary", names: up1 + " does not look like trained weights: its values begin like those of " + gate0, alter: func(f *fixture) {
			s := f.literal(gate0)
			f.literal(up1).data = slices.Clone(s.data)
		}},
		{name: "unit of a group", alter: func(f *fixture) {
			s := f.literal(gate0)
			for i := range int64(256 * 256) { // a magnitude for each half row
				if v := s.get16(i); v != 0 && i%256 >= 128 {
					s.set16(i, v^0x10)
				}
			}
			f.edit(gate0, func(e *manifest.Quantity) { e.GroupSize = 128 })
		}},
		{name: "unit below the minimum", fails: fails("ternary"), names: gate0, alter: func(f *fixture) {
			f.literal(gate0)
			f.edit(gate0, func(e *manifest.Quantity) { e.GroupSize = 16 })
		}},
		{name: "F32 literal", alter: func(f *fixture) { widen(f.literal(gate0)) }},
	})
}

// widen makes a BF16 tensor an F32 one of the same values.
func widen(s *stored) {
	wide := make([]byte, 2*len(s.data))
	for i := 0; i < len(s.data); i += 2 {
		copy(wide[2*i+2:], s.data[i:i+2])
	}
	s.dtype, s.data = safetensors.F32, wide
}

func TestConfigVectors(t *testing.T) {
	set := func(key string, value any) func(*fixture) { return func(f *fixture) { f.config[key] = value } }
	runVectors(t, []vector{
		{name: "hidden_size", alter: set("hidden_size", 255), fails: fails("config"), names: norm},
		{name: "vocab_size", alter: set("vocab_size", 97), fails: fails("config"), names: embed},
		{name: "head_dim", alter: set("head_dim", 32), fails: fails("config"), names: "model.layers.1.self_attn.q_norm.weight"},
		{name: "number as text", alter: set("hidden_size", "256"), fails: fails("config"), names: "weights/config.json"},
		{name: "layer types of another length", alter: set("layer_types", []string{"full_attention"}), fails: fails("config"), names: "weights/config.json"},
		{name: "missing", alter: func(f *fixture) { f.config = nil }, fails: fails("config"), names: "weights/config.json"},
		{name: "key twice", fails: fails("config"), names: "weights/config.json", alter: func(f *fixture) {
			data := mustJSON(f.config)
			f.config, f.files["weights/config.json"] = nil, append([]byte(`{"head_dim":64,`), data[1:]...)
		}},
		{name: "end token outside the vocabulary", alter: set("eos_token_id", 96), fails: fails("config"), names: "weights/config.json"},
		{name: "token id outside the vocabulary", fails: fails("config"), names: "weights/tokenizer.json", alter: func(f *fixture) {
			f.files["weights/tokenizer.json"] = []byte(`{"added_tokens":[],"model":{"vocab":{"a":0,"b":96}}}`)
		}},
		{name: "generation ends elsewhere", warns: "config", names: "weights/generation_config.json", alter: func(f *fixture) {
			f.files["weights/generation_config.json"] = []byte(`{"eos_token_id":94}`)
		}},
		{name: "unknown architecture", alter: set("architectures", []string{"OtherForCausalLM"}), profile: withoutBase},
		{name: "unknown architecture with another vocabulary", alter: func(f *fixture) {
			f.config["architectures"] = []string{"OtherForCausalLM"}
			f.config["vocab_size"] = 100
		}, fails: fails("config"), names: embed},
	})
}

func TestWhatFailsMovesToFloats(t *testing.T) {
	f := newFixture()
	clean := run(t, f.write(t), Options{Profile: toyProfile()}).Counts
	f.codes(gate0).data[9] |= 3
	moved := run(t, f.write(t), Options{Profile: toyProfile()}).Counts
	elements, scales := int64(256*256), int64(256*256/64)
	if moved.Ternary != clean.Ternary-elements || moved.Scales != clean.Scales-scales || moved.Floats != clean.Floats+elements+scales {
		t.Errorf("clean %+v\nmoved %+v", clean, moved)
	}
}

func TestFractionIsStrictAndStoredIsNot(t *testing.T) {
	root := newFixture().write(t)
	counts := run(t, root, Options{Profile: toyProfile()}).Counts
	exact := toyProfile()
	exact.Ternary.FractionAbove = profiles.Ratio{Numerator: counts.Ternary, Denominator: counts.Counted()}
	exact.Ternary.StoredAtMost = profiles.Ratio{Numerator: counts.Stored(), Denominator: counts.Base}
	if got := run(t, root, Options{Profile: exact}).Failed(); !slices.Equal(got, []string{"ternary"}) {
		t.Errorf("at the bounds %v fail, want the strict one", got)
	}
	exact.Ternary.FractionAbove.Denominator++
	exact.Ternary.StoredAtMost.Numerator--
	if got := run(t, root, Options{Profile: exact}).Failed(); !slices.Equal(got, []string{"stored"}) {
		t.Errorf("just beyond the bounds %v fail, want stored", got)
	}
}
