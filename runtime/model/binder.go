package model

import (
	"fmt"
	"math"
	"slices"

	"slipway/runtime/kernels"
	"slipway/runtime/weights"
)

// binder is what a family binds with. A fault ends the binding where it is
// found, so that a family reads straight through and nothing is allocated by a
// size that the checkpoint has refuted. For the same reason an operation's
// activations, caches and states are allocated after its weights are taken: their
// shapes are those of stored tensors by then.
type binder struct {
	checkpoint *weights.Checkpoint
	config     *weights.Config
	program    *kernels.Program
	model      *Model
	measuring  bool // what is bound will not run: nothing is read
}

// refusal is the panic by which fail leaves a family.
type refusal struct{ err error }

// run binds a family and returns the first fault.
func (b *binder) run(bind family) (err error) {
	defer func() {
		if value := recover(); value != nil {
			refused, ok := value.(refusal)
			if !ok {
				panic(value)
			}
			err = refused.err
		}
	}()
	bind(b)
	return nil
}

// fail does not return unless err is nil.
func (b *binder) fail(err error) {
	if err != nil {
		panic(refusal{err})
	}
}

// vector takes a small tensor of the text model, widened to float32.
func (b *binder) vector(name string, shape ...int) []float32 {
	m := b.take(b.checkpoint.TextName(name), true, shape...)
	values := make([]float32, m.Columns)
	m.Row(values, 0)
	return values
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// matrix takes a [rows, columns] tensor of the text model, in any stored form.
func (b *binder) matrix(name string, rows, columns int) *kernels.Matrix {
	return b.named(b.checkpoint.TextName(name), rows, columns)
}

// named is matrix for a full name.
func (b *binder) named(name string, rows, columns int) *kernels.Matrix {
	return b.take(name, false, rows, columns)
}

// take reads a tensor. A tensor that must be dense becomes one row.
func (b *binder) take(name string, dense bool, shape ...int) *kernels.Matrix {
	t, err := b.checkpoint.Take(name, shape...)
	b.fail(err)
	if dense && t.Kind != weights.Dense || t.Kind == weights.Other {
		b.fail(fmt.Errorf("checkpoint %s: tensor %q is stored as %s; BF16, F16 or F32 is wanted", b.checkpoint.Folder, name, t.DType))
	}
	m := &kernels.Matrix{Rows: 1, Columns: product(shape), Format: formats[t.DType], ScaleFormat: formats[t.ScaleDType],
		GroupRows: t.GroupRows, GroupColumns: t.GroupColumns}
	if !dense {
		m.Rows, m.Columns = shape[0], shape[1]
	}
	if b.model.limits.Device != nil && !dense {
		m.Stored = t
	} else if b.measuring {
		m.Data = make([]byte, t.DataSize())
	} else if m.Data, err = t.Data(); err == nil {
		m.Scales, err = t.Scales()
	}
	if err == nil {
		err = m.Check()
	}
	if err != nil {
		b.fail(fmt.Errorf("checkpoint %s: %w", b.checkpoint.Folder, err))
	}
	return m
}

var formats = map[weights.DType]kernels.Format{
	weights.BF16: kernels.BF16, weights.F16: kernels.F16, weights.F32: kernels.F32, weights.F8E4M3: kernels.E4M3, weights.U8: kernels.Packed,
}

// decoder is what the text families share.
type decoder struct {
	hidden, intermediate, layers int
	heads                        kernels.Heads
	vocabulary                   int
	epsilon                      float32
	theta                        float64
	rotated                      float64 // fraction of the head's dimensions
	tied                         bool

	norm func(weight []float32, epsilon float32) kernels.Norm

	table     *kernels.Matrix // embedding
	residual  *kernels.Activation
	normed    *kernels.Activation
	delta     *kernels.Activation // what a block adds to the residual
	gate, up  *kernels.Activation
	attention attentionBuffers
}

type attentionBuffers struct {
	q, k, v, out *kernels.Activation
	rotary       *kernels.Rotary
}

// dimensions reads the fields that the text families share and refuses values
// that would change the arithmetic.
func (b *binder) dimensions(d *decoder) {
	c := b.config
	d.hidden, d.intermediate, d.layers = c.Int("hidden_size"), c.Int("intermediate_size"), c.Int("num_hidden_layers")
	d.heads.Query, d.heads.KV, d.heads.Dim = c.Int("num_attention_heads"), c.Int("num_key_value_heads"), c.Int("head_dim")
	d.vocabulary = c.Int("vocab_size")
	d.epsilon = float32(c.Float("rms_norm_eps"))
	d.tied = c.Flag("tie_word_embeddings", false)
	c.Fixed("hidden_act", "silu")
	c.Fixed("attention_bias", false)
	if longest := c.IntOr("max_position_embeddings", b.model.limits.Context); longest < b.model.limits.Context {
		b.fail(fmt.Errorf("load model: %d tokens a sequence, config.json: max_position_embeddings is %d", b.model.limits.Context, longest))
	}
	b.width("num_attention_heads", d.heads.Query, "head_dim", d.heads.Dim)
	b.width("num_key_value_heads", d.heads.KV, "head_dim", d.heads.Dim)
	if d.heads.Query%d.heads.KV != 0 {
		c.Fail("num_attention_heads %d is no multiple of num_key_value_heads %d", d.heads.Query, d.heads.KV)
	}
}

// width refuses heads whose widths together pass 32 bits: sums of a few such
// widths, and what is allocated by them, then stay far below 64.
func (b *binder) width(heads string, count int, dimension string, dim int) {
	if count*dim > math.MaxInt32 { // each is below 1<<31
		b.config.Fail("%s %d times %s %d is too large", heads, count, dimension, dim)
	}
}

// rope reads the rotary fields in both spellings: rope_theta, rope_scaling and
// partial_rotary_factor, or rope_parameters. What both give must agree.
func (b *binder) rope(d *decoder, fraction float64) {
	c := b.config
	given := map[string][]float64{}
	read := func(c *weights.Config) {
		for _, key := range []string{"rope_theta", "partial_rotary_factor"} {
			if c.Has(key) {
				given[key] = append(given[key], c.Float(key))
			}
		}
	}
	read(c)
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		section := c.Section(key)
		if section == nil {
			continue
		}
		read(section)
		section.Fixed("rope_type", "default")
		section.Fixed("type", "default", "mrope")
		section.Fixed("mrope_interleaved", true, false)
		section.Ints("mrope_section")
		section.Finish() // a fault is the parent's
	}
	for key, values := range given {
		if slices.Min(values) != slices.Max(values) {
			c.Fail("%s is given as %v", key, values)
		}
	}
	if given["rope_theta"] == nil {
		c.Fail("rope_theta is missing")
		return
	}
	d.theta, d.rotated = given["rope_theta"][0], fraction
	if factor := given["partial_rotary_factor"]; factor != nil {
		d.rotated = factor[0]
	}
	dim := d.rotated * float64(d.heads.Dim)
	if d.rotated > 1 || dim != float64(int(dim)) || int(dim)%2 != 0 || dim == 0 {
		c.Fail("partial_rotary_factor %v of head_dim %d is not a positive even number of dimensions", d.rotated, d.heads.Dim)
	}
}

// configured ends the reading of the configuration; a fault in it ends the
// binding.
func (b *binder) configured() {
	if err := b.config.Finish(); err != nil {
		b.fail(fmt.Errorf("checkpoint %s: %w", b.checkpoint.Folder, err))
	}
}

// begin binds the embedding and allocates the activations of its width.
func (b *binder) begin(d *decoder) {
	p := b.program
	d.table = b.matrix("embed_tokens.weight", d.vocabulary, d.hidden)
	d.residual, d.normed, d.delta = p.Activation(d.hidden), p.Activation(d.hidden), p.Activation(d.hidden)
	p.Embed(d.residual, d.table)
	b.observe(0, d.residual)
}

// buffers returns what the attention layers share.
func (b *binder) buffers(d *decoder) attentionBuffers {
	if d.attention.q == nil {
		p, kv := b.program, d.heads.KV*d.heads.Dim
		d.attention = attentionBuffers{p.Activation(d.heads.QueryWidth()), p.Activation(kv), p.Activation(kv), p.Activation(d.heads.Query * d.heads.Dim),
			p.Rotary(int(d.rotated*float64(d.heads.Dim)), d.theta)}
	}
	return d.attention
}

// observe binds a call of the model's observer.
func (b *binder) observe(layer int, values *kernels.Activation) {
	m := b.model
	b.program.Call(func() {
		if m.observe != nil {
			m.observe(layer, values)
		}
	})
}

// normInto adds the pending block output, if any, and norms the residual.
func (b *binder) normInto(d *decoder, pending bool, name string) {
	norm := d.norm(b.vector(name, d.hidden), d.epsilon)
	if pending {
		b.program.AddNorm(d.normed, d.residual, d.delta, norm)
	} else {
		b.program.Norm(d.normed, d.residual, norm)
	}
}

// selfAttention binds a layer's attention block; its output is pending.
func (b *binder) selfAttention(d *decoder, prefix string) {
	p, h := b.program, d.heads
	kv := h.KV * h.Dim
	q, k, v := b.matrix(prefix+"q_proj.weight", h.QueryWidth(), d.hidden), b.matrix(prefix+"k_proj.weight", kv, d.hidden), b.matrix(prefix+"v_proj.weight", kv, d.hidden)
	qNorm, kNorm := d.norm(b.vector(prefix+"q_norm.weight", h.Dim), d.epsilon), d.norm(b.vector(prefix+"k_norm.weight", h.Dim), d.epsilon)
	out := b.matrix(prefix+"o_proj.weight", d.hidden, h.Query*h.Dim)
	a, cache := b.buffers(d), p.Cache(h)
	p.Linear(d.normed, kernels.Projection{Dst: a.q, Weight: q}, kernels.Projection{Dst: a.k, Weight: k}, kernels.Projection{Dst: a.v, Weight: v})
	p.HeadNormRope(a.q, a.k, a.v, cache, qNorm, kNorm, a.rotary)
	p.Attention(a.out, a.q, cache)
	p.Linear(a.out, kernels.Projection{Dst: d.delta, Weight: out})
}

// mlp binds a layer's gated MLP; its output is pending.
func (b *binder) mlp(d *decoder, prefix string) {
	p := b.program
	gate, up := b.matrix(prefix+"gate_proj.weight", d.intermediate, d.hidden), b.matrix(prefix+"up_proj.weight", d.intermediate, d.hidden)
	down := b.matrix(prefix+"down_proj.weight", d.hidden, d.intermediate)
	if d.gate == nil {
		d.gate, d.up = p.Activation(d.intermediate), p.Activation(d.intermediate)
	}
	p.Linear(d.normed, kernels.Projection{Dst: d.gate, Weight: gate}, kernels.Projection{Dst: d.up, Weight: up})
	p.SiLUMul(d.gate, d.gate, d.up)
	p.Linear(d.gate, kernels.Projection{Dst: d.delta, Weight: down})
}

// stack binds all layers, mix binding each one's mixer.
func (b *binder) stack(d *decoder, mix func(layer int, prefix string)) {
	b.begin(d)
	for layer := range d.layers {
		prefix := fmt.Sprintf("layers.%d.", layer)
		b.normInto(d, layer > 0, prefix+"input_layernorm.weight")
		if layer > 0 {
			b.observe(layer, d.residual)
		}
		mix(layer, prefix)
		b.normInto(d, true, prefix+"post_attention_layernorm.weight")
		b.mlp(d, prefix+"mlp.")
	}
	b.normInto(d, true, "norm.weight")
	b.observe(d.layers, d.normed)
	b.head(d)
}

// head binds logits and drawing, and ends the binding: the checkpoint must be
// used up.
func (b *binder) head(d *decoder) {
	const name = "lm_head.weight"
	head := d.table
	if d.tied {
		b.checkpoint.Skip(name) // a stored copy of the embedding
	} else if b.checkpoint.Has(name) {
		head = b.named(name, d.vocabulary, d.hidden)
	} else {
		b.fail(fmt.Errorf("checkpoint %s: tie_word_embeddings is false and there is no tensor %q", b.checkpoint.Folder, name))
	}
	b.fail(b.checkpoint.Finish())
	p := b.program
	selected, logits := p.Drawn(d.hidden), p.Drawn(d.vocabulary)
	p.Select(selected, d.normed)
	p.Linear(selected, kernels.Projection{Dst: logits, Weight: head})
	b.observe(-1, logits)
	p.Sample(logits, b.model.drawable(d.vocabulary))
	b.model.vocabulary = d.vocabulary
}
