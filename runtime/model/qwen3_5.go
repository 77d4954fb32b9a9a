package model

import (
	"math"

	"slipway/runtime/kernels"
)

// bindQwen35 binds the text half of Qwen3.5: of every full_attention_interval
// layers one is attention with an output gate and partly rotated heads, the
// others are Gated DeltaNet. Norms store w-1, but for DeltaNet's own. The vision
// half and the multi-token-prediction layers are not read.
func bindQwen35(b *binder) error {
	c := b.config
	d := &decoder{norm: kernels.CentredNorm}
	d.heads.Gated = true
	b.dimensions(d)
	b.rope(d, 0.25)
	shape := kernels.DeltaShape{
		KeyHeads: c.Int("linear_num_key_heads"), ValueHeads: c.Int("linear_num_value_heads"),
		KeyDim: c.Int("linear_key_head_dim"), ValueDim: c.Int("linear_value_head_dim"), Kernel: c.IntOr("linear_conv_kernel_dim", 4),
	}
	if shape.ValueHeads%shape.KeyHeads != 0 {
		c.Fail("linear_num_value_heads %d is no multiple of linear_num_key_heads %d", shape.ValueHeads, shape.KeyHeads)
	}
	c.Fixed("attn_output_gate", true)
	c.Fixed("output_gate_type", "silu", "swish")
	c.Fixed("mamba_ssm_dtype", "float32")
	c.Inert("mtp_num_hidden_layers", "mtp_use_dedicated_embeddings")
	types := b.layerTypes(d)
	b.checkpoint.Skip("mtp.", "model.visual.", "visual.")
	if !b.ready() {
		return b.err
	}
	net := b.deltaBuffers(d, shape)
	b.stack(d, func(layer int, prefix string) {
		if types[layer] == fullAttention {
			b.selfAttention(d, prefix+"self_attn.")
		} else {
			b.deltaNet(d, net, prefix+"linear_attn.")
		}
	})
	return b.err
}

const fullAttention, linearAttention = "full_attention", "linear_attention"

// layerTypes reads layer_types, or makes it from full_attention_interval.
func (b *binder) layerTypes(d *decoder) []string {
	interval := b.config.IntOr("full_attention_interval", 4)
	types := b.config.Strings("layer_types")
	b.layerCount(d, len(types))
	for _, kind := range types {
		if kind != fullAttention && kind != linearAttention {
			b.config.Fail("layer_types has %q; only %s and %s are supported", kind, linearAttention, fullAttention)
		}
	}
	for layer := len(types); layer < d.layers; layer++ {
		if (layer+1)%interval == 0 {
			types = append(types, fullAttention)
		} else {
			types = append(types, linearAttention)
		}
	}
	return types
}

type deltaBuffers struct {
	shape               kernels.DeltaShape
	mixed, z, b, a, out *kernels.Activation
}

func (b *binder) deltaBuffers(d *decoder, shape kernels.DeltaShape) deltaBuffers {
	p := b.program
	values := shape.ValueHeads * shape.ValueDim
	return deltaBuffers{shape, p.Activation(shape.Channels()), p.Activation(values),
		p.Activation(shape.ValueHeads), p.Activation(shape.ValueHeads), p.Activation(values)}
}

// deltaNet binds a Gated DeltaNet block; its output is pending.
func (b *binder) deltaNet(d *decoder, net deltaBuffers, prefix string) {
	p, s := b.program, net.shape
	p.Linear(d.normed,
		kernels.Projection{Dst: net.mixed, Weight: b.matrix(prefix+"in_proj_qkv.weight", s.Channels(), d.hidden)},
		kernels.Projection{Dst: net.z, Weight: b.matrix(prefix+"in_proj_z.weight", s.ValueHeads*s.ValueDim, d.hidden)},
		kernels.Projection{Dst: net.b, Weight: b.matrix(prefix+"in_proj_b.weight", s.ValueHeads, d.hidden)},
		kernels.Projection{Dst: net.a, Weight: b.matrix(prefix+"in_proj_a.weight", s.ValueHeads, d.hidden)})
	decay := b.vector(prefix+"A_log", s.ValueHeads)
	for i, x := range decay {
		decay[i] = -float32(math.Exp(float64(x)))
	}
	state := p.DeltaState(s)
	b.model.deltas = append(b.model.deltas, state)
	p.DeltaNet(net.out, net.mixed, net.z, net.b, net.a, kernels.DeltaWeights{
		Convolution: b.vector(prefix+"conv1d.weight", s.Channels(), 1, s.Kernel),
		Decay:       decay,
		TimeBias:    b.vector(prefix+"dt_bias", s.ValueHeads),
		Norm:        kernels.Norm{Weight: b.vector(prefix+"norm.weight", s.ValueDim), Epsilon: d.epsilon},
	}, state)
	p.Linear(net.out, kernels.Projection{Dst: d.delta, Weight: b.matrix(prefix+"out_proj.weight", d.hidden, s.ValueHeads*s.ValueDim)})
}
