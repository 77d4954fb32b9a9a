package kernels

import "math"

// Norm is an RMS norm: y = w * x / sqrt(mean(x^2) + Epsilon), with Weight as it
// is used: for families that store w centred on zero, [CentredNorm] has added
// the one in float32.
type Norm struct {
	Weight  []float32
	Epsilon float32
}

// CentredNorm makes a Norm of weights that are stored minus one.
func CentredNorm(weight []float32, epsilon float32) Norm {
	w := make([]float32, len(weight))
	for i := range w {
		w[i] = 1 + weight[i]
	}
	return Norm{w, epsilon}
}

func (n Norm) apply(dst, src []float32) {
	mean := float64(dot(src, src)) / float64(len(src))
	inverse := float32(1 / math.Sqrt(mean+float64(n.Epsilon)))
	for i, w := range n.Weight {
		dst[i] = w * float32(src[i]*inverse)
	}
}

// Norm appends dst = norm(src).
func (p *Program) Norm(dst, src *Activation, norm Norm) { p.addNorm(dst, src, nil, norm) }

// AddNorm appends residual += delta, dst = norm(residual).
func (p *Program) AddNorm(dst, residual, delta *Activation, norm Norm) {
	p.addNorm(dst, residual, delta, norm)
}

func (p *Program) addNorm(dst, residual, delta *Activation, norm Norm) {
	if p.backend != nil {
		p.backend.addNorm(dst, residual, delta, norm)
		return
	}
	task := func(_, begin, end int) {
		for r := begin; r < end; r++ {
			x := residual.Row(r)
			if delta != nil {
				for i, d := range delta.Row(r) {
					x[i] += d
				}
			}
			norm.apply(dst.Row(r), x)
		}
	}
	p.then(func() { p.share(p.rows(residual), 4*residual.width, task) })
}

// Embed appends dst = the rows of table that the batch's tokens name.
func (p *Program) Embed(dst *Activation, table *Matrix) {
	if p.backend != nil {
		p.backend.embed(dst, table)
		return
	}
	task := func(_, begin, end int) {
		for r := begin; r < end; r++ {
			table.Row(dst.Row(r), int(p.Batch.Token[r]))
		}
	}
	p.then(func() { p.share(p.rows(dst), 2*dst.width, task) })
}

// SiLUMul appends dst = silu(gate) * up. dst may be gate, not up.
func (p *Program) SiLUMul(dst, gate, up *Activation) {
	if p.backend != nil {
		p.backend.siluMul(dst, gate, up)
		return
	}
	task := func(_, begin, end int) {
		for r := begin; r < end; r++ {
			y, g, u := dst.Row(r), gate.Row(r), up.Row(r)
			silu(y, g)
			multiply(y, u)
		}
	}
	p.then(func() { p.share(p.rows(dst), 8*dst.width, task) })
}

// Select appends dst = the rows of src whose logits are wanted.
func (p *Program) Select(dst, src *Activation) {
	if p.backend != nil {
		p.backend.selectRows(dst, src)
		return
	}
	p.then(func() {
		for i, draw := range p.Batch.Draws {
			copy(dst.Row(i), src.Row(draw.Row))
		}
	})
}
