package realshapes

import "slipway/manifest"

// Maple returns the contract of deepgrove/maple-preview: a mixture of 256
// experts in each of 24 layers, all of it BF16, whose attention and expert
// linears are ternary by row as published. Names hold ranges of layers and of
// experts.
func Maple() manifest.Contract {
	const (
		hidden, expert, vocabulary, experts = 2048, 512, 151936, 256
		queries, keys, headDim              = 16 * 128, 4 * 128, 128
		layer                               = "model.layers.{0..23}."
		everyExpert                         = layer + "mlp.experts.{0..255}."
	)
	t := tensors{}
	add := func(name string, shape ...int64) { t.add("BF16", name+".weight", shape...) }
	add("model.word_embeddings", vocabulary, hidden)
	add("model.norm", hidden)
	add("lm_head", vocabulary, hidden)
	add(layer+"input_layernorm", hidden)
	add(layer+"post_attention_layernorm", hidden)
	add(layer+"self_attn.q_proj", queries, hidden)
	add(layer+"self_attn.k_proj", keys, hidden)
	add(layer+"self_attn.v_proj", keys, hidden)
	add(layer+"self_attn.o_proj", hidden, queries)
	add(layer+"self_attn.q_norm", headDim)
	add(layer+"self_attn.k_norm", headDim)
	add(layer+"mlp.gate", experts, hidden)
	add(everyExpert+"gate_proj", expert, hidden)
	add(everyExpert+"up_proj", expert, hidden)
	add(everyExpert+"down_proj", hidden, expert)
	return manifest.Contract{
		Schema: 1, Repository: "deepgrove/maple-preview", Revision: "ac1ddd79d2b5cb4406f5d2bebdf95406ce505a07", Tensors: t,
	}
}
