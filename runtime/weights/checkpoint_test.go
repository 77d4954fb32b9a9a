package weights

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// folder is a checkpoint under construction: files by slash path below a
// temporary root, the checkpoint in "weights".
type folder map[string][]byte

func (f folder) write(t *testing.T) string {
	root := t.TempDir()
	for name, data := range f {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(root, "weights")
}

// entry is one stored tensor; its bytes count up.
type entry struct {
	name  string
	dtype safetensors.DType
	shape []int64
	data  []byte // nil: counts up from 1
}

func shardFile(t *testing.T, entries ...entry) []byte {
	var tensors []safetensors.Tensor
	var data []byte
	for _, e := range entries {
		tensor := safetensors.Tensor{Name: e.name, DType: e.dtype, Shape: e.shape}
		size := int(tensor.Elements()) * e.dtype.Bits() / 8
		if e.data == nil {
			for i := range size {
				e.data = append(e.data, byte(i+1))
			}
		}
		tensors, data = append(tensors, tensor), append(data, e.data...)
	}
	header, err := safetensors.EncodeHeader(tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	return append(header, data...)
}

const (
	plainConfig = `{"architectures":["X"],"eos_token_id":3}`
	fp8Config   = `{"architectures":["X"],"quantization_config":{"quant_method":"fp8","fmt":"e4m3","activation_scheme":"dynamic","weight_block_size":[4,8]}}`
)

// ternary is a manifest for tensor "a" of shape [2, 16] in the file at path.
func ternary(path string) []byte {
	return fmt.Appendf(nil, `{"base_model":null,"base_revision":null,"tensors":{
"a":{"kind":"packed_2bit","shape":[2,16],"group_size":8,"codes":{"file":%[1]q,"tensor":"a.codes"},"scales":{"file":%[1]q,"tensor":"a.scales"}},
"b":{"kind":"float","shape":[3],"file":%[1]q,"tensor":"b.stored"}}}`, path)
}

func ternaryShard(t *testing.T) []byte {
	return shardFile(t,
		entry{"a.codes", safetensors.U8, []int64{2, 4}, []byte{0x24, 0x24, 0, 0xAA, 0x55, 1, 2, 0x80}},
		entry{"a.scales", safetensors.F16, []int64{2, 2}, nil},
		entry{"b.stored", safetensors.F32, []int64{3}, nil})
}

func TestTernaryReferences(t *testing.T) {
	for _, tc := range []struct{ name, manifest, file string }{
		{"beside, from the root", "quantization_manifest.json", "weights/w.safetensors"},
		{"beside, from the folder", "quantization_manifest.json", "w.safetensors"},
		{"inside, from the folder", "weights/quantization_manifest.json", "w.safetensors"},
		{"inside, from the root", "weights/quantization_manifest.json", "weights/w.safetensors"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Open(folder{"weights/config.json": []byte(plainConfig), "weights/w.safetensors": ternaryShard(t), tc.manifest: ternary(tc.file)}.write(t))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			a, err := c.Take("a", 2, 16)
			if err != nil {
				t.Fatal(err)
			}
			if a.Kind != Packed2Bit || a.GroupRows != 1 || a.GroupColumns != 8 || a.ScaleDType != safetensors.F16 {
				t.Errorf("tensor %+v", a)
			}
			if data, err := a.Data(); err != nil || !bytes.Equal(data, []byte{0x24, 0x24, 0, 0xAA, 0x55, 1, 2, 0x80}) {
				t.Errorf("codes %v, error %v", data, err)
			}
			if scales, err := a.Scales(); err != nil || !bytes.Equal(scales, []byte{1, 2, 3, 4, 5, 6, 7, 8}) {
				t.Errorf("scales %v, error %v", scales, err)
			}
			if _, err := c.Take("b", 3); err != nil {
				t.Error(err)
			}
			if err := c.Finish(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What shares a scale, and the scale's type, are the manifest's and the file's.
func TestTernaryUnits(t *testing.T) {
	for _, tc := range []struct {
		unit                    string
		dtype                   safetensors.DType
		shape                   []int64
		groupRows, groupColumns int
	}{
		{`"group_size":8`, safetensors.BF16, []int64{2, 2}, 1, 8},
		{`"unit":"row"`, safetensors.BF16, []int64{2, 1}, 1, 16},
		{`"unit":"row"`, safetensors.F32, []int64{2}, 1, 16},
		{`"unit":"tensor"`, safetensors.F16, []int64{1}, 2, 16},
		{`"unit":"tensor"`, safetensors.F32, []int64{}, 2, 16},
	} {
		t.Run(fmt.Sprint(tc.unit, tc.dtype, tc.shape), func(t *testing.T) {
			shard := shardFile(t,
				entry{"a.codes", safetensors.U8, []int64{2, 4}, []byte{0x24, 0x24, 0, 0xAA, 0x55, 1, 2, 0x80}},
				entry{"a.scales", tc.dtype, tc.shape, nil}, entry{"b.stored", safetensors.F32, []int64{3}, nil})
			c, err := Open(folder{"weights/config.json": []byte(plainConfig), "weights/w.safetensors": shard,
				manifest.QuantizationPath: bytes.Replace(ternary("w.safetensors"), []byte(`"group_size":8`), []byte(tc.unit), 1)}.write(t))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			a, err := c.Take("a", 2, 16)
			if err != nil {
				t.Fatal(err)
			}
			if a.GroupRows != tc.groupRows || a.GroupColumns != tc.groupColumns || a.ScaleDType != tc.dtype {
				t.Errorf("tensor %+v", a)
			}
			if scales, err := a.Scales(); err != nil || len(scales) == 0 {
				t.Errorf("scales %v, error %v", scales, err)
			}
		})
	}
}

// A manifest beside the folder may list other components too.
func TestOtherComponent(t *testing.T) {
	both := bytes.Replace(ternary("weights/w.safetensors"), []byte(`"b":{`),
		[]byte(`"v":{"kind":"float","shape":[1],"file":"vision/v.safetensors","tensor":"v"},"b":{`), 1)
	c, err := Open(folder{"weights/config.json": []byte(plainConfig), "weights/w.safetensors": ternaryShard(t),
		"vision/v.safetensors": nil, "quantization_manifest.json": both}.write(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Has("v") || !c.Has("a") || !c.Has("b") {
		t.Errorf("tensors %v", c.tensors)
	}
}

func TestFP8(t *testing.T) {
	for _, dtype := range []safetensors.DType{safetensors.BF16, safetensors.F16, safetensors.F32} {
		shard := shardFile(t, entry{"w.weight", safetensors.F8E4M3, []int64{5, 9}, nil}, entry{"w.weight_scale_inv", dtype, []int64{2, 2}, nil})
		c, err := Open(folder{"weights/config.json": []byte(fp8Config), "weights/model.safetensors": shard}.write(t))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		w, err := c.Take("w.weight", 5, 9)
		if err != nil {
			t.Fatal(err)
		}
		data, dataErr := w.Data()
		scales, scalesErr := w.Scales()
		if w.Kind != FP8Block || w.GroupRows != 4 || w.GroupColumns != 8 || w.ScaleDType != dtype || dataErr != nil || scalesErr != nil ||
			len(data) != 45 || len(scales) != 4*dtype.Bits()/8 {
			t.Errorf("tensor %+v, errors %v, %v", w, dataErr, scalesErr)
		}
		if err := c.Finish(); err != nil {
			t.Error(err)
		}
	}
}

func TestPrefixSkipAndIndex(t *testing.T) {
	files := folder{
		"weights/config.json": []byte(plainConfig),
		"weights/one.safetensors": shardFile(t, entry{"model.language_model.norm.weight", safetensors.BF16, []int64{2}, nil},
			entry{"mtp.fc.weight", safetensors.I8, []int64{1}, nil}),
		"weights/two.safetensors":   shardFile(t, entry{"model.visual.x", safetensors.F8E5M2, []int64{1}, nil}),
		"weights/stray.safetensors": []byte("not read"),
		"weights/model.safetensors.index.json": []byte(
			`{"weight_map":{"model.language_model.norm.weight":"one.safetensors","mtp.fc.weight":"one.safetensors","model.visual.x":"two.safetensors"}}`),
	}
	c, err := Open(files.write(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if name := c.TextName("norm.weight"); name != "model.language_model.norm.weight" || !c.Has(name) {
		t.Errorf("text name %s", name)
	}
	if _, err := c.Take(c.TextName("norm.weight"), 2); err != nil {
		t.Error(err)
	}
	if err := c.Finish(); err == nil {
		t.Error("surplus tensors were accepted")
	}
	c.Skip("mtp.", "model.visual.")
	if err := c.Finish(); err != nil {
		t.Error(err)
	}
}

func TestEndTokens(t *testing.T) {
	for _, tc := range []struct{ config, generation, want string }{
		{`{"eos_token_id":3}`, ``, "[3]"},
		{`{"eos_token_id":[5,3]}`, `{"eos_token_id":[3,9]}`, "[3 5 9]"},
		{`{"eos_token_id":1,"text_config":{"eos_token_id":7}}`, `{"eos_token_id":2}`, "[1 2 7]"},
		{`{"eos_token_id":null}`, `{"do_sample":true}`, "[]"},
		{`{"eos_token_id":-1}`, ``, "config.json: eos_token_id is -1"},
		{`{}`, `{"eos_token_id":"x"}`, "generation_config.json: eos_token_id is x"},
		{`{}`, `{"eos_token_id":1,"eos_token_id":2}`, `read generation_config.json: top level: key "eos_token_id" given twice`},
	} {
		files := folder{"weights/config.json": []byte(tc.config), "weights/model.safetensors": shardFile(t)}
		if tc.generation != "" {
			files["weights/generation_config.json"] = []byte(tc.generation)
		}
		c, err := Open(files.write(t))
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(c.EndTokens())
			c.Close()
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("config %s, generation %s: %s, want %s", tc.config, tc.generation, got, tc.want)
		}
	}
}

// One fault each; the clean twin comes first.
func TestOpenRefuses(t *testing.T) {
	ternaryFiles := func() folder {
		return folder{"weights/config.json": []byte(plainConfig), "weights/w.safetensors": ternaryShard(t), "quantization_manifest.json": ternary("weights/w.safetensors")}
	}
	fp8Files := func(shape []int64, dtype safetensors.DType) folder {
		return folder{"weights/config.json": []byte(fp8Config), "weights/m.safetensors": shardFile(t,
			entry{"w.weight", safetensors.F8E4M3, []int64{5, 9}, nil}, entry{"w.weight_scale_inv", dtype, shape, nil})}
	}
	edit := func(f folder, name, old, new string) folder {
		before := f[name]
		f[name] = bytes.Replace(before, []byte(old), []byte(new), 1)
		if bytes.Equal(before, f[name]) {
			t.Fatalf("%s has no %s", name, old)
		}
		return f
	}
	drop := func(f folder, name string) folder { delete(f, name); return f }
	const quantization = "quantization_manifest.json"
	for _, tc := range []struct {
		name  string
		files folder
		fault string
	}{
		{"clean ternary", ternaryFiles(), ""},
		{"no config", drop(ternaryFiles(), "weights/config.json"), "config.json: no such file"},
		{"no shard", drop(drop(ternaryFiles(), "weights/w.safetensors"), quantization), "no *.safetensors file"},
		{"duplicate key", edit(ternaryFiles(), "weights/config.json", `{`, `{"eos_token_id":3,`), `read config.json: top level: key "eos_token_id" given twice`},
		{"text_config", edit(ternaryFiles(), "weights/config.json", `{`, `{"text_config":1,`), "text_config is not an object"},
		{"cut shard", edit(ternaryFiles(), "weights/w.safetensors", "\x24\x24", ""), "read header of w.safetensors"},
		{"file absent", edit(ternaryFiles(), quantization, `weights/w.`, `weights/x.`), `tensor "a": file "weights/x.safetensors" is not there`},
		{"tensor absent", edit(ternaryFiles(), quantization, `a.codes`, `a.kodes`), `tensor "a": w.safetensors has no tensor "a.kodes"`},
		{"codes shape", edit(ternaryFiles(), quantization, `[2,16]`, `[2,12]`), `tensor "a": has codes of shape [2 4], want [2 3]`},
		{"scales shape", edit(ternaryFiles(), quantization, `"group_size":8`, `"group_size":16`), `tensor "a": has scales of shape [2 2], want [2 1]`},
		{"group size", edit(ternaryFiles(), quantization, `"group_size":8`, `"group_size":4`), `tensor "a": has 16 inputs in groups of 4`},
		{"other format", edit(ternaryFiles(), quantization, `"group_size":8`, `"format":"bitnet_u8"`), `tensor "a": is of format bitnet_u8; only packed_2bit is computed`},
		{"scales of rows", edit(ternaryFiles(), quantization, `"group_size":8`, `"unit":"row"`), `tensor "a": has scales of shape [2 2], want [2 1]`},
		{"one scale", edit(ternaryFiles(), quantization, `"group_size":8`, `"unit":"tensor"`), `tensor "a": has scales of shape [2 2], want [1 1]`},
		{"rank", edit(ternaryFiles(), quantization, `[2,16]`, `[32]`), `tensor "a": is packed_2bit of shape [32], not a matrix`},
		{"scales dtype", edit(ternaryFiles(), "weights/w.safetensors", `"dtype":"F16"`, `"dtype":"I16"`), `has scales of dtype I16, want BF16, F16 or F32`},
		{"codes dtype", edit(ternaryFiles(), "weights/w.safetensors", `"dtype":"U8"`, `"dtype":"I8"`), `has codes of dtype I8, want U8`},
		{"float shape", edit(ternaryFiles(), quantization, `"shape":[3]`, `"shape":[4]`), `tensor "b": has shape [3], the quantization manifest says [4]`},
		{"manifest", edit(ternaryFiles(), quantization, `"kind":"float"`, `"kind":"fp4"`), `read quantization_manifest.json: tensor "b": kind "fp4"`},
		{"clean fp8", fp8Files([]int64{2, 2}, safetensors.BF16), ""},
		{"fp8 scale shape", fp8Files([]int64{2, 1}, safetensors.BF16), `tensor "w.weight": has scales of shape [2 1]; [5 9] in blocks of [4 8] needs [2 2]`},
		{"fp8 scale dtype", fp8Files([]int64{2, 2}, safetensors.U8), `has scales of dtype U8, want BF16, F16 or F32`},
		{"fp8 without scales", folder{"weights/config.json": []byte(fp8Config), "weights/m.safetensors": shardFile(t, entry{"w.weight", safetensors.F8E4M3, []int64{5, 9}, nil})},
			`tensor "w.weight": is F8_E4M3 and has no w.weight_scale_inv`},
		{"fp8 without config", edit(fp8Files([]int64{2, 2}, safetensors.BF16), "weights/config.json", "quantization_config", "_config"), "has no quantization_config"},
		{"quantization method", edit(fp8Files([]int64{2, 2}, safetensors.BF16), "weights/config.json", `"fp8"`, `"awq"`), "quantization_config: quant_method is awq"},
		{"static activations", edit(fp8Files([]int64{2, 2}, safetensors.BF16), "weights/config.json", `"dynamic"`, `"static"`), "activation_scheme is static"},
		{"no method", edit(fp8Files([]int64{2, 2}, safetensors.BF16), "weights/config.json", `"quant_method"`, `"_method"`), "quant_method is missing"},
		{"block size", edit(fp8Files([]int64{2, 2}, safetensors.BF16), "weights/config.json", `[4,8]`, `[4,12]`), "weight_block_size is [4 12]"},
		{"quantization field", edit(fp8Files([]int64{2, 2}, safetensors.BF16), "weights/config.json", `"fmt"`, `"scale_fmt":"ue8m0","fmt"`), `unknown field "scale_fmt"`},
		{"index", folder{"weights/config.json": []byte(plainConfig), "weights/m.safetensors": shardFile(t, entry{"x", safetensors.U8, []int64{1}, nil}),
			"weights/model.safetensors.index.json": []byte(`{"weight_map":{"y":"m.safetensors"}}`)}, `tensor "y" is in no shard`},
		{"shard absent", folder{"weights/config.json": []byte(plainConfig), "weights/model.safetensors.index.json": []byte(`{"weight_map":{"y":"m.safetensors"}}`)}, `m.safetensors: no such file`},
		{"twice stored", folder{"weights/config.json": []byte(plainConfig), "weights/m.safetensors": shardFile(t, entry{"x", safetensors.U8, []int64{1}, nil}),
			"weights/n.safetensors": shardFile(t, entry{"x", safetensors.U8, []int64{1}, nil})}, `tensor "x" is in several shards`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := tc.files.write(t)
			c, err := Open(path)
			if err == nil {
				c.Close()
			}
			if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault) || !strings.Contains(err.Error(), path)) {
				t.Errorf("error %v, want %q", err, tc.fault)
			}
		})
	}
}

func TestTakeAndReadRefuse(t *testing.T) {
	open := func(shard []byte, config string, quantization []byte) *Checkpoint {
		files := folder{"weights/config.json": []byte(config), "weights/w.safetensors": shard}
		if quantization != nil {
			files[manifest.QuantizationPath] = quantization
		}
		c, err := Open(files.write(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	c := open(ternaryShard(t), plainConfig, ternary("w.safetensors"))
	for _, tc := range []struct {
		name  string
		shape []int
		fault string
	}{{"a", []int{2, 16}, ""}, {"a", []int{16, 2}, `tensor "a" has shape [2 16], the configuration says [16 2]`}, {"z", []int{1}, `tensor "z" is missing`}} {
		if _, err := c.Take(tc.name, tc.shape...); (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.fault)
		}
	}
	if err := c.Finish(); err == nil || !strings.Contains(err.Error(), `has no tensor "b" (1 such tensors)`) {
		t.Errorf("error %v", err)
	}

	bad := ternaryShard(t)
	bad[bytes.Index(bad, []byte{0xAA, 0x55})] = 0xB0 // codes 0, 0, 3, 2
	a, err := open(bad, plainConfig, ternary("w.safetensors")).Take("a", 2, 16)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Data(); err == nil || !strings.Contains(err.Error(), `tensor "a.codes" of w.safetensors: byte 3 holds code 3`) {
		t.Errorf("code 3: error %v", err)
	}

	for _, special := range []struct {
		dtype safetensors.DType
		bytes []byte
		fault bool
	}{{safetensors.BF16, []byte{0, 0x3F}, false}, {safetensors.BF16, []byte{0x80, 0xFF}, true}, {safetensors.F16, []byte{0, 0x7C}, true}, {safetensors.F32, []byte{1, 0, 0x80, 0x7F}, true}} {
		w, err := open(shardFile(t, entry{"w", safetensors.F8E4M3, []int64{1, 1}, []byte{0x7E}}, entry{"w_scale_inv", special.dtype, []int64{1, 1}, special.bytes}), fp8Config, nil).Take("w", 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Scales(); (err != nil) != special.fault {
			t.Errorf("scale %v: error %v", special.bytes, err)
		}
		if _, err := w.Data(); err != nil {
			t.Error(err)
		}
	}
	w, err := open(shardFile(t, entry{"w", safetensors.F8E4M3, []int64{1, 2}, []byte{1, 0xFF}}, entry{"w_scale_inv", safetensors.F32, []int64{1, 1}, nil}), fp8Config, nil).Take("w", 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Data(); err == nil || !strings.Contains(err.Error(), `element 1 is not a number`) {
		t.Errorf("NaN: error %v", err)
	}
}

func TestFind(t *testing.T) {
	code3 := func(b byte) bool { return b&3 == 3 || b>>2&3 == 3 || b>>4&3 == 3 || b>>6 == 3 }
	nan := func(b byte) bool { return b == 0x7F || b == 0xFF }
	for b := range 256 {
		for _, position := range []int{0, 7, 8, 17, 18} {
			data := bytes.Repeat([]byte{0xAA}, 19)
			data[position] = byte(b)
			want := map[bool]int{true: position, false: -1}
			if got := find(data, hasCode3); got != want[code3(byte(b))] {
				t.Errorf("code 3 in %#x at %d: found at %d", b, position, got)
			}
			if got := find(data, hasNaN); got != want[nan(byte(b))] {
				t.Errorf("NaN in %#x at %d: found at %d", b, position, got)
			}
		}
	}
}

// TestConfigFields reads every kind of field from a configuration.
func TestConfigFields(t *testing.T) {
	config := func(text string) *Config {
		path := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := readConfig(path)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := config(`{"architectures":["A"],"a":1,"outer":5,"text_config":{"a":2,"b":null,"f":0.5,"flag":true,"list":["x","y"],"ints":[1,2],"unset":false,"_private":1,"dtype":"x"},"b":3}`)
	if c.Architecture() != "A" || c.Int("a") != 2 || c.Int("b") != 3 || c.Int("outer") != 5 || c.Float("f") != 0.5 || c.IntOr("none", 9) != 9 ||
		!c.Flag("flag", false) || !slices.Equal(c.Strings("list"), []string{"x", "y"}) || !slices.Equal(c.Ints("ints"), []int{1, 2}) || c.Section("none") != nil {
		t.Error("a field was read wrongly")
	}
	if err := c.Finish(); err != nil {
		t.Error(err)
	}
	for _, tc := range []struct {
		text  string
		read  func(*Config)
		fault string
	}{
		{`{}`, func(c *Config) { c.Int("n") }, "config.json: n is missing"},
		{`{"n":null}`, func(c *Config) { c.Int("n") }, "n is missing"},
		{`{"n":1.5}`, func(c *Config) { c.Int("n") }, "n is 1.5, want a positive integer"},
		{`{"n":0}`, func(c *Config) { c.Int("n") }, "n is 0, want a positive integer"},
		{`{"n":"1"}`, func(c *Config) { c.Int("n") }, "n is 1, want a positive integer"},
		{`{"n":-1}`, func(c *Config) { c.Float("n") }, "n is -1, want a positive number"},
		{`{"n":1}`, func(c *Config) { c.Flag("n", true) }, "n is 1, want true or false"},
		{`{"n":true,"text_config":{"n":false}}`, func(c *Config) { c.Flag("n", true) }, "n is false in text_config and true at the top level"},
		{`{"n":[],"text_config":{"n":[]}}`, func(c *Config) { c.Flag("n", true) }, "n is [], want true or false"},
		{`{"n":[1]}`, func(c *Config) { c.Strings("n") }, "want a list of strings"},
		{`{"n":[-1]}`, func(c *Config) { c.Ints("n") }, "want a list of integers"},
		{`{"n":{}}`, func(c *Config) { c.Fixed("n", "a") }, "n is map[]; only [a] is supported"},
		{`{"n":1}`, func(c *Config) { c.Section("n") }, "n is 1, want an object"},
		{`{"n":{"x":1}}`, func(c *Config) { _ = c.Section("n").Finish() }, `config.json: n: unknown field "x"`},
		{`{"logit_scale":2}`, func(*Config) {}, `config.json: unknown field "logit_scale" could change what the model computes`},
		{`{"logit_scale":null,"flag":false,"empty":[],"none":{},"text":""}`, func(*Config) {}, ""},
	} {
		c := config(tc.text)
		tc.read(c)
		if err := c.Finish(); (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
			t.Errorf("%s: error %v, want %q", tc.text, err, tc.fault)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(plainConfig))
	f.Add([]byte(fp8Config))
	f.Add([]byte(`{"n":[1],"text_config":{"n":{"n":2},"tie":true},"tie":false}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fields := map[string]any{}
		if manifest.DecodeStrict(data, &fields) != nil {
			return
		}
		c, err := newConfig(fields)
		if err != nil {
			return
		}
		if c.Int("n") < 1 || c.Float("n") <= 0 {
			t.Error("a number that is not positive")
		}
		c.Architecture()
		c.Fixed("n", "a", true, 1.0)
		c.Flag("tie", false)
		for _, n := range c.Ints("n") {
			if n < 0 {
				t.Error("a negative number")
			}
		}
		c.Strings("n")
		if section := c.Section("n"); section != nil {
			section.Int("n")
			_ = section.Finish()
		}
		_ = c.Finish()
	})
}
