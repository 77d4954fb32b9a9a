package pack

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// denseFiles is a checkpoint of one BF16 tensor w [rows, 64].
func denseFiles(t testing.TB, values []byte) map[string]string {
	return map[string]string{"m.safetensors": string(shardBytes(t, nil, tensor{"w", safetensors.BF16, []int64{int64(len(values)) / 128, 64}, values}))}
}

// by returns 8 rows of 64 inputs, ternary by row, with one value set.
func by(at int, value uint16) []byte {
	values := ternaryValues(seeded(3), 8*64, 64, distinct)
	binary.LittleEndian.PutUint16(values[2*at:], value)
	return values
}

func declare(files map[string]string, entry string) map[string]string {
	files[manifest.QuantizationPath] = `{"base_model":null,"base_revision":null,"tensors":{"w":{"file":"m.safetensors","tensor":"w",` + entry + `}}}`
	return files
}

// Each case but the clean ones has one fault, which the error names.
func TestRefuses(t *testing.T) {
	r := seeded(4)
	float := normal(r, 8*64)
	two := func(config string, head []byte) map[string]string {
		return map[string]string{"config.json": config, "m.safetensors": string(shardBytes(t, nil,
			tensor{"model.embed_tokens.weight", safetensors.BF16, []int64{8, 64}, float}, tensor{"lm_head.weight", safetensors.BF16, []int64{8, 64}, head},
			tensor{"w", safetensors.BF16, []int64{8, 64}, by(0, 0)}))}
	}
	other := slices.Clone(float)
	other[700] ^= 1
	pack, drop := Options{Ternary: true}, Options{Ternary: true, DropTiedHead: true}
	for _, tc := range []struct {
		name    string
		files   map[string]string
		options Options
		fault   string // "": packs
	}{
		{"clean", denseFiles(t, by(0, 0)), pack, ""},
		{"second magnitude", denseFiles(t, by(3*64+17, 0x4000)), pack, `tensor "w" of m.safetensors is not exactly ternary: row 3, input 17: magnitude 2 in a group of 32 of 0.00`},
		{"not a number", denseFiles(t, by(3*64+17, 0x7fc0)), pack, "row 3, input 17: not a number"},
		{"infinite", denseFiles(t, by(2*64, 0xff80)), pack, "row 2, input 0: infinite"},
		{"plainly float", denseFiles(t, float), pack, `no tensor is exactly ternary: 1 not ternary; tensor "w" of m.safetensors, row 0, input `},
		{"of a wide type", map[string]string{"m.safetensors": string(shardBytes(t, nil, tensor{"w", safetensors.F64, []int64{1, 64}, make([]byte, 512)}))}, pack, "no tensor is exactly ternary: 1 of type F64"},
		{"shard name that is no path of a bundle", map[string]string{"a\\b.safetensors": denseFiles(t, by(0, 0))["m.safetensors"]}, pack, `a\\b.safetensors`},
		{"plainly float, but named", denseFiles(t, float), Options{Ternary: true, Tensors: []string{"w"}}, `tensor "w" of m.safetensors is not exactly ternary: row 0, input `},
		{"no such name", denseFiles(t, by(0, 0)), Options{Ternary: true, Tensors: []string{"w", "v*"}}, `no tensor matches "v*"`},
		{"broken pattern", denseFiles(t, by(0, 0)), Options{Ternary: true, Tensors: []string{"["}}, `pattern "["`},
		{"declared literal", declare(denseFiles(t, by(0, 0)), `"kind":"literal","shape":[8,64]`), pack, ""},
		{"declared in groups", declare(denseFiles(t, by(0, 0)), `"kind":"literal","shape":[8,64],"group_size":32`), pack, ""},
		{"declared as one unit", declare(denseFiles(t, by(0, 0)), `"kind":"literal","shape":[8,64],"unit":"tensor"`), pack, "row 1, input 2: magnitude 0.00787353516 in a tensor of 0.0078125"},
		{"declared in odd groups", declare(denseFiles(t, by(0, 0)), `"kind":"literal","shape":[8,64],"group_size":48`), pack, "groups of 48"},
		{"declared, float", declare(denseFiles(t, float), `"kind":"literal","shape":[8,64]`), pack, "is not exactly ternary: row 0"},
		{"nearly ternary, declared float", declare(denseFiles(t, by(5, 0x4000)), `"kind":"float","shape":[8,64]`), pack, "no tensor is exactly ternary: 1 declared float"},
		{"declared elsewhere", declare(map[string]string{"n.safetensors": denseFiles(t, by(0, 0))["m.safetensors"]}, `"kind":"literal","shape":[8,64]`), pack, `needs "w" of m.safetensors, which is not there`},
		{"repeated head", two(`{"text_config":{"tie_word_embeddings":true}}`, float), drop, ""},
		{"other head", two(`{"tie_word_embeddings":true}`, other), drop, "lm_head.weight of m.safetensors differs from model.embed_tokens.weight"},
		{"other head, untied", two(`{"tie_word_embeddings":false}`, other), drop, ""},
		{"other head, kept", two(`{"tie_word_embeddings":true}`, other), pack, ""},
		{"nothing to do", denseFiles(t, float), Options{MaxShard: 1 << 20}, "nothing to do"},
		{"no shard", map[string]string{"config.json": "{}"}, pack, "no *.safetensors file in ."},
		{"cut off", map[string]string{"m.safetensors": denseFiles(t, float)["m.safetensors"][:500]}, pack, "read header of m.safetensors"},
		{"in two shards", map[string]string{"a.safetensors": denseFiles(t, float)["m.safetensors"], "b.safetensors": denseFiles(t, float)["m.safetensors"]}, pack, `"w"`},
		{"name taken", map[string]string{"m.safetensors": string(shardBytes(t, nil, tensor{"w", safetensors.BF16, []int64{8, 64}, by(0, 0)}, tensor{"w.codes", safetensors.U8, []int64{1}, []byte{1}}))}, pack, `tensor "w.codes" is stored already`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from := writeFiles(t, filepath.Join(t.TempDir(), "dense"), tc.files)
			to := filepath.Join(t.TempDir(), "packed")
			report, err := Folder(t.Context(), from, to, tc.options)
			if tc.fault == "" {
				if err != nil || len(report.Packed) != 1 {
					t.Fatalf("report %+v, error %v", report, err)
				}
				sameFiles(t, readFolder(t, mustUndo(t, to)), tc.files)
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("error %v, want %q", err, tc.fault)
			}
			left, _ := os.ReadDir(filepath.Dir(to))
			if len(left) > 0 {
				t.Errorf("%s was left behind", left[0].Name())
			}
		})
	}
}

// A folder beside the shards is not copied, and the report says so.
func TestFoldersAreNamed(t *testing.T) {
	from := writeFiles(t, filepath.Join(t.TempDir(), "dense"), denseFiles(t, by(0, 0)))
	writeFiles(t, filepath.Join(from, "original"), map[string]string{"a.txt": "x"})
	_, report := mustPack(t, from, Options{Ternary: true})
	if !slices.Equal(report.LeftOut, []string{"original/"}) {
		t.Errorf("left out %q", report.LeftOut)
	}
}

// A folder that holds something stays as it is.
func TestPackReplacesNothing(t *testing.T) {
	from := writeFiles(t, filepath.Join(t.TempDir(), "dense"), denseFiles(t, by(0, 0)))
	to := writeFiles(t, t.TempDir(), map[string]string{"mine": "x"})
	for _, into := range []string{to, from} {
		before := readFolder(t, into)
		if _, err := Folder(t.Context(), from, into, Options{Ternary: true}); err == nil || !strings.Contains(err.Error(), "it is not empty") {
			t.Errorf("error %v", err)
		}
		sameFiles(t, readFolder(t, into), before)
	}
}

// Packed weights that were packed once are not packed again, and can be cut.
func TestPackedWeights(t *testing.T) {
	from := writeFiles(t, filepath.Join(t.TempDir(), "dense"), sample(t))
	packed, _ := mustPack(t, from, Options{Ternary: true})
	if _, err := Folder(t.Context(), packed, filepath.Join(t.TempDir(), "again"), Options{Ternary: true}); err == nil || !strings.Contains(err.Error(), "is packed already") {
		t.Errorf("error %v", err)
	}
	cut, report := mustPack(t, packed, Options{MaxShard: 4000, DropTiedHead: true})
	if len(report.Files) != 3 || len(report.Dropped) != 1 {
		t.Errorf("report %+v", report)
	}
	_, at := storedTensors(t, cut)
	for name, e := range decodeManifest(t, cut).Tensors {
		for _, s := range e.Stored() {
			if at[s.Tensor] != s.File {
				t.Errorf("entry %q says %s, and %s lies in %q", name, s.File, s.Tensor, at[s.Tensor])
			}
		}
	}
	sameFiles(t, readFolder(t, mustUndo(t, cut)), readFolder(t, packed))
	sameFiles(t, readFolder(t, mustUndo(t, mustUndo(t, cut))), sample(t))
}

func TestReshard(t *testing.T) {
	files := sample(t)
	from := writeFiles(t, filepath.Join(t.TempDir(), "dense"), files)
	cut, report := mustPack(t, from, Options{MaxShard: 6000})
	got, at := storedTensors(t, cut)
	want, _ := storedTensors(t, from)
	for name, w := range want {
		if g := got[name]; g.dtype != w.dtype || !slices.Equal(g.shape, w.shape) || !slices.Equal(g.data, w.data) {
			t.Errorf("%s changed", name)
		}
	}
	index, err := safetensors.ReadIndex([]byte(readFolder(t, cut)[safetensors.IndexName]))
	if err != nil {
		t.Fatal(err)
	}
	for name, shard := range at {
		if index.WeightMap[name] != shard {
			t.Errorf("index says %s of %s, not %s", index.WeightMap[name], name, shard)
		}
	}
	if len(index.WeightMap) != len(at) || string(index.Metadata["note"]) != `"kept"` {
		t.Errorf("index %+v", index)
	}
	alone := 0
	for _, f := range report.Files {
		if f.Size > 6000 {
			alone++
		}
	}
	if alone != 2 || len(report.Notes) != 2 || !strings.Contains(report.Notes[0], "has a shard of its own") {
		t.Errorf("%d shards over the limit, notes %q", alone, report.Notes)
	}
	sameFiles(t, readFolder(t, mustUndo(t, cut)), files)

	// Without a limit only the shard of a dropped head changes.
	dropped, _ := mustPack(t, from, Options{DropTiedHead: true})
	if readFolder(t, dropped)["model-00001-of-00002.safetensors"] != files["model-00001-of-00002.safetensors"] {
		t.Error("a shard without the head changed")
	}
	if got, _ := storedTensors(t, dropped); got["lm_head.weight"].data != nil || len(got) != len(want)-1 {
		t.Errorf("%d tensors", len(got))
	}
	sameFiles(t, readFolder(t, mustUndo(t, dropped)), files)
}

// A damaged or doctored packed folder is not turned back.
func TestUndoRefuses(t *testing.T) {
	from := writeFiles(t, filepath.Join(t.TempDir(), "dense"), sample(t))
	packed, _ := mustPack(t, from, Options{Ternary: true, DropTiedHead: true})
	edit := func(name string, change func(string) string) func(map[string]string) {
		return func(files map[string]string) { files[name] = change(files[name]) }
	}
	replace := func(old, new string) func(string) string {
		return func(data string) string {
			if !strings.Contains(data, old) {
				t.Fatalf("no %q", old)
			}
			return strings.Replace(data, old, new, 1)
		}
	}
	for _, tc := range []struct {
		name  string
		fault func(map[string]string)
		want  string
	}{
		{"clean", func(map[string]string) {}, ""},
		{"no record", func(f map[string]string) { delete(f, RecordPath) }, "pack.json is not there"},
		{"schema", edit(RecordPath, replace(`"schema": 1`, `"schema": 2`)), "schema 2 is not 1"},
		{"escapes", edit(RecordPath, replace(`"name": "model-00001-of-00002.safetensors"`, `"name": "../x.safetensors"`)), "contains '..'"},
		{"in a folder", edit(RecordPath, replace(`"name": "model-00001-of-00002.safetensors"`, `"name": "a/x.safetensors"`)), "is in a folder"},
		{"no shard", edit(RecordPath, replace(`"name": "model-00001-of-00002.safetensors"`, `"name": "x.json"`)), "is no .safetensors file"},
		{"other document", edit(RecordPath, replace(`"`+safetensors.IndexName+`"`, `"run.sh"`)), "none that packing replaces"},
		{"header", edit(RecordPath, replace(`[12,64]`, `[12,65]`)), "header of model-00001-of-00002.safetensors"},
		{"type", edit(RecordPath, replace(`\"dtype\":\"BF16\",\"shape\":[12,64]`, `\"dtype\":\"F16\", \"shape\":[12,64]`)), "is BF16 [12 1], want F16 [12 1]"},
		{"unknown tensor", edit(RecordPath, replace(`model.layers.0.A_log`, `model.layers.0.A_lag`)), "is not stored"},
		{"bits", edit("ternary-00001.safetensors", func(s string) string { return s[:len(s)-1] + string(s[len(s)-1]^1) }), "ternary-00001.safetensors changed since it was packed"},
		{"shard gone", func(f map[string]string) { delete(f, "float-00001.safetensors") }, `"float-00001.safetensors", which is not there`},
		{"shard added", func(f map[string]string) {
			f["z.safetensors"] = string(shardBytes(t, nil, tensor{"z", safetensors.U8, []int64{1}, []byte{1}}))
		}, "z.safetensors is not of the shards"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := readFolder(t, packed)
			tc.fault(files)
			damaged := writeFiles(t, filepath.Join(t.TempDir(), "packed"), files)
			to := filepath.Join(t.TempDir(), "restored")
			_, err := Undo(t.Context(), damaged, to, Options{})
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if left, _ := os.ReadDir(filepath.Dir(to)); len(left) > 0 {
				t.Errorf("%s was left behind", left[0].Name())
			}
		})
	}
}

// The word tricks agree with one value at a time, for every type.
func TestBits(t *testing.T) {
	r := seeded(5)
	for _, dtype := range []safetensors.DType{safetensors.BF16, safetensors.F16, safetensors.F32} {
		f, _ := floatsOf(dtype)
		for range 3000 {
			n := 4 * (1 + r.IntN(9))
			a := uint32(r.Uint64()) >> (1 + 16*(2-f.bytes/2)) // any magnitude of the type
			data := make([]byte, 0, 4*n)
			zeros, minus := int64(0), f.appendScale(nil, 0)
			minus[len(minus)-1] = 0x80
			for range n {
				v := f.appendScale(nil, a)
				switch r.IntN(5) {
				case 0:
					v[len(v)-1] |= 0x80
				case 1:
					v = f.appendScale(nil, 0)
				case 2:
					v = minus
					zeros++
				}
				data = append(data, v...)
			}
			m := f.first(data)
			ok, counted := f.uniform(data, m)
			if ok != (m < f.infinity) || counted < zeros || a != 0 && counted != zeros {
				t.Fatalf("%s, magnitude %x: uniform %v, %d negative zeros, want %d", dtype, a, ok, counted, zeros)
			}
			codes := make([]byte, n/4)
			if !f.encode(codes, data, m) {
				t.Fatalf("%s, magnitude %x: not encoded", dtype, m)
			}
			back := make([]byte, len(data))
			if !f.decode(back, codes, m) {
				t.Fatal("code 3")
			}
			for i := range n {
				gotM, gotS := f.at(back, i)
				wantM, wantS := f.at(data, i)
				if gotM != wantM || gotM != 0 && gotS != wantS {
					t.Fatalf("%s: value %d is %x %v, want %x %v", dtype, i, gotM, gotS, wantM, wantS)
				}
			}
			at := r.IntN(n)
			f.appendScale(data[:int64(at)*f.bytes], a^1)
			if stray := f.stray(data, a); a > 1 && a|1 < f.infinity && stray != at {
				t.Fatalf("%s: stray at %d, want %d", dtype, stray, at)
			}
		}
		if f.decode(make([]byte, 4*f.bytes), []byte{0xc0}, 1) {
			t.Errorf("%s: code 3 passed", dtype)
		}
		if got := f.text(f.appendOne()); got != "1" {
			t.Errorf("%s: 1 is written %q", dtype, got)
		}
	}
	if got := (floats{2, 0x7c00}).text(1); got != "5.96046448e-08" {
		t.Errorf("the smallest F16 is written %q", got)
	}
}

// appendOne returns the bits of 1.
func (f floats) appendOne() uint32 {
	switch {
	case f.bytes == 4:
		return math.Float32bits(1)
	case f.infinity == 0x7f80:
		return 0x3f80
	}
	return 0x3c00
}

// FuzzPackUndo packs small checkpoints of any values and shapes: what packs
// comes back, up to the sign of zeros in packed tensors.
func FuzzPackUndo(f *testing.F) {
	f.Add(uint8(0), uint8(4), uint8(2), uint16(0), by(0, 0))
	f.Add(uint8(1), uint8(0), uint8(1), uint16(3000), by(64, 0x8000))
	f.Add(uint8(2), uint8(9), uint8(3), uint16(100), ternaryValues(seeded(6), 2*9*36, 36, distinct))
	f.Fuzz(func(t *testing.T, kind, rows, columns uint8, limit uint16, values []byte) {
		dtype := []safetensors.DType{safetensors.BF16, safetensors.F16, safetensors.F32}[kind%3]
		n, k := 1+int64(rows%16), 4*(1+int64(columns%40))
		size := n * k * int64(dtype.Bits()) / 8
		if int64(len(values)) == 0 {
			return
		}
		data := slices.Repeat(values, int(size)/len(values)+1)[:size]
		files := map[string]string{
			"a.safetensors": string(shardBytes(t, nil, tensor{"w", dtype, []int64{n, k}, data})),
			"b.safetensors": string(shardBytes(t, map[string]string{"format": "pt"}, tensor{"norm", safetensors.BF16, []int64{1}, bits16(1)}, tensor{"u", safetensors.BF16, []int64{1, 64}, by(0, 0)[:128]})),
		}
		from := writeFiles(t, filepath.Join(t.TempDir(), "dense"), files)
		to := filepath.Join(t.TempDir(), "packed")
		report, err := Folder(t.Context(), from, to, Options{Ternary: true, MaxShard: int64(limit)})
		if err != nil {
			if !strings.Contains(err.Error(), "is not exactly ternary") {
				t.Fatal(err)
			}
			return
		}
		packed := slices.ContainsFunc(report.Packed, func(p PackedTensor) bool { return p.Name == "w" })
		if packed {
			x, _ := floatsOf(dtype)
			lost := int64(0)
			for i := range x.count(data) {
				if m, negative := x.at(data, i); m == 0 && negative {
					data[(int64(i)+1)*x.bytes-1] = 0
					lost++
				}
			}
			files["a.safetensors"] = string(shardBytes(t, nil, tensor{"w", dtype, []int64{n, k}, data}))
			if lost != report.NegativeZeros {
				t.Errorf("%d negative zeros counted, want %d", report.NegativeZeros, lost)
			}
		}
		sameFiles(t, readFolder(t, mustUndo(t, to)), files)
	})
}

// FuzzRecord reads any pack.json beside honest shards: no panic, no name
// outside the folder.
func FuzzRecord(f *testing.F) {
	from := writeFiles(f, filepath.Join(f.TempDir(), "dense"), sample(f))
	packed, _ := mustPack(f, from, Options{Ternary: true, DropTiedHead: true})
	f.Add([]byte(readFolder(f, packed)[RecordPath]))
	root, err := os.OpenRoot(packed)
	if err != nil {
		f.Fatal(err)
	}
	defer root.Close()
	c, err := ReadCheckpoint(f.Context(), root, ".")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRecord(data)
		if err != nil {
			return
		}
		shards, err := r.arrange(c)
		if err != nil {
			return
		}
		for _, s := range shards {
			if strings.ContainsAny(s.Name, `/\`) || s.Size < int64(len(s.header)) {
				t.Errorf("shard %q of %d bytes", s.Name, s.Size)
			}
		}
	})
}
