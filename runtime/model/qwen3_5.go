package model

import (
	"math"

	"slipway/runtime/kernels"
)

// bindQwen35 binds the text half of Qwen3.5: of every full_attention_interval
// layers one is attention with an output gate and partly rotated heads, the
// others are Gated DeltaNet. Norms store w-1, but for DeltaNet's own. The vision
// half and the multi-token-prediction layers are not read.
func bindQwen35(b *binder) {
	c := b.config
	d := &decoder{norm: kernels.CentredNorm}
	d.heads.Gated = true
	b.dimensions(d)
	b.rope(d, 0.25)
	shape := kernels.DeltaShape{
		KeyHeads: c.Int("linear_num_key_heads"), ValueHeads: c.Int("linear_num_value_heads"),
		KeyDim: c.Int("linear_key_head_dim"), ValueDim: c.Int("linear_value_head_dim"), Kernel: c.IntOr("linear_conv_kernel_dim", 4),
	}
	b.width("linear_num_key_heads", shape.KeyHeads, "linear_key_head_dim", shape.KeyDim)
	b.width("linear_num_value_heads", shape.ValueHeads, "linear_value_head_dim", shape.ValueDim)
	if shape.ValueHeads%shape.KeyHeads != 0 {
		c.Fail("linear_num_value_heads %d is no multiple of linear_num_key_heads %d", shape.ValueHeads, shape.KeyHeads)
	}
	c.Fixed("attn_output_gate", true)
	c.Fixed("output_gate_type", "silu", "swish")
	c.Fixed("mamba_ssm_dtype", "float32")
	c.Inert("mtp_num_hidden_layers", "mtp_use_dedicated_embeddings")
	attends := b.attends(d)
	b.checkpoint.Skip("mtp.", "model.visual.", "visual.")
	b.configured()
	net := &deltaBuffers{shape: shape}
	b.stack(d, func(layer int, prefix string) {
		if attends(layer) {
			b.selfAttention(d, prefix+"self_attn.")
		} else {
			b.deltaNet(d, net, prefix+"linear_attn.")
		}
	})
}

const fullAttention, linearAttention = "full_attention", "linear_attention"

// attends reads layer_types or full_attention_interval and returns which layers
// are attention.
func (b *binder) attends(d *decoder) func(layer int) bool {
	interval := b.config.IntOr("full_attention_interval", 4)
	types := b.config.Strings("layer_types")
	b.layerCount(d, len(types))
	for _, kind := range types {
		if kind != fullAttention && kind != linearAttention {
			b.config.Fail("layer_types has %q; only %s and %s are supported", kind, linearAttention, fullAttention)
		}
	}
	if types == nil {
		return func(layer int) bool { return (layer+1)%interval == 0 }
	}
	return func(layer int) bool { return types[layer] == fullAttention }
}

type deltaBuffers struct {
	shape               kernels.DeltaShape
	mixed, z, b, a, out *kernels.Activation
}

func (d *deltaBuffers) allocate(p *kernels.Program) {
	values := d.shape.ValueHeads * d.shape.ValueDim
	d.mixed, d.z, d.out = p.Activation(d.shape.Channels()), p.Activation(values), p.Activation(values)
	d.b, d.a = p.Activation(d.shape.ValueHeads), p.Activation(d.shape.ValueHeads)
}

// deltaNet binds a Gated DeltaNet block; its output is pending.
func (b *binder) deltaNet(d *decoder, net *deltaBuffers, prefix string) {
	p, s := b.program, net.shape
	values := s.ValueHeads * s.ValueDim
	mixed, z := b.matrix(prefix+"in_proj_qkv.weight", s.Channels(), d.hidden), b.matrix(prefix+"in_proj_z.weight", values, d.hidden)
	beta, a := b.matrix(prefix+"in_proj_b.weight", s.ValueHeads, d.hidden), b.matrix(prefix+"in_proj_a.weight", s.ValueHeads, d.hidden)
	decay := b.vector(prefix+"A_log", s.ValueHeads)
	for i, x := range decay {
		decay[i] = -float32(math.Exp(float64(x)))
	}
	inner := kernels.DeltaWeights{
		Convolution: b.vector(prefix+"conv1d.weight", s.Channels(), 1, s.Kernel),
		Decay:       decay,
		TimeBias:    b.vector(prefix+"dt_bias", s.ValueHeads),
		Norm:        kernels.Norm{Weight: b.vector(prefix+"norm.weight", s.ValueDim), Epsilon: d.epsilon},
	}
	out := b.matrix(prefix+"out_proj.weight", d.hidden, values)
	if net.mixed == nil {
		net.allocate(p)
	}
	state := p.DeltaState(s)
	b.model.deltas = append(b.model.deltas, state)
	p.Linear(d.normed,
		kernels.Projection{Dst: net.mixed, Weight: mixed}, kernels.Projection{Dst: net.z, Weight: z},
		kernels.Projection{Dst: net.b, Weight: beta}, kernels.Projection{Dst: net.a, Weight: a})
	p.DeltaNet(net.out, net.mixed, net.z, net.b, net.a, inner, state)
	p.Linear(net.out, kernels.Projection{Dst: d.delta, Weight: out})
}
