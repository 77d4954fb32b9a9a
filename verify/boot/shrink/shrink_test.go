package shrink

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/internal/realshapes"
	"slipway/manifest"
	"slipway/manifest/safetensors"
	qwen "slipway/runtime/model"
	"slipway/runtime/weights"
)

// starts loads a checkpoint with the runtime, which refuses a tensor that is
// missing, surplus or of another shape than config.json says, and lets it answer.
func starts(t *testing.T, folder string) {
	t.Helper()
	checkpoint, err := weights.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer checkpoint.Close()
	m, err := qwen.Load(checkpoint, qwen.Limits{Slots: 1, Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	for _, tokens := range [][]int32{{1, 2, 3, 4, 5}, {6}} {
		results, err := m.Step([]qwen.Work{{Tokens: tokens, Sample: true}})
		if err != nil {
			t.Fatal(err)
		}
		if p := results[0].Logprob; p != p || p > 0 || p < -1e3 {
			t.Fatalf("a token of log-probability %v", p)
		}
	}
}

// listing returns every file of a folder and its content.
func listing(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		relative, _ := filepath.Rel(folder, name)
		files[relative] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func write(t *testing.T, folder, name string, data []byte, mode fs.FileMode) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

// checkpoint is a submission that a test writes: its tensors have no values, the
// files are as long as if they had.
type checkpoint struct {
	config       map[string]any
	shards       map[string][]safetensors.Tensor // by path
	quantization *manifest.Quantization
	index        bool
}

func (c checkpoint) write(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	config, err := json.Marshal(c.config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder, "weights/config.json", config, 0o644)
	write(t, folder, "serve.sh", []byte("#!/bin/sh\n"), 0o755)
	write(t, folder, "code/server.py", []byte("pass\n"), 0o444)
	placed := map[string]string{}
	for name, tensors := range c.shards {
		header, err := safetensors.EncodeHeader(tensors, map[string]string{"format": "pt"})
		if err != nil {
			t.Fatal(err)
		}
		write(t, folder, name, header, 0o644)
		size := int64(len(header))
		laid, err := safetensors.Layout(tensors)
		if err != nil {
			t.Fatal(err)
		}
		for _, tensor := range laid {
			size += tensor.Bytes()
			placed[tensor.Name] = filepath.Base(name)
		}
		if err := os.Truncate(filepath.Join(folder, name), size); err != nil { // a hole: no bytes on disk
			t.Fatal(err)
		}
	}
	if c.quantization != nil {
		data, err := c.quantization.Encode()
		if err != nil {
			t.Fatal(err)
		}
		write(t, folder, manifest.QuantizationPath, data, 0o644)
	}
	if c.index {
		data, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": placed})
		if err != nil {
			t.Fatal(err)
		}
		write(t, folder, "weights/"+safetensors.IndexName, data, 0o644)
	}
	return folder
}

// qwen35 is Qwen3.5-4B at its real dimensions, in two shards with an index:
// packed as ternary submissions are, or in BF16.
func qwen35(t testing.TB, packed bool, group int64) checkpoint {
	real := realshapes.Qwen35With4B()
	c := checkpoint{shards: map[string][]safetensors.Tensor{}, index: true}
	data, err := os.ReadFile("testdata/qwen3_5.json")
	if err == nil {
		err = json.Unmarshal(data, &c.config)
	}
	if err != nil {
		t.Fatal(err)
	}
	quantization := manifest.Quantization{Format: "test", Tensors: map[string]manifest.Quantity{}}
	contract := real.Contract()
	for i, name := range contract.Names() {
		tensor := contract.Tensors[name]
		dtype, _ := safetensors.ParseDType(tensor.DType)
		file := fmt.Sprintf("weights/part-%d.safetensors", i%2)
		if packed && realshapes.Packable(name) {
			g := min(group, tensor.Shape[1])
			quantization.Tensors[name] = manifest.Quantity{
				Kind: manifest.KindPacked2Bit, Shape: tensor.Shape, GroupSize: g,
				Codes: &manifest.StoredTensor{File: file, Tensor: name + ".codes"}, Scales: &manifest.StoredTensor{File: file, Tensor: name + ".scales"},
			}
			c.shards[file] = append(c.shards[file],
				safetensors.Tensor{Name: name + ".codes", DType: safetensors.U8, Shape: []int64{tensor.Shape[0], tensor.Shape[1] / 4}},
				safetensors.Tensor{Name: name + ".scales", DType: safetensors.F16, Shape: []int64{tensor.Shape[0], (tensor.Shape[1] + g - 1) / g}})
			continue
		}
		quantization.Tensors[name] = manifest.Quantity{Kind: manifest.KindFloat, Shape: tensor.Shape, File: file, Tensor: name}
		c.shards[file] = append(c.shards[file], safetensors.Tensor{Name: name, DType: dtype, Shape: tensor.Shape})
	}
	if packed {
		c.quantization = &quantization
	}
	return c
}

// qwen3 is a Qwen3 of the dimensions of the 0.6B one, in block FP8 or BF16.
func qwen3(t testing.TB, eight, untied bool) checkpoint {
	s := storages()[0]
	if eight {
		s = storages()[2]
	}
	return s.checkpoint(t, configOf(t, "qwen3", map[string]any{"tie_word_embeddings": !untied}))
}

func TestTwinOfRealShapes(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 700 MB")
	}
	for name, c := range map[string]struct {
		source         checkpoint
		layers, hidden int64
	}{
		"Qwen3.5-4B packed":           {qwen35(t, true, 128), 4, 256},
		"Qwen3.5-4B, one scale a row": {qwen35(t, true, 1<<20), 4, 256},
		"Qwen3.5-4B in BF16":          {qwen35(t, false, 0), 4, 256},
		"Qwen3-0.6B in block FP8":     {qwen3(t, true, false), 1, 256},
		"Qwen3-0.6B, head untied":     {qwen3(t, false, true), 1, 256},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := c.source.write(t), filepath.Join(t.TempDir(), "twin")
			const limit = 200_000_000
			got, err := Twin(source, target, limit)
			if err != nil {
				t.Fatal(err)
			}
			if got.Layers != c.layers || got.Hidden != c.hidden || got.RealLayers < 28 {
				t.Errorf("%s", got)
			}
			size := int64(0)
			for shard := range c.source.shards {
				info, err := os.Stat(filepath.Join(target, shard))
				if err != nil {
					t.Fatal(err)
				}
				size += info.Size()
			}
			if size != got.Bytes || size > limit {
				t.Errorf("%d bytes, described as %d", size, got.Bytes)
			}
			starts(t, filepath.Join(target, "weights"))
		})
	}
}

// The examples' twins start, keep every other file, and are the same each time.
func TestTwinOfExamples(t *testing.T) {
	for _, name := range []string{"ternary", "drafter"} {
		t.Run(name, func(t *testing.T) {
			source := filepath.Join("../../../examples/abacus", name)
			before := listing(t, source)
			target := filepath.Join(t.TempDir(), "twin")
			got, err := Twin(source, target, 2_000_000)
			if err != nil {
				t.Fatal(err)
			}
			starts(t, target)
			if got.Layers >= got.RealLayers || got.Bytes >= got.RealBytes {
				t.Errorf("%s", got)
			}
			files := listing(t, target)
			for path, content := range before {
				replaced := path == "config.json" || path == manifest.QuantizationPath || strings.HasSuffix(path, ".safetensors")
				if (files[path] == content) == replaced {
					t.Errorf("%s: replaced %v, want %v", path, !replaced, replaced)
				}
			}
			if len(files) != len(before) || !maps.Equal(before, listing(t, source)) {
				t.Errorf("%d files, want %d, and the source as it was", len(files), len(before))
			}
			again := filepath.Join(t.TempDir(), "twin")
			if _, err := Twin(source, again, 2_000_000); err != nil || !maps.Equal(files, listing(t, again)) {
				t.Errorf("the second twin differs (%v)", err)
			}
		})
	}
}

func TestConfigKeepsTheRest(t *testing.T) {
	const real = `{"architectures":["Qwen3ForCausalLM"],"vocab_size":512,"hidden_size":1024,"intermediate_size":2048,"num_hidden_layers":3,"num_attention_heads":8,"num_key_value_heads":4,"head_dim":128,"rms_norm_eps":1e-06,"rope_theta":10000000.0,"rope_scaling":null,"layer_types":["full_attention","full_attention","full_attention"],"use_cache":true,"vision_config":{"out_hidden_size":1024,"window_size":1024}}`
	m, err := readModel([]byte(real))
	if err != nil {
		t.Fatal(err)
	}
	m.keptLayers = 1
	got, err := m.rewrite(m.candidates(units{128, 8})[0])
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, got); err != nil {
		t.Fatal(err)
	}
	const want = `{"architectures":["Qwen3ForCausalLM"],"head_dim":128,"hidden_size":256,"intermediate_size":512,"layer_types":["full_attention"],"num_attention_heads":2,"num_hidden_layers":1,"num_key_value_heads":1,"rms_norm_eps":1e-06,"rope_scaling":null,"rope_theta":10000000.0,"use_cache":true,"vision_config":{"out_hidden_size":256,"window_size":1024},"vocab_size":512}`
	if compact.String() != want {
		t.Errorf("got  %s\nwant %s", &compact, want)
	}
}

func TestNarrowed(t *testing.T) {
	m, err := readModel(configOf(t, "qwen3_5", nil))
	if err != nil {
		t.Fatal(err)
	}
	m.keptLayers, m.keptBlocks = 4, 1
	for unit := int64(8); unit <= 1024; unit *= 2 { // a whole group stays a whole group
		for _, to := range m.candidates(units{unit, unit}) {
			for _, formulas := range []map[string]string{textShapes, layerShapes, visionShapes, blockShapes} {
				for name, formula := range formulas {
					from, small := m.text, to.text
					if strings.HasPrefix(name, "merger") || strings.Contains(name, "attn.qkv") {
						from, small = m.vision, to.vision
					}
					real, err := from.shape(formula)
					if err != nil || strings.HasPrefix(formula, "linear_num_value_heads") && !strings.Contains(formula, "*") {
						continue // of another family, or a number for each head, which no group spans
					}
					got, err := small.shape(formula)
					if err != nil {
						t.Fatal(err)
					}
					for i := range real {
						if real[i]%unit == 0 && got[i]%unit != 0 {
							t.Errorf("unit %d: %s: %v became %v", unit, name, real, got)
						}
					}
				}
			}
		}
	}
}
