package kernels

import "math"

// Rotary is the cosines and sines of each row's position, computed once a step
// and shared by all layers.
type Rotary struct {
	dim     int
	inverse []float32   // theta^(-2i/dim)
	table   *Activation // dim/2 cosines, dim/2 sines
}

// Rotary appends the computation of the angles of dim rotated dimensions:
// position * theta^(-2i/dim), in float32 as the published models compute it.
// Interleaved multimodal sections have equal positions for text and so reduce
// to this.
func (p *Program) Rotary(dim int, theta float64) *Rotary {
	r := &Rotary{dim: dim, inverse: make([]float32, dim/2), table: p.Activation(dim)}
	for i := range r.inverse {
		r.inverse[i] = 1 / float32(math.Pow(theta, float64(2*i)/float64(dim)))
	}
	if p.backend != nil {
		p.backend.rotary(r)
		return r
	}
	task := func(_, begin, end int) {
		for row := begin; row < end; row++ {
			table, position := r.table.Row(row), float32(p.Batch.Position[row])
			for i, inverse := range r.inverse {
				sin, cos := math.Sincos(float64(position * inverse))
				table[i], table[dim/2+i] = float32(cos), float32(sin)
			}
		}
	}
	p.then(func() { p.share(p.rows(r.table), 64*dim, task) })
	return r
}

// apply rotates the leading dim values of a head in pairs (i, i+dim/2); the
// rest pass.
func (r *Rotary) apply(head []float32, row int) {
	half := r.dim / 2
	table := r.table.Row(row)
	cos, sin := table[:half], table[half:]
	low, high := head[:half], head[half:r.dim]
	for i, c := range cos {
		a, b := low[i], high[i]
		low[i] = float32(a*c) - float32(b*sin[i])
		high[i] = float32(b*c) + float32(a*sin[i])
	}
}
