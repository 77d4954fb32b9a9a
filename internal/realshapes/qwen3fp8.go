package realshapes

import "slipway/manifest"

// tensors collects a contract whose names may hold ranges, as
// manifest.DecodeContract reads them.
type tensors map[string]manifest.ContractTensor

func (t tensors) add(dtype, name string, shape ...int64) {
	t[name] = manifest.ContractTensor{DType: dtype, Shape: shape, Role: manifest.RoleOf(name)}
}

// Qwen3With06BInFP8 returns the contract of Qwen/Qwen3-0.6B-FP8: block FP8 linears with
// a BF16 scale for 128 by 128 weights beside each, everything else BF16. The
// published file stores a copy of the embedding as head, which is tied to it.
// Names hold ranges of layers.
func Qwen3With06BInFP8() manifest.Contract {
	const (
		hidden, intermediate, vocabulary = 1024, 3072, 151936
		queries, keys, headDim, block    = 16 * 128, 8 * 128, 128, 128
		layer                            = "model.layers.{0..27}."
	)
	t := tensors{}
	linear := func(name string, out, in int64) {
		t.add("F8_E4M3", layer+name+".weight", out, in)
		t.add("BF16", layer+name+".weight_scale_inv", out/block, in/block)
	}
	linear("self_attn.q_proj", queries, hidden)
	linear("self_attn.k_proj", keys, hidden)
	linear("self_attn.v_proj", keys, hidden)
	linear("self_attn.o_proj", hidden, queries)
	linear("mlp.gate_proj", intermediate, hidden)
	linear("mlp.up_proj", intermediate, hidden)
	linear("mlp.down_proj", hidden, intermediate)
	for name, size := range map[string]int64{
		"input_layernorm": hidden, "post_attention_layernorm": hidden, "self_attn.q_norm": headDim, "self_attn.k_norm": headDim,
	} {
		t.add("BF16", layer+name+".weight", size)
	}
	t.add("BF16", "model.embed_tokens.weight", vocabulary, hidden)
	t.add("BF16", "model.norm.weight", hidden)
	t.add("BF16", "lm_head.weight", vocabulary, hidden)
	return manifest.Contract{
		Schema: 1, Repository: "Qwen/Qwen3-0.6B-FP8", Revision: "e5be08033360965ceca7b0ffd72d521a51331ce0", TiedHead: true, Tensors: t,
	}
}
