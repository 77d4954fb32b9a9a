package shrink

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

func decode(t testing.TB, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func configOf(t testing.TB, family string, changes map[string]any) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", family+".json"))
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	decode(t, data, &config)
	text := config
	if nested, ok := config["text_config"].(map[string]any); ok {
		text = nested
	}
	maps.Copy(text, changes)
	data, err = json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Twins of the published dimensions of every family, in every way to store them,
// have exactly the tensors that their config.json calls for, by the tests' own
// account of the family; nothing but headers is written for it.
func TestPublishedShapes(t *testing.T) {
	const limit = 256 << 20
	for family, want := range map[string]map[string]int64{
		"llama":                {"num_hidden_layers": 1, "hidden_size": 512, "num_attention_heads": 4, "num_key_value_heads": 1},
		"mistral":              {"num_hidden_layers": 1, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 1},
		"qwen2":                {"num_hidden_layers": 1, "hidden_size": 128, "num_attention_heads": 1, "num_key_value_heads": 1},
		"qwen3":                {"num_hidden_layers": 1, "hidden_size": 256, "num_attention_heads": 2, "num_key_value_heads": 1},
		"qwen3_moe":            {"num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 8, "num_experts": 16, "num_experts_per_tok": 8},
		"maple":                {"num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4, "num_experts": 16, "num_experts_per_tok": 8},
		"qwen2_5_vl":           {"num_hidden_layers": 1, "num_attention_heads": 4, "hidden_size": 512},
		"qwen2_5_vl-top-level": {"num_hidden_layers": 1},
		"qwen3_5":              {"num_hidden_layers": 4, "num_attention_heads": 4, "linear_num_key_heads": 1, "linear_num_value_heads": 2},
	} {
		config := configOf(t, family, nil)
		for _, s := range storages() {
			if family != "qwen3" && family != "qwen2_5_vl" && s.name != "bf16" && s.name != "block-fp8" && s.name != "packed" {
				continue // every storage for two families, the usual ones for the others
			}
			t.Run(family+"/"+s.name, func(t *testing.T) {
				folder := s.checkpoint(t, config).write(t)
				got, plan := planOf(t, folder, limit)
				checkTwin(t, s, got, plan)
				for key, n := range want {
					if s.name == "bf16" && plan.to.text[key] != n {
						t.Errorf("%s is %d, want %d", key, plan.to.text[key], n)
					}
				}
				if plan.bytes > limit {
					t.Errorf("%d bytes", plan.bytes)
				}
			})
		}
	}
}

func planOf(t *testing.T, folder string, limit int64) (config []byte, _ *plan) {
	t.Helper()
	s, err := readSubmission(folder)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.shrink(limit)
	if err != nil {
		t.Fatal(err)
	}
	config, err = s.model.rewrite(p.to)
	if err != nil {
		t.Fatal(err)
	}
	return config, p
}

// checkTwin holds a twin against what its own config.json calls for.
func checkTwin(t *testing.T, s storage, config []byte, p *plan) {
	t.Helper()
	want := s.tensors(t, config)
	for _, got := range p.shards[0].tensors {
		expected, ok := want[got.Name]
		switch {
		case !ok:
			t.Errorf("tensor %s is surplus", got.Name)
		case got.DType != expected.DType || !slices.Equal(got.Shape, expected.Shape):
			t.Errorf("tensor %s is %s %v, want %s %v", got.Name, got.DType, got.Shape, expected.DType, expected.Shape)
		}
		delete(want, got.Name)
	}
	for name := range want {
		t.Errorf("tensor %s is missing", name)
	}
	if s.entry == nil {
		return
	}
	quantities := s.quantities(t, config, onlyShard)
	if got, want := fmt.Sprint(encoded(t, p.quantization.Tensors)), fmt.Sprint(encoded(t, quantities)); got != want {
		t.Errorf("the quantization manifest differs:\ngot  %.2000s\nwant %.2000s", got, want)
	}
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// smallVocabulary makes a vocabulary small enough to write.
var smallVocabulary = map[string]any{"vocab_size": 512, "eos_token_id": 1}

// Twins of every family, with a vocabulary small enough to write: the files on disk
// are what was planned, are the same each time, and are small.
func TestTwinOfFamilies(t *testing.T) {
	for _, family := range []string{"llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "maple", "qwen2_5_vl", "qwen2_5_vl-top-level", "qwen3_5"} {
		for _, s := range storages() {
			experts := family == "maple" || family == "qwen3_moe" // tens of thousands of tensors
			if s.name != "bf16" && (s.name != "packed" && s.name != "block-fp8" || experts || testing.Short()) {
				continue
			}
			t.Run(family+"/"+s.name, func(t *testing.T) {
				const limit = 12 << 20
				source := s.checkpoint(t, configOf(t, family, smallVocabulary)).write(t)
				target, again := filepath.Join(t.TempDir(), "twin"), filepath.Join(t.TempDir(), "twin")
				got, err := Twin(source, target, limit)
				if err != nil {
					t.Fatal(err)
				}
				if got.Bytes > limit || got.Bytes >= got.RealBytes/8 {
					t.Errorf("%s", got)
				}
				config, p := planOf(t, source, limit)
				checkTwin(t, s, config, p)
				files := listing(t, target)
				if files["weights/config.json"] != string(config) {
					t.Error("config.json is not what was planned")
				}
				header, err := safetensors.ReadHeaderAt(strings.NewReader(files[onlyShard]), int64(len(files[onlyShard])))
				if err != nil || len(header.Tensors) != len(p.shards[0].tensors) {
					t.Errorf("the shard has not the %d tensors that were planned: %v", len(p.shards[0].tensors), err)
				}
				if _, err := Twin(source, again, limit); err != nil || !maps.Equal(files, listing(t, again)) {
					t.Errorf("the second twin differs (%v)", err)
				}
				if strings.HasPrefix(family, "qwen3") && family != "qwen3_moe" { // what the embedded runtime serves
					starts(t, filepath.Join(target, "weights"))
				}
			})
		}
	}
}

// Experts may be stacked in one tensor, packed or not.
func TestStackedExperts(t *testing.T) {
	c := checkpoint{shards: map[string][]safetensors.Tensor{}}
	decode(t, configOf(t, "maple", smallVocabulary), &c.config)
	entry := manifest.Quantity{
		Kind: manifest.KindPacked2Bit, Format: manifest.FormatMLXRowAlpha, Shape: []int64{256, 2048, 512},
		Codes:  &manifest.StoredTensor{File: onlyShard, Tensor: "down.codes"},
		Scales: &manifest.StoredTensor{File: onlyShard, Tensor: "down.row_alpha"},
	}
	c.quantization = &manifest.Quantization{Tensors: map[string]manifest.Quantity{"model.layers.0.mlp.switch_mlp.down_proj.weight": entry}}
	c.add("model.layers.0.mlp.experts.gate_up_proj", 256, 1024, 2048)
	c.shards[onlyShard] = append(c.shards[onlyShard],
		safetensors.Tensor{Name: "down.codes", DType: safetensors.U32, Shape: []int64{256, 2048, 32}},
		safetensors.Tensor{Name: "down.row_alpha", DType: safetensors.BF16, Shape: []int64{256, 2048}})
	_, p := planOf(t, c.write(t), 8<<20)
	got := map[string][]int64{}
	for _, tensor := range p.shards[0].tensors {
		got[tensor.Name] = tensor.Shape
	}
	hidden, expert := p.to.text["hidden_size"], p.to.text["moe_intermediate_size"]
	want := map[string][]int64{
		"model.layers.0.mlp.experts.gate_up_proj": {16, 2 * expert, hidden}, "down.codes": {16, hidden, expert / 16}, "down.row_alpha": {16, hidden},
	}
	if !maps.EqualFunc(got, want, slices.Equal) || hidden != 256 || expert != 256 {
		t.Errorf("%v, want %v", got, want)
	}
	if shape := p.quantization.Tensors["model.layers.0.mlp.switch_mlp.down_proj.weight"].Shape; !slices.Equal(shape, []int64{16, hidden, expert}) {
		t.Errorf("the manifest says %v", shape)
	}
}

// Affine biases stay the negatives of the scales, bit for bit.
func TestAffineBiases(t *testing.T) {
	s := storages()[5]
	source := s.checkpoint(t, configOf(t, "qwen3", smallVocabulary)).write(t)
	target := filepath.Join(t.TempDir(), "twin")
	if _, err := Twin(source, target, 1<<24); err != nil {
		t.Fatal(err)
	}
	data := listing(t, target)[onlyShard]
	_, p := planOf(t, source, 1<<24)
	values := map[string]string{}
	for _, tensor := range p.shards[0].tensors {
		begin := int64(len(p.shards[0].header)) + tensor.Begin
		values[tensor.Name] = data[begin : begin+tensor.Bytes()]
	}
	name := "model.layers.0.mlp.down_proj.weight"
	scales, biases := []byte(values[name+".scales"]), []byte(values[name+".biases"])
	for i := 1; i < len(scales); i += 2 {
		scales[i] ^= 0x80
	}
	if len(scales) == 0 || !slices.Equal(scales, biases) {
		t.Errorf("biases are not the negatives of the %d bytes of scales", len(scales))
	}
}
