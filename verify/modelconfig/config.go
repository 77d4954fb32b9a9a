// Package modelconfig reads what lies beside a model's weights, config.json,
// generation_config.json and tokenizer.json in the transformers library's forms,
// and says which tensors a config implies. All of it is the submission's own
// word.
package modelconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"slipway/manifest"
)

// Config is what gates read of a config.json in the transformers
// library's form. Zero means that the file does not say.
type Config struct {
	Architecture string
	Tied         bool // absent means false, the families' default

	Hidden, Intermediate, Layers, Vocabulary int64
	Heads, KeyValueHeads, HeadDim            int64
	LayerTypes                               []string
	OutputGate                               *bool

	LinearKeyHeads, LinearValueHeads, LinearKeyDim, LinearValueDim, LinearKernel int64

	EndTokens  []int64
	QuantBlock []int64 // weight_block_size of block FP8; nil without
}

// object is a JSON object whose unknown keys are somebody else's.
type object map[string]json.RawMessage

// Parse reads a config.json: strict JSON, no key twice. Of a model with a
// text part inside, the text part counts.
func Parse(data []byte) (*Config, error) {
	var top object
	if err := manifest.DecodeStrict(data, &top); err != nil {
		return nil, err
	}
	text := top
	if raw, ok := top["text_config"]; ok {
		text = nil
		if err := manifest.DecodeLoose(raw, &text); err != nil {
			return nil, fmt.Errorf("text_config: %w", err)
		}
	}
	c := &Config{}
	var architectures []string
	var quantization struct {
		Block []int64 `json:"weight_block_size"`
	}
	reads := []struct {
		object object
		key    string
		target any
	}{
		{top, "architectures", &architectures},
		{top, "quantization_config", &quantization},
		{text, "tie_word_embeddings", &c.Tied},
		{top, "tie_word_embeddings", &c.Tied},
		{text, "layer_types", &c.LayerTypes},
		{text, "attn_output_gate", &c.OutputGate},
	}
	for _, r := range reads {
		if err := r.object.read(r.key, r.target); err != nil {
			return nil, err
		}
	}
	if len(architectures) > 0 {
		c.Architecture = architectures[0]
	}
	c.QuantBlock = quantization.Block
	if err := c.readDimensions(text); err != nil {
		return nil, err
	}
	tokens, err := text.tokens("eos_token_id")
	c.EndTokens = tokens
	return c, err
}

func (c *Config) readDimensions(text object) error {
	for _, d := range []struct {
		key    string
		target *int64
	}{
		{"hidden_size", &c.Hidden}, {"intermediate_size", &c.Intermediate}, {"num_hidden_layers", &c.Layers},
		{"vocab_size", &c.Vocabulary}, {"num_attention_heads", &c.Heads}, {"num_key_value_heads", &c.KeyValueHeads},
		{"head_dim", &c.HeadDim}, {"linear_num_key_heads", &c.LinearKeyHeads}, {"linear_num_value_heads", &c.LinearValueHeads},
		{"linear_key_head_dim", &c.LinearKeyDim}, {"linear_value_head_dim", &c.LinearValueDim},
		{"linear_conv_kernel_dim", &c.LinearKernel},
	} {
		if err := text.read(d.key, d.target); err != nil {
			return err
		}
		if *d.target < 0 || *d.target > math.MaxInt32 {
			return fmt.Errorf("%s: %d is out of range", d.key, *d.target)
		}
	}
	return nil
}

// read decodes one field; an absent or null one leaves the target as it is.
func (f object) read(key string, target any) error {
	raw, ok := f[key]
	if !ok {
		return nil
	}
	if err := manifest.DecodeLoose(raw, target); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// EndTokens returns the token ids with which a generation_config.json ends
// answers.
func EndTokens(data []byte) ([]int64, error) {
	var file object
	if err := manifest.DecodeStrict(data, &file); err != nil {
		return nil, err
	}
	return file.tokens("eos_token_id")
}

// tokens reads a token id, a list of them, or null.
func (f object) tokens(key string) ([]int64, error) {
	raw := bytes.TrimSpace(f[key])
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] != '[' {
		var id int64
		err := f.read(key, &id)
		return []int64{id}, err
	}
	var ids []int64
	err := f.read(key, &ids)
	return ids, err
}
