package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// deltaCase is a layer bound over slots, and its inputs' memory.
type deltaCase struct {
	t                   testing.TB
	shape               DeltaShape
	weights             DeltaWeights
	p                   *Program
	mixed, z, b, a, out *Activation
	state               *DeltaState
}

func newDeltaCase(t testing.TB, random *rand.Rand, shape DeltaShape, pool *Pool) *deltaCase {
	const rows, slots = 160, 3
	p := newTestProgram(t, pool, Shape{Rows: rows, Slots: slots, Context: 512})
	values := shape.ValueHeads * shape.ValueDim
	c := &deltaCase{t: t, shape: shape, p: p, mixed: p.Activation(shape.Channels()), z: p.Activation(values),
		b: p.Activation(shape.ValueHeads), a: p.Activation(shape.ValueHeads), out: p.Activation(values), state: p.DeltaState(shape)}
	c.weights = DeltaWeights{
		Convolution: fill(random, make([]float32, shape.Channels()*shape.Kernel)),
		Decay:       fill(random, make([]float32, shape.ValueHeads)),
		TimeBias:    fill(random, make([]float32, shape.ValueHeads)),
		Norm:        Norm{fill(random, make([]float32, shape.ValueDim)), 1e-6},
	}
	for i, x := range c.weights.Decay {
		c.weights.Decay[i] = -float32(math.Exp(float64(x) - 1))
	}
	p.DeltaNet(c.out, c.mixed, c.z, c.b, c.a, c.weights, c.state)
	return c
}

// tokenInput is the projections of one token.
type tokenInput struct{ mixed, z, b, a []float32 }

func (c *deltaCase) inputs(random *rand.Rand, count int) []tokenInput {
	tokens := make([]tokenInput, count)
	for i := range tokens {
		tokens[i] = tokenInput{
			fill(random, make([]float32, c.mixed.width)), fill(random, make([]float32, c.z.width)),
			fill(random, make([]float32, c.b.width)), fill(random, make([]float32, c.a.width))}
	}
	return tokens
}

// run appends tokens to a slot, alone, and returns the outputs of all.
func (c *deltaCase) run(slot, start int, tokens []tokenInput) (out []float32) {
	c.p.Batch.Clear()
	c.p.Batch.Append(slot, start, make([]int32, len(tokens)))
	for r, in := range tokens {
		copy(c.mixed.Row(r), in.mixed)
		copy(c.z.Row(r), in.z)
		copy(c.b.Row(r), in.b)
		copy(c.a.Row(r), in.a)
	}
	runProgram(c.t, c.p)
	for r := range tokens {
		out = append(out, c.out.Row(r)...)
	}
	return out
}

// reference is the recurrence in float64 from an empty state: outputs of every
// token, and the state after the last.
func (c *deltaCase) reference(tokens []tokenInput) (out []float64, state []float64) {
	s := c.shape
	state = make([]float64, s.ValueHeads*s.KeyDim*s.ValueDim)
	for t := range tokens {
		y := c.convolved(tokens, t)
		for h := range s.ValueHeads {
			keyHead := h / (s.ValueHeads / s.KeyHeads)
			q := unitVector(y[keyHead*s.KeyDim:][:s.KeyDim], 1/math.Sqrt(float64(s.KeyDim)))
			k := unitVector(y[(s.KeyHeads+keyHead)*s.KeyDim:][:s.KeyDim], 1)
			v := y[2*s.KeyHeads*s.KeyDim+h*s.ValueDim:][:s.ValueDim]
			beta := 1 / (1 + math.Exp(-float64(tokens[t].b[h])))
			decay := math.Exp(float64(c.weights.Decay[h]) * math.Log1p(math.Exp(float64(tokens[t].a[h])+float64(c.weights.TimeBias[h]))))
			o := deltaRule(state[h*s.KeyDim*s.ValueDim:][:s.KeyDim*s.ValueDim], q, k, v, beta, decay)
			for j, x := range rms(o, widen(c.weights.Norm.Weight), 0, 1e-6) {
				z := float64(tokens[t].z[h*s.ValueDim+j])
				out = append(out, x*z/(1+math.Exp(-z)))
			}
		}
	}
	return out, state
}

func (c *deltaCase) convolved(tokens []tokenInput, t int) []float64 {
	y := make([]float64, c.shape.Channels())
	for ch := range y {
		for j := range c.shape.Kernel {
			if from := t - c.shape.Kernel + 1 + j; from >= 0 {
				y[ch] += float64(c.weights.Convolution[ch*c.shape.Kernel+j]) * float64(tokens[from].mixed[ch])
			}
		}
		y[ch] /= 1 + math.Exp(-y[ch])
	}
	return y
}

func unitVector(x []float64, factor float64) []float64 {
	sum := 1e-6
	for _, v := range x {
		sum += v * v
	}
	y := make([]float64, len(x))
	for i := range y {
		y[i] = x[i] * factor / math.Sqrt(sum)
	}
	return y
}

// deltaRule advances one head's state and returns its output.
func deltaRule(state, q, k, v []float64, beta, decay float64) []float64 {
	out := make([]float64, len(v))
	for j := range v {
		read := 0.0
		for i := range k {
			state[i*len(v)+j] *= decay
			read += state[i*len(v)+j] * k[i]
		}
		for i := range k {
			state[i*len(v)+j] += k[i] * beta * (v[j] - read)
			out[j] += state[i*len(v)+j] * q[i]
		}
	}
	return out
}

var deltaShapes = []DeltaShape{
	{KeyHeads: 2, ValueHeads: 6, KeyDim: 16, ValueDim: 24, Kernel: 4},
	{KeyHeads: 1, ValueHeads: 2, KeyDim: 20, ValueDim: 10, Kernel: 3},
	{KeyHeads: 1, ValueHeads: 1, KeyDim: 8, ValueDim: 130, Kernel: 11},
	{KeyHeads: 1, ValueHeads: 1, KeyDim: 136, ValueDim: 136, Kernel: 1}, // a state that the kernel leaves in global memory
}

// Chunks of every length equal the recurrence, states and tails included.
func TestDeltaNetChunks(t *testing.T) {
	for _, shape := range deltaShapes {
		random := newRandom(31)
		c := newDeltaCase(t, random, shape, SharedPool())
		tokens := c.inputs(random, 130)
		var stepped []float32
		for length := 1; length <= 130; length++ {
			// Slot 0 decodes on, slot 1 begins anew over what it held.
			stepped = append(stepped, c.run(0, length-1, tokens[length-1:length])...)
			out := c.run(1, 0, tokens[:length])
			what := fmt.Sprintf("%d tokens", length)
			near(t, what+": outputs", out, widen(stepped), 1e-5)
			tail, state := c.state.Slot(0)
			chunkTail, chunkState := c.state.Slot(1)
			near(t, what+": states", chunkState, widen(state), 1e-5)
			if !slices.Equal(tail, chunkTail) {
				t.Errorf("%s: convolution tails differ", what)
			}
		}
		want, wantState := c.reference(tokens)
		_, state := c.state.Slot(0)
		near(t, "recurrence", stepped, want, 3e-6)
		near(t, "recurrence: state", state, wantState, 2e-6)
	}
}

// Chunks end at multiples of ChunkTokens of the sequence, not of the run: a cut
// there changes nothing, wherever the run began.
func TestDeltaNetCuts(t *testing.T) {
	c := newDeltaCase(t, newRandom(34), deltaShapes[0], SharedPool())
	tokens := c.inputs(newRandom(35), 140)
	c.run(0, 0, tokens[:30])
	whole := c.run(0, 30, tokens[30:])
	c.run(1, 0, tokens[:30])
	cut := append(c.run(1, 30, tokens[30:64]), c.run(1, 64, tokens[64:128])...)
	cut = append(cut, c.run(1, 128, tokens[128:])...)
	if !slices.Equal(whole, cut) {
		t.Error("outputs differ")
	}
}

// Runs of several slots in one batch equal each alone, bitwise, and with any
// number of workers; a copied state continues as the original does.
func TestDeltaNetSlots(t *testing.T) {
	shape := DeltaShape{KeyHeads: 2, ValueHeads: 4, KeyDim: 64, ValueDim: 64, Kernel: 4}
	tokens := newDeltaCase(t, newRandom(32), shape, SharedPool()).inputs(newRandom(33), 90)
	alone := newDeltaCase(t, newRandom(32), shape, NewPool(1))
	want := alone.run(0, 0, tokens[:70])
	wantNext := alone.run(0, 70, tokens[70:])
	pool := NewPool(3)
	defer pool.Close()
	c := newDeltaCase(t, newRandom(32), shape, pool)
	// Slot 2's run stands between two others.
	c.p.Batch.Clear()
	c.p.Batch.Append(0, 0, make([]int32, 5))
	c.p.Batch.Append(2, 0, make([]int32, 70))
	c.p.Batch.Append(1, 0, make([]int32, 1))
	for r := range 76 {
		in := tokens[(r+85)%90] // row 5 is token 0
		copy(c.mixed.Row(r), in.mixed)
		copy(c.z.Row(r), in.z)
		copy(c.b.Row(r), in.b)
		copy(c.a.Row(r), in.a)
	}
	runProgram(c.t, c.p)
	var got []float32
	for r := range 70 {
		got = append(got, c.out.Row(5+r)...)
	}
	if !slices.Equal(got, want) {
		t.Error("outputs in a batch differ from those alone")
	}
	tail, state := c.state.Slot(2)
	toTail, toState := c.state.Slot(1)
	copy(toTail, tail)
	copy(toState, state)
	if !slices.Equal(c.run(1, 70, tokens[70:]), wantNext) {
		t.Error("a copied state continues differently")
	}
}
