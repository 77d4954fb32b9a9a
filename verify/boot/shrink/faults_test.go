package shrink

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// Every fault is one change of a submission that has a twin, and leaves nothing.
func TestFaults(t *testing.T) {
	small := func() checkpoint {
		c := qwen3(false, false)
		c.config["vocab_size"] = 512
		c.shards["weights/model.safetensors"][0].Shape = []int64{512, 1024}
		return c
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
		{name: "architecture", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["architectures"] = []string{"LlamaForCausalLM"} }, want: `architecture "LlamaForCausalLM" is not one whose tensors are known`},
		{name: "no architecture", limit: 1 << 24, spoil: func(c *checkpoint) { delete(c.config, "architectures") }, want: "there is no config.json of a model"},
		{name: "dimension", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["hidden_size"] = "wide" }, want: "read weights/config.json: hidden_size is wide"},
		{name: "heads", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["num_key_value_heads"] = 3 }, want: "num_attention_heads 16 is no multiple of num_key_value_heads 3"},
		{name: "layers", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["num_hidden_layers"] = 1 << 30 }, want: "is more than 10000"},
		{name: "layer types", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["layer_types"] = []string{"full_attention"} }, want: "layer_types has 1 entries"},
		{name: "quantization", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["quantization_config"] = map[string]any{"quant_method": "awq"} }, want: "quant_method awq"},
		{name: "shape", limit: 1 << 24, spoil: func(c *checkpoint) { c.config["intermediate_size"] = 4096 }, want: `tensor "model.layers.0.mlp.down_proj.weight": the model cannot be shrunk: it has shape [1024 3072], config.json gives [1024 4096]`},
		{name: "surplus", limit: 1 << 24, spoil: func(c *checkpoint) {
			c.shards["weights/model.safetensors"] = append(c.shards["weights/model.safetensors"], safetensors.Tensor{Name: "draft.weight", DType: safetensors.BF16, Shape: []int64{1}})
		}, want: `tensor "draft.weight": the model cannot be shrunk: the architecture has no such tensor`},
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
			if err == nil || !strings.Contains(err.Error(), fault.want) || !strings.HasPrefix(err.Error(), "shrink "+source+": ") {
				t.Errorf("error %v, want %q", err, fault.want)
			}
			if _, err := os.Lstat(target); err == nil {
				t.Error("a target was left behind")
			}
		})
	}
}

func TestTargetIsNotTouched(t *testing.T) {
	source, target := qwen3(false, false).write(t), t.TempDir()
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
	source := qwen3(false, false).write(t)
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
	for _, c := range []checkpoint{qwen35(false, 0), qwen3(true, false)} {
		data, err := json.Marshal(c.config)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := readModel(data)
		if err != nil || m == nil {
			return
		}
		to := m.dimensions.narrowed(128, 128)
		if to.layers < 1 || to.layers > m.dimensions.layers || to.heads > m.dimensions.heads || to.hidden > m.dimensions.hidden {
			t.Fatalf("%+v of %+v", to, m.dimensions)
		}
		if _, err := m.rewrite(to); err != nil {
			t.Fatal(err)
		}
	})
}
