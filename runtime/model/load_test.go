package model

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
	"slipway/runtime/weights"
)

// copyOf is a checkpoint in memory that a test may damage.
type copyOf struct {
	config  string
	other   map[string][]byte
	tensors []storedTensor
}

type storedTensor struct {
	safetensors.Tensor
	data []byte
}

func readCheckpoint(t testing.TB, folder string) *copyOf {
	c := &copyOf{other: map[string][]byte{}}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		switch {
		case entry.Name() == "config.json":
			c.config = string(readFile(t, path))
		case entry.Name() == manifest.QuantizationPath:
			c.other[entry.Name()] = readFile(t, path)
		case filepath.Ext(path) == ".safetensors":
			file := openSafetensors(t, path)
			for _, tensor := range file.Header.Tensors {
				c.tensors = append(c.tensors, storedTensor{tensor, tensorBytes(t, file, tensor.Name)})
			}
		}
	}
	return c
}

func readFile(t testing.TB, path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// write stores the checkpoint with all tensors in one shard.
func (c *copyOf) write(t testing.TB) string {
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "config.json"), []byte(c.config))
	for name, data := range c.other {
		writeFile(t, filepath.Join(folder, name), data)
	}
	var tensors []safetensors.Tensor
	var data []byte
	for _, tensor := range c.tensors {
		tensors, data = append(tensors, tensor.Tensor), append(data, tensor.data...)
	}
	header, err := safetensors.EncodeHeader(tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, "model.safetensors"), append(header, data...))
	return folder
}

// set replaces text of config.json.
func set(old, new string) func(*copyOf) {
	return func(c *copyOf) {
		if !strings.Contains(c.config, old) {
			panic("config.json has no " + old)
		}
		c.config = strings.Replace(c.config, old, new, 1)
	}
}

func (c *copyOf) find(name string) *storedTensor {
	i := slices.IndexFunc(c.tensors, func(t storedTensor) bool { return t.Name == name })
	if i < 0 {
		panic("no tensor " + name)
	}
	return &c.tensors[i]
}

func change(name string, edit func(*storedTensor)) func(*copyOf) {
	return func(c *copyOf) { edit(c.find(name)) }
}

func drop(name string) func(*copyOf) {
	return func(c *copyOf) {
		c.find(name)
		c.tensors = slices.DeleteFunc(c.tensors, func(t storedTensor) bool { return t.Name == name })
	}
}

// add stores a copy of a tensor under another name.
func add(name, like string) func(*copyOf) {
	return func(c *copyOf) {
		tensor := *c.find(like)
		tensor.Name = name
		c.tensors = append(c.tensors, tensor)
	}
}

func TestLoadRefuses(t *testing.T) {
	const (
		upProj = "model.layers.1.mlp.up_proj.weight"
		text   = "model.language_model."
	)
	transpose := func(t *storedTensor) { t.Shape[0], t.Shape[1] = t.Shape[1], t.Shape[0] }
	for _, family := range []struct {
		name   string
		faults []fault
	}{
		{"qwen3", []fault{
			{"clean", func(*copyOf) {}, ""},
			{"tied with a stored head", add("lm_head.weight", "model.embed_tokens.weight"), ""},
			{"untied with a head", both(set(`"tie_word_embeddings": true`, `"tie_word_embeddings": false`), add("lm_head.weight", "model.embed_tokens.weight")), ""},
			{"other spelling of rope", both(set(`"rope_scaling": null`, `"rope_parameters": {"rope_type": "default", "rope_theta": 1000000}`), set(`"rope_theta": 1000000,`, ``)), ""},
			{"private fields", set(`"use_cache"`, `"_name_or_path": "x", "sliding_window_pattern": null, "use_cache"`), ""},
			{"untied without a head", set(`"tie_word_embeddings": true`, `"tie_word_embeddings": false`), `tie_word_embeddings is false and there is no tensor "lm_head.weight"`},
			{"architecture", set("Qwen3ForCausalLM", "Qwen9ForCausalLM"), `config.json: unknown architecture "Qwen9ForCausalLM"`},
			{"no architecture", set(`"Qwen3ForCausalLM"`, ``), `config.json: unknown architecture ""`},
			{"missing tensor", drop(upProj), `tensor "model.layers.1.mlp.up_proj.weight" is missing`},
			{"missing layer", set(`"num_hidden_layers": 3`, `"num_hidden_layers": 4`), `layer_types has 3 entries, num_hidden_layers is 4`},
			{"surplus tensor", add("model.layers.1.mlp.up_proj.bias", "model.norm.weight"), `the architecture has no tensor "model.layers.1.mlp.up_proj.bias" (1 such tensors)`},
			{"vision in a text model", add("model.visual.x", "model.norm.weight"), `the architecture has no tensor "model.visual.x"`},
			{"shape", change(upProj, transpose), `tensor "model.layers.1.mlp.up_proj.weight" has shape [96 160], the configuration says [160 96]`},
			{"dtype", change(upProj, func(t *storedTensor) { t.DType = safetensors.I16 }), `tensor "model.layers.1.mlp.up_proj.weight" is stored as I16`},
			{"norm dtype", change("model.norm.weight", func(t *storedTensor) { t.DType = safetensors.U16 }), `tensor "model.norm.weight" is stored as U16`},
			{"head width", set(`"head_dim": 32`, `"head_dim": 16`), `self_attn.q_proj.weight" has shape [192 96], the configuration says [96 96]`},
			{"missing field", set(`"num_key_value_heads": 2,`, ``), "num_key_value_heads is missing"},
			{"heads", set(`"num_key_value_heads": 2`, `"num_key_value_heads": 4`), "num_attention_heads 6 is no multiple of num_key_value_heads 4"},
			{"activation", set(`"silu"`, `"gelu"`), "hidden_act is gelu; only [silu] is supported"},
			{"bias", set(`"attention_bias": false`, `"attention_bias": true`), "attention_bias is true"},
			{"rope scaling", set(`"rope_scaling": null`, `"rope_scaling": {"rope_type": "yarn", "factor": 4.0}`), "rope_scaling: rope_type is yarn"},
			{"old rope scaling", set(`"rope_scaling": null`, `"rope_scaling": {"type": "linear", "factor": 4.0}`), "rope_scaling: type is linear"},
			{"rope factor", set(`"rope_scaling": null`, `"rope_scaling": {"type": "default", "factor": 4.0}`), `rope_scaling: unknown field "factor"`},
			{"two thetas", set(`"rope_scaling": null`, `"rope_parameters": {"rope_theta": 10000}`), "rope_theta is given as [1e+06 10000]"},
			{"no theta", set(`"rope_theta": 1000000,`, ``), "rope_theta is missing"},
			{"partly rotated", set(`"rope_scaling": null`, `"partial_rotary_factor": 0.5`), "partial_rotary_factor is 0.5; only [1] is supported"},
			{"sliding window", set(`"use_sliding_window": false`, `"use_sliding_window": true`), "use_sliding_window is true"},
			{"sliding layers", set(`"full_attention"`, `"sliding_attention"`), `layer_types has "sliding_attention"`},
			{"unknown field", set(`"use_cache"`, `"logit_softcap": 30.0, "use_cache"`), `unknown field "logit_softcap" could change what the model computes`},
			{"duplicate field", set(`"use_cache"`, `"hidden_size": 96, "use_cache"`), `key "hidden_size" given twice`},
			{"context", set(`"max_position_embeddings": 4096`, `"max_position_embeddings": 63`), "64 tokens a sequence, config.json: max_position_embeddings is 63"},
			{"huge hidden size", set(`"hidden_size": 96`, `"hidden_size": 2e9`), `embed_tokens.weight" has shape [512 96], the configuration says [512 2000000000]`},
			{"huge vocabulary", set(`"vocab_size": 512`, `"vocab_size": 2e9`), `embed_tokens.weight" has shape [512 96], the configuration says [2000000000 96]`},
			{"huge intermediate size", set(`"intermediate_size": 160`, `"intermediate_size": 2e9`), `layers.0.mlp.gate_proj.weight" has shape [160 96], the configuration says [2000000000 96]`},
			{"huge heads", set(`"head_dim": 32`, `"head_dim": 2e9`), "num_attention_heads 6 times head_dim 2000000000 is too large"},
			{"many heads", set(`"num_attention_heads": 6`, `"num_attention_heads": 2e9`), "num_attention_heads 2000000000 times head_dim 32 is too large"},
			{"wide heads", set(`"head_dim": 32`, `"head_dim": 2e8`), `self_attn.q_proj.weight" has shape [192 96], the configuration says [1200000000 96]`},
			{"many key heads", set(`"num_key_value_heads": 2`, `"num_key_value_heads": 2e9`), "num_key_value_heads 2000000000 times head_dim 32 is too large"},
			{"layers past 32 bits", set(`"num_hidden_layers": 3`, `"num_hidden_layers": 1e12`), "num_hidden_layers is 1e+12, want a positive integer"},
			{"many layers", both(set(`"num_hidden_layers": 3`, `"num_hidden_layers": 2e9`), set(`"layer_types"`, `"_types"`)), `layers.3.input_layernorm.weight" is missing`},
			{"end token", set(`"eos_token_id": 1`, `"eos_token_id": 512`), "eos_token_id 512 is not below vocab_size 512"},
		}},
		{"qwen3-fp8", []fault{
			{"clean", func(*copyOf) {}, ""},
			{"block size", set("128,\n   128", "64,\n   64"), `has scales of shape`},
			{"not a number", change("model.layers.0.self_attn.q_proj.weight", func(t *storedTensor) { t.data[5] = 0x7F }), "element 5 is not a number"},
			{"unscaled", drop(upProj + "_scale_inv"), `tensor "model.layers.1.mlp.up_proj.weight": is F8_E4M3 and has no`},
			{"scale of a dense tensor", add("model.norm.weight_scale_inv", "model.norm.weight"), `the architecture has no tensor "model.norm.weight_scale_inv"`},
		}},
		{"qwen3_5", []fault{
			{"clean", func(*copyOf) {}, ""},
			{"text-only names", func(c *copyOf) {
				c.config = strings.Replace(c.config, "Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM", 1)
				for i := range c.tensors {
					c.tensors[i].Name = strings.Replace(c.tensors[i].Name, text, "model.", 1)
				}
			}, ""},
			{"interval instead of types", set(`"layer_types": [`, `"full_attention_interval": 4, "_types": [`), ""},
			{"published fields", set(`"use_cache": true,`, `"attn_output_gate": true, "output_gate_type": "swish", "mamba_ssm_dtype": "float32", "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false,`), ""},
			{"other vision names", func(c *copyOf) {
				for i := range c.tensors {
					c.tensors[i].Name = strings.Replace(c.tensors[i].Name, "model.visual.", "visual.", 1)
				}
			}, ""},
			{"interval", set(`"layer_types": [`, `"full_attention_interval": 2, "_types": [`), `layers.1.self_attn.q_proj.weight" is missing`},
			{"no output gate", set(`"use_cache": true,`, `"attn_output_gate": false,`), "attn_output_gate is false"},
			{"other output gate", set(`"use_cache": true,`, `"output_gate_type": "sigmoid",`), "output_gate_type is sigmoid"},
			{"state dtype", set(`"use_cache": true,`, `"mamba_ssm_dtype": "bfloat16",`), "mamba_ssm_dtype is bfloat16"},
			{"two rotary factors", set(`"partial_rotary_factor": 0.25,`, `"partial_rotary_factor": 0.5,`), "partial_rotary_factor is given as [0.5 0.25]"},
			{"ties disagree", set(`"tie_word_embeddings": true`, `"tie_word_embeddings": false`), "tie_word_embeddings is false in text_config and true at the top level"},
			{"value heads", set(`"linear_num_value_heads": 4`, `"linear_num_value_heads": 3`), "linear_num_value_heads 3 is no multiple of linear_num_key_heads 2"},
			{"convolution", set(`"linear_conv_kernel_dim": 4`, `"linear_conv_kernel_dim": 3`), `conv1d.weight" has shape [256 1 4], the configuration says [256 1 3]`},
			{"long convolution", set(`"linear_conv_kernel_dim": 4`, `"linear_conv_kernel_dim": 2e9`), `conv1d.weight" has shape [256 1 4], the configuration says [256 1 2000000000]`},
			{"huge key heads", set(`"linear_key_head_dim": 32`, `"linear_key_head_dim": 2e9`), "linear_num_key_heads 2 times linear_key_head_dim 2000000000 is too large"},
			{"wide value heads", set(`"linear_value_head_dim": 32`, `"linear_value_head_dim": 4e8`), `in_proj_qkv.weight" has shape [256 128], the configuration says [1600000128 128]`},
			{"many layers of an interval", both(set(`"num_hidden_layers": 8`, `"num_hidden_layers": 2e9`), set(`"layer_types"`, `"_types"`)), `layers.8.input_layernorm.weight" is missing`},
			{"top-level field", set(`"video_token_id": 509`, `"logit_scale": 2.0, "video_token_id": 509`), `unknown field "logit_scale" could change what the model computes`},
			{"missing decay", drop(text + "layers.4.linear_attn.A_log"), `layers.4.linear_attn.A_log" is missing`},
			{"layer type", set(`"full_attention"`, `"sliding_attention"`), `layer_types has "sliding_attention"`},
		}},
		{"qwen3_5-ternary", []fault{
			{"clean", func(*copyOf) {}, ""},
			{"code 3", change(text+"layers.0.mlp.up_proj.weight.codes", func(t *storedTensor) { t.data[7] = 0xC0 }), "byte 7 holds code 3"},
			{"infinite scale", change(text+"layers.0.mlp.up_proj.weight.scales", func(t *storedTensor) { t.data[1] = 0x7C; t.data[0] = 0 }), "scale 0 is not finite"},
			{"ternary and dense", add(text+"layers.0.mlp.up_proj.weight", text+"norm.weight"), "is stored, and the quantization manifest says that it is another"},
			{"packed norm", func(c *copyOf) {
				const codes = text + "layers.0.mlp.up_proj.weight"
				name := text + "layers.0.input_layernorm.weight"
				drop(name)(c)
				quantization := c.other[manifest.QuantizationPath]
				c.other[manifest.QuantizationPath] = bytes.Replace(quantization, []byte(`"`+codes+`": {`), []byte(`"`+name+`": {`), 1)
			}, `layers.0.input_layernorm.weight" has shape [512 256], the configuration says [256]`},
		}},
	} {
		g := openGolden(t, "testdata/golden/"+family.name)
		for _, fault := range family.faults {
			t.Run(family.name+"/"+fault.name, func(t *testing.T) { fault.check(t, readCheckpoint(t, g.checkpoint)) })
		}
	}
}

// fault is one damage to a checkpoint and what the error must say; "" loads.
type fault struct {
	name   string
	damage func(*copyOf)
	want   string
}

func both(first, second func(*copyOf)) func(*copyOf) {
	return func(c *copyOf) { first(c); second(c) }
}

func (f fault) check(t *testing.T, c *copyOf) {
	for name, data := range c.other { // all tensors are in one shard here
		c.other[name] = bytes.ReplaceAll(data, []byte("ternary-00001.safetensors"), []byte("model.safetensors"))
	}
	f.damage(c)
	folder := c.write(t)
	err := tryLoad(folder)
	if f.want == "" {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), f.want) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("error %v, want one line with %q", err, f.want)
	}
	if !strings.Contains(err.Error(), folder) && !strings.HasPrefix(err.Error(), "load model: ") {
		t.Errorf("error %v does not name the checkpoint", err)
	}
}

func tryLoad(folder string) error {
	checkpoint, err := weights.Open(folder)
	if err != nil {
		return err
	}
	defer checkpoint.Close()
	m, err := Load(checkpoint, Limits{Slots: 1, Context: 64, Device: testDevice})
	if err == nil {
		err = m.Close()
	}
	return err
}

func TestLoadLimits(t *testing.T) {
	g := openGolden(t, "testdata/golden/qwen3")
	for _, tc := range []struct {
		limits, want Limits
		fault        bool
	}{
		{Limits{Slots: 2, Context: 1000}, Limits{2, 1000, 256, 0, nil}, false},
		{Limits{Slots: 2, Context: 100}, Limits{2, 100, 100, 0, nil}, false},
		{Limits{Slots: 2, Context: 1000, Prefill: 5}, Limits{2, 1000, 5, 0, nil}, false},
		{Limits{Slots: 0, Context: 1}, Limits{}, true},
		{Limits{Slots: 1, Context: 0}, Limits{}, true},
		{Limits{Slots: 1, Context: 1, Prefill: -1}, Limits{}, true},
		{Limits{Slots: 1, Context: 1, Tokens: -1}, Limits{}, true},
	} {
		checkpoint, err := weights.Open(g.checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Load(checkpoint, tc.limits)
		if (err != nil) != tc.fault || err == nil && m.Limits() != tc.want {
			t.Errorf("%+v: error %v, want %+v", tc.limits, err, tc.want)
		}
		checkpoint.Close()
	}
}

// An untied head is used, and a stored copy of a tied one is not.
func TestHead(t *testing.T) {
	g := openGolden(t, "testdata/golden/qwen3")
	ids := integers(t, g.values, "ids.1")
	want := stepLogits(t, loadFolder(t, g.checkpoint, Limits{Slots: 1, Context: 8}), 0, ids...)
	for _, tied := range []bool{true, false} {
		c := readCheckpoint(t, g.checkpoint)
		set(`"tie_word_embeddings": true`, fmt.Sprintf(`"tie_word_embeddings": %v`, tied))(c)
		add("lm_head.weight", "model.embed_tokens.weight")(c)
		head := c.find("lm_head.weight")
		width := len(head.data) / 512
		head.data = append(slices.Clone(head.data[width:]), head.data[:width]...) // token i has the row of token i+1
		got := stepLogits(t, loadFolder(t, c.write(t), Limits{Slots: 1, Context: 8}), 0, ids...)
		if !tied {
			got = append(got[511:], got[:511]...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("tied %v: logits differ, relative error %.2g", tied, relativeError(got, want))
		}
	}
}
