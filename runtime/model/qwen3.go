package model

import (
	"slipway/runtime/kernels"
)

// bindQwen3 binds Qwen3 dense models (0.6B to 32B), in bf16 or block FP8 with
// activations kept as they are. Per layer:
//
//	x += Wo attention(rope(norm(Wq u)), rope(norm(Wk u)), Wv u), u = norm(x)
//	x += Wdown(silu(Wgate u) * Wup u),                           u = norm(x)
//
// with norms of weight w, per head for q and k.
func bindQwen3(b *binder) {
	c := b.config
	d := &decoder{norm: func(weight []float32, epsilon float32) kernels.Norm {
		return kernels.Norm{Weight: weight, Epsilon: epsilon}
	}}
	b.dimensions(d)
	b.rope(d, 1)
	c.Fixed("partial_rotary_factor", 1.0)
	c.Fixed("use_sliding_window", false)
	c.Inert("sliding_window", "max_window_layers") // use_sliding_window is false
	for _, kind := range c.Strings("layer_types") {
		if kind != "full_attention" {
			c.Fail("layer_types has %q; only full_attention is supported", kind)
		}
	}
	b.layerCount(d, len(c.Strings("layer_types")))
	b.configured()
	b.stack(d, func(_ int, prefix string) { b.selfAttention(d, prefix+"self_attn.") })
}

// layerCount refuses a layer_types of the wrong length; 0 is an absent one.
func (b *binder) layerCount(d *decoder, types int) {
	if types != 0 && types != d.layers {
		b.config.Fail("layer_types has %d entries, num_hidden_layers is %d", types, d.layers)
	}
}
