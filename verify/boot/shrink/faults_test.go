package shrink

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// add adds a tensor in BF16.
func (c checkpoint) add(name string, shape ...int64) {
	c.shards[onlyShard] = append(c.shards[onlyShard], safetensors.Tensor{Name: name, DType: safetensors.BF16, Shape: shape})
}

// Every fault is one change of a submission that has a twin, and leaves nothing.
func TestFaults(t *testing.T) {
	small := func() checkpoint {
		return storages()[0].checkpoint(t, configOf(t, "qwen3", smallVocabulary))
	}
	for _, fault := range []struct {
		name  string
		limit int64
		spoil func(c *checkpoint)
		after func(t *testing.T, folder string)
		want  string
	}{
		{name: "clean", limit: 1 << 24},
		{name: "limit", limit: 1000, want: "more than 1000"},
		{name: "another architecture", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["architectures"] = []string{"NewForCausalLM"} }},
		{name: "another architecture's width", limit: 1 << 24, spoil: func(c *checkpoint) {
			c.config["architectures"], c.config["ffn_hidden_size"] = []string{"NewForCausalLM"}, 3072
		}, want: `its ffn_hidden_size is 3072, as its intermediate_size is: whether they belong together cannot be told`},
		{name: "head size", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["head_dim"], c.config["hidden_size"] = nil, 1000 }, want: "hidden_size 1000 is no multiple of num_attention_heads 16, and there is no head_dim"},
		{name: "no experts", limit: 1 << 24, spoil: func(c *checkpoint) { c.add("model.layers.0.mlp.gate.weight", 128, 1024) }, want: `tensor "model.layers.0.mlp.gate.weight": the model cannot be shrunk: config.json has no num_experts`},
		{name: "expert", limit: 1 << 24, spoil: func(c *checkpoint) {
			c.config["num_experts"], c.config["moe_intermediate_size"] = 4, 64
			c.add("model.layers.0.mlp.experts.4.up_proj.weight", 64, 1024)
		}, want: `the model cannot be shrunk: it is of expert 4, num_experts is 4`},
		{name: "layer", limit: 1 << 24, spoil: func(c *checkpoint) { c.add("model.layers.28.input_layernorm.weight", 1024) }, want: "it is of layer 28, num_hidden_layers is 28"},
		{name: "vision encoder", limit: 1 << 24, spoil: func(c *checkpoint) {
			c.config["vision_config"] = map[string]any{"hidden_size": 1024}
			c.add("model.visual.blocks.0.norm1.weight", 1024)
		}, want: "vision_config does not give the encoder's dimensions"},
		{name: "vision width", limit: 1 << 24, spoil: func(c *checkpoint) {
			c.config["vision_config"] = map[string]any{"depth": 1, "hidden_size": 64, "intermediate_size": 96, "num_heads": 4, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 2048}
		}, want: "vision_config has out_hidden_size 2048, the text model hidden_size 1024"},
		{name: "scale of no block", limit: 1 << 24, spoil: func(c *checkpoint) { c.add("model.layers.0.mlp.up_proj.weight_scale_inv", 24, 8) }, want: "it is no scale of a matrix in block FP8"},
		{name: "no architecture", limit: 1 << 24, spoil: func(c *checkpoint) { delete(c.config, "architectures") }, want: "there is no config.json of a model"},
		{name: "dimension", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["hidden_size"] = "wide" }, want: "read weights/config.json: hidden_size is wide"},
		{name: "no width", limit: 1 << 24, spoil: func(c *checkpoint) {
			c.config["architectures"], c.config["hidden_size"] = []string{"NewForCausalLM"}, nil
		}, want: "config.json has no hidden_size: no twin can be made of NewForCausalLM"},
		{name: "heads", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["num_key_value_heads"] = 3 }, want: "num_attention_heads 16 is no multiple of num_key_value_heads 3"},
		{name: "layers", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["num_hidden_layers"] = 1 << 30 }, want: "is more than 10000"},
		{name: "layer types", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["layer_types"] = []string{"full_attention"} }, want: "layer_types has 1 entries"},
		{name: "quantization", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["quantization_config"] = map[string]any{"quant_method": "awq"} }, want: "quant_method awq"},
		{name: "shape", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["intermediate_size"] = 4096 }, want: `tensor "model.layers.0.mlp.down_proj.weight": the model cannot be shrunk: it has shape [1024 3072], config.json gives [1024 4096]`},
		{name: "surplus", limit: 1 << 24, spoil: func(c *checkpoint) {
			c.shards["weights/model.safetensors"] = append(c.shards["weights/model.safetensors"], safetensors.Tensor{Name: "draft.weight", DType: safetensors.BF16, Shape: []int64{1}})
		}, want: `tensor "draft.weight": the model cannot be shrunk: nothing tells its shape from config.json`},
		{name: "type", limit: 1 << 24, spoil: func(c *checkpoint) { c.shards["weights/model.safetensors"][1].DType = safetensors.I64 }, want: "no values are known for its type I64"},
		{name: "no shard", limit: 1 << 24, spoil: func(c *checkpoint) { c.shards = nil }, want: "there is no safetensors file"},
		{name: "broken shard", limit: 1 << 24, after: func(t *testing.T, folder string) {
			write(t, folder, "weights/other.safetensors", []byte("none"), 0o644)
		}, want: "read weights/other.safetensors: "},
		{name: "two models", limit: 1 << 24, after: func(t *testing.T, folder string) {
			data, _ := os.ReadFile(filepath.Join(folder, "weights/config.json"))
			write(t, folder, "target/config.json", data, 0o644)
		}, want: "describes another model"},
		{name: "another config", limit: 1 << 24, after: func(t *testing.T, folder string) {
			write(t, folder, "code/config.json", []byte(`{"port": 8000}`), 0o644)
		}},
		{name: "manifest", limit: 1 << 24, after: func(t *testing.T, folder string) {
			write(t, folder, manifest.QuantizationPath, []byte(`{"base_model":null,"base_revision":null,"tensors":{"model.norm.weight":{"kind":"float","shape":[1024],"file":"absent.safetensors","tensor":"x"}}}`), 0o644)
		}, want: `file "absent.safetensors" is not there`},
		{name: "link", limit: 1 << 24, after: func(t *testing.T, folder string) {
			if err := os.Symlink("/etc/hostname", filepath.Join(folder, "link")); err != nil {
				t.Fatal(err)
			}
		}, want: "link is no file"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			c := small()
			if fault.spoil != nil {
				fault.spoil(&c)
			}
			source := c.write(t)
			if fault.after != nil {
				fault.after(t, source)
			}
			target := filepath.Join(t.TempDir(), "twin")
			_, err := Twin(source, target, fault.limit)
			if fault.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), fault.want) || strings.Contains(err.Error(), source) {
				t.Errorf("error %v, want %q", err, fault.want)
			}
			if _, err := os.Lstat(target); err == nil {
				t.Error("a target was left behind")
			}
		})
	}
}

func TestTargetIsNotTouched(t *testing.T) {
	source, target := qwen3(t, false, false).write(t), t.TempDir()
	write(t, target, "mine", []byte("x"), 0o644)
	if _, err := Twin(source, target, 1<<30); err == nil {
		t.Error("a folder that was there was taken")
	}
	if got := listing(t, target); !maps.Equal(got, map[string]string{"mine": "x"}) {
		t.Errorf("it has %v", got)
	}
}

// Small files are copies, large ones may be links; modes stay.
func TestOtherFiles(t *testing.T) {
	source := qwen3(t, false, false).write(t)
	large := make([]byte, linkFrom)
	write(t, source, "wheels/large.whl", large, 0o644)
	write(t, source, SelftestPath, []byte(`[{"prompt":[1],"tokens":[2]}]`), 0o644)
	target := filepath.Join(t.TempDir(), "twin")
	if _, err := Twin(source, target, 1<<30); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(target, SelftestPath)); err != nil || string(data) != "[]\n" {
		t.Errorf("the known answers are %q, which a twin does not give: %v", data, err)
	}
	for name, mode := range map[string]os.FileMode{"serve.sh": 0o755, "code/server.py": 0o444, "wheels/large.whl": 0o644} {
		real, err := os.Stat(filepath.Join(source, name))
		if err != nil {
			t.Fatal(err)
		}
		twin, err := os.Stat(filepath.Join(target, name))
		if err != nil {
			t.Fatal(err)
		}
		if twin.Mode().Perm() != mode || twin.Size() != real.Size() || os.SameFile(real, twin) && twin.Size() < linkFrom {
			t.Errorf("%s: %v, %d bytes, the same file %v", name, twin.Mode(), twin.Size(), os.SameFile(real, twin))
		}
	}
}

func FuzzReadModel(f *testing.F) {
	for _, family := range []string{"llama", "maple", "qwen2_5_vl", "qwen3_5", "qwen3_moe"} {
		f.Add(configOf(f, family, nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := readModel(data)
		if err != nil || m == nil {
			return
		}
		m.keptLayers, m.keptBlocks = 1, 1
		for _, to := range m.candidates(units{128, 8}) {
			for _, d := range [][2]dimensions{{m.text, to.text}, {m.vision, to.vision}} {
				for name, n := range d[1] {
					if n < 0 || n > d[0][name] || n == 0 && d[0][name] != 0 {
						t.Fatalf("%s is %d of %d", name, n, d[0][name])
					}
				}
			}
			if _, err := m.rewrite(to); err != nil {
				t.Fatal(err)
			}
		}
	})
}
