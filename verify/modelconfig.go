package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"slipway/manifest"
)

// modelConfig is what gates read of a config.json in the transformers
// library's form. Zero means that the file does not say.
type modelConfig struct {
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

// configFields is a JSON object whose unknown keys are somebody else's.
type configFields map[string]json.RawMessage

// parseConfig reads a config.json: strict JSON, no key twice. Of a model with a
// text part inside, the text part counts.
func parseConfig(data []byte) (*modelConfig, error) {
	var top configFields
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
	c := &modelConfig{}
	var architectures []string
	var quantization struct {
		Block []int64 `json:"weight_block_size"`
	}
	reads := []struct {
		fields configFields
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
		if err := r.fields.read(r.key, r.target); err != nil {
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

func (c *modelConfig) readDimensions(text configFields) error {
	for key, target := range map[string]*int64{
		"hidden_size": &c.Hidden, "intermediate_size": &c.Intermediate, "num_hidden_layers": &c.Layers,
		"vocab_size": &c.Vocabulary, "num_attention_heads": &c.Heads, "num_key_value_heads": &c.KeyValueHeads,
		"head_dim": &c.HeadDim, "linear_num_key_heads": &c.LinearKeyHeads, "linear_num_value_heads": &c.LinearValueHeads,
		"linear_key_head_dim": &c.LinearKeyDim, "linear_value_head_dim": &c.LinearValueDim,
		"linear_conv_kernel_dim": &c.LinearKernel,
	} {
		if err := text.read(key, target); err != nil {
			return err
		}
		if *target < 0 || *target > math.MaxInt32 {
			return fmt.Errorf("%s: %d is out of range", key, *target)
		}
	}
	return nil
}

// read decodes one field; an absent or null one leaves the target as it is.
func (f configFields) read(key string, target any) error {
	raw, ok := f[key]
	if !ok {
		return nil
	}
	if err := manifest.DecodeLoose(raw, target); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// tokens reads a token id, a list of them, or null.
func (f configFields) tokens(key string) ([]int64, error) {
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

// vocabulary is what a tokenizer.json says of token ids.
type vocabulary struct {
	largest int64
	tokens  int
	err     error
}

// readVocabulary finds the largest token id of a tokenizer.json of the
// tokenizers library: the values of model.vocab and added_tokens[].id.
func readVocabulary(data []byte) *vocabulary {
	v := &vocabulary{largest: -1}
	var file, model configFields
	var added []struct {
		ID int64 `json:"id"`
	}
	if v.err = manifest.DecodeLoose(data, &file); v.err != nil {
		return v
	}
	if v.err = errors.Join(file.read("added_tokens", &added), file.read("model", &model)); v.err != nil {
		return v
	}
	for _, token := range added {
		v.largest = max(v.largest, token.ID)
		v.tokens++
	}
	v.readIDs(model["vocab"])
	return v
}

// readIDs walks {"token": id, ...} without building a map of it. Unigram
// models write a list of [token, score] instead: ids are then positions.
func (v *vocabulary) readIDs(raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	if raw[0] == '[' {
		var pieces []json.RawMessage
		v.err = manifest.DecodeLoose(raw, &pieces)
		v.largest = max(v.largest, int64(len(pieces))-1)
		v.tokens += len(pieces)
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := decoder.Token()
		if err != nil {
			return // json.Unmarshal has found the text well formed: this is its end
		}
		if id, ok := token.(float64); ok {
			v.largest = max(v.largest, int64(id))
			v.tokens++
		}
	}
}
