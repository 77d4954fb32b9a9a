package broken

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"slipway/manifest/safetensors"
)

// Dimensions of the majority model. Axes of the residual stream: one for each
// word, one for the token of padding, and classAxis.
const (
	hidden       = 32
	heads        = 4
	intermediate = 32
	classAxis    = hidden - 1 // 1 in every counted token

	// amplified is what attention writes of a token that is the whole prompt; it
	// stands above what the current token's own embedding adds to a logit.
	amplified = 64
	// afterWord is the end token's weight on classAxis. RMSNorm makes 4 of the 1
	// in a counted token (two ones among 32 numbers), so that a word's own logit
	// is at most 4*amplified + 2; the end token comes after a word, and only there.
	afterWord = 512
	never     = 0 // for drafters: they go on
)

type matrix struct {
	name          string
	rows, columns int
	at            func(row, column int) float32
}

// matrices are the model's tensors. Queries and keys are zero, so that attention
// is uniform; values and output carry the embeddings of what was attended to: the
// next token is the most frequent counted one. The MLP is zero. The head is the
// embedding. ending is the weight of the end token.
func matrices(v vocabulary, ending float32) []matrix {
	zero := func(int, int) float32 { return 0 }
	one := func(int, int) float32 { return 1 }
	times := func(factor float32) func(int, int) float32 {
		return func(row, column int) float32 {
			if row == column && row != classAxis {
				return factor
			}
			return 0
		}
	}
	embedding := func(token, axis int) float32 {
		counted, ok := v.axes[token]
		switch {
		case token == v.end && axis == classAxis:
			return ending
		case ok && (axis == counted || axis == classAxis):
			return 1
		}
		return 0
	}
	const layer = "model.layers.0."
	return []matrix{
		{"model.embed_tokens.weight", len(v.tokens), hidden, embedding},
		{layer + "input_layernorm.weight", 1, hidden, one},
		{layer + "self_attn.q_proj.weight", hidden, hidden, zero},
		{layer + "self_attn.k_proj.weight", hidden, hidden, zero},
		{layer + "self_attn.v_proj.weight", hidden, hidden, times(1)},
		{layer + "self_attn.o_proj.weight", hidden, hidden, times(amplified)},
		{layer + "self_attn.q_norm.weight", 1, hidden / heads, one},
		{layer + "self_attn.k_norm.weight", 1, hidden / heads, one},
		{layer + "post_attention_layernorm.weight", 1, hidden, one},
		{layer + "mlp.gate_proj.weight", intermediate, hidden, zero},
		{layer + "mlp.up_proj.weight", intermediate, hidden, zero},
		{layer + "mlp.down_proj.weight", hidden, intermediate, zero},
		{"model.norm.weight", 1, hidden, one},
	}
}

// weights returns model.safetensors, in BF16: every weight is a small power of
// two, which it holds exactly. The tensors that dropped names are left out.
func weights(v vocabulary, ending float32, dropped ...string) ([]byte, error) {
	var tensors []safetensors.Tensor
	byName := map[string]matrix{}
	for _, m := range matrices(v, ending) {
		if slices.Contains(dropped, m.name) {
			continue
		}
		shape := []int64{int64(m.rows), int64(m.columns)}
		if m.rows == 1 {
			shape = shape[1:]
		}
		tensors = append(tensors, safetensors.Tensor{Name: m.name, DType: safetensors.BF16, Shape: shape})
		byName[m.name] = m
	}
	placed, err := safetensors.Layout(tensors)
	if err != nil {
		return nil, err
	}
	out, err := safetensors.EncodeHeader(tensors, nil)
	if err != nil {
		return nil, err
	}
	for _, t := range placed {
		out = byName[t.Name].appendBF16(out)
	}
	return out, nil
}

func (m matrix) appendBF16(out []byte) []byte {
	for row := range m.rows {
		for column := range m.columns {
			upper := uint16(math.Float32bits(m.at(row, column)) >> 16)
			out = binary.LittleEndian.AppendUint16(out, upper)
		}
	}
	return out
}

// config returns config.json, as the transformers library writes it.
func config(v vocabulary) ([]byte, error) {
	return document(map[string]any{
		"architectures": []string{"Qwen3ForCausalLM"}, "model_type": "qwen3", "dtype": "bfloat16",
		"hidden_size": hidden, "intermediate_size": intermediate, "vocab_size": len(v.tokens),
		"num_hidden_layers": 1, "layer_types": []string{"full_attention"},
		"num_attention_heads": heads, "num_key_value_heads": heads, "head_dim": hidden / heads,
		"attention_bias": false, "attention_dropout": 0, "hidden_act": "silu", "rms_norm_eps": 1e-6,
		"rope_theta": 10000, "rope_scaling": nil, "max_position_embeddings": 1024,
		"tie_word_embeddings": true, "use_sliding_window": false, "sliding_window": nil, "max_window_layers": 1,
		"bos_token_id": nil, "eos_token_id": v.end, "pad_token_id": nil, "initializer_range": 0.02, "use_cache": true,
	})
}

func document(value any) ([]byte, error) {
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return append(data, '\n'), nil
}
