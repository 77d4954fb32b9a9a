package kernels

import "math"

// chunk is one head's inputs of up to ChunkTokens consecutive tokens, and the
// delta rule over them. With G the running sum of the tokens' log decays and S
// the state before the chunk, the recurrence
//
//	S <- exp(g) S;  d = beta (v - S^T k);  S <- S + k d^T;  o = S^T q
//
// has the corrections d as solution of a triangular system (solve):
//
//	d_i = beta_i (v_i - exp(G_i) S^T k_i - sum_{j<i} exp(G_i-G_j) (k_i k_j) d_j)
//
// from which follow
//
//	o_i = exp(G_i) S^T q_i + sum_{j<=i} exp(G_i-G_j) (q_i k_j) d_j
//	S'  = exp(G_last) S + sum_i exp(G_last-G_i) k_i d_i^T
//
// Exponents are never positive.
type chunk struct {
	shape      DeltaShape
	count      int
	q, k, d    []float32 // [ChunkTokens][KeyDim], the same, [ChunkTokens][ValueDim] (values, then corrections)
	reading    []float32 // [ValueDim]
	beta       [ChunkTokens]float32
	cumulative [ChunkTokens]float64 // G
}

func chunkFloats(s DeltaShape) int {
	return 2*ChunkTokens*s.KeyDim + (ChunkTokens+1)*s.ValueDim
}

// bind lays the chunk's arrays over scratch.
func (c *chunk) bind(s DeltaShape, scratch []float32) {
	keys, values := ChunkTokens*s.KeyDim, ChunkTokens*s.ValueDim
	c.shape = s
	c.q, c.k = scratch[:keys], scratch[keys:2*keys]
	c.d, c.reading = scratch[2*keys:][:values], scratch[2*keys+values:][:s.ValueDim]
}

// read fetches a head's inputs of count rows: queries and keys brought to unit
// length (1e-6 is added to the sum of squares, not to the mean), queries times
// KeyDim^-1/2.
func (d *deltaNet) read(c *chunk, first, count, head int) {
	s := d.shape
	c.count = count
	keyHead := head / (s.ValueHeads / s.KeyHeads)
	total := float64(0)
	for i := range count {
		row := d.mixed.Row(first + i)
		unit(c.query(i), row[keyHead*s.KeyDim:], math.Sqrt(1/float64(s.KeyDim)))
		unit(c.key(i), row[(s.KeyHeads+keyHead)*s.KeyDim:], 1)
		copy(c.correction(i), row[2*s.KeyHeads*s.KeyDim+head*s.ValueDim:])
		c.beta[i] = sigmoid(d.b.Row(first + i)[head])
		total += float64(d.w.Decay[head]) * softplus(float64(d.a.Row(first + i)[head]+d.w.TimeBias[head]))
		c.cumulative[i] = total
	}
}

func unit(dst, src []float32, factor float64) {
	src = src[:len(dst)]
	inverse := float32(factor / math.Sqrt(float64(dot(src, src))+1e-6))
	for i, x := range src {
		dst[i] = x * inverse
	}
}

func (c *chunk) query(i int) []float32      { return c.q[i*c.shape.KeyDim:][:c.shape.KeyDim] }
func (c *chunk) key(i int) []float32        { return c.k[i*c.shape.KeyDim:][:c.shape.KeyDim] }
func (c *chunk) correction(i int) []float32 { return c.d[i*c.shape.ValueDim:][:c.shape.ValueDim] }

// decay returns exp(G_i - G_j), exp(G_i) for j = -1.
func (c *chunk) decay(i, j int) float32 {
	if j < 0 {
		return float32(math.Exp(c.cumulative[i]))
	}
	return float32(math.Exp(c.cumulative[i] - c.cumulative[j]))
}

// step is the recurrence for one token, touching each row of the state once to
// read and once to write.
func (c *chunk) step(state, out []float32) {
	width := c.shape.ValueDim
	decay, key, query, d := c.decay(0, -1), c.key(0), c.query(0), c.correction(0)
	clear(c.reading)
	for i, k := range key {
		row := state[i*width:][:width]
		scale(row, decay)
		addScaled(c.reading, k, row)
	}
	for i := range d {
		d[i] = c.beta[0] * (d[i] - c.reading[i])
	}
	clear(out)
	for i, k := range key {
		row := state[i*width:][:width]
		addScaled(row, k, d)
		addScaled(out, query[i], row)
	}
}

// solve turns values into corrections, in token order.
func (c *chunk) solve(state []float32) {
	for i := range c.count {
		d, key := c.correction(i), c.key(i)
		c.readState(state, key)
		addScaled(d, -c.decay(i, -1), c.reading)
		for j := range i {
			addScaled(d, -c.decay(i, j)*dot(key, c.key(j)), c.correction(j))
		}
		scale(d, c.beta[i])
	}
}

// readState sets reading = S^T x.
func (c *chunk) readState(state, x []float32) {
	clear(c.reading)
	for i, factor := range x {
		addScaled(c.reading, factor, state[i*c.shape.ValueDim:][:c.shape.ValueDim])
	}
}

// output computes token i's o; solve comes before.
func (c *chunk) output(i int, state, out []float32) {
	query := c.query(i)
	c.readState(state, query)
	clear(out)
	addScaled(out, c.decay(i, -1), c.reading)
	for j := range i + 1 {
		addScaled(out, c.decay(i, j)*dot(query, c.key(j)), c.correction(j))
	}
}

// leave advances the state over the chunk; the outputs come before.
func (c *chunk) leave(state []float32) {
	width, last := c.shape.ValueDim, c.count-1
	for i := range c.count {
		scale(c.key(i), c.decay(last, i))
	}
	decay := c.decay(last, -1)
	for r := range c.shape.KeyDim {
		row := state[r*width:][:width]
		scale(row, decay)
		for i := range c.count {
			addScaled(row, c.key(i)[r], c.correction(i))
		}
	}
}
