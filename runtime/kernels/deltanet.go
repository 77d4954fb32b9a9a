package kernels

// ChunkTokens is how many tokens of a slot DeltaNet computes in one piece at
// most; pieces end at multiples of it.
const ChunkTokens = 64

// DeltaShape is the shape of a Gated DeltaNet layer. Value head h reads key
// head h / (ValueHeads/KeyHeads).
type DeltaShape struct {
	KeyHeads, ValueHeads int
	KeyDim, ValueDim     int
	Kernel               int // taps of the convolution
}

// Channels returns the width of the convolved activation: queries, keys,
// values, each head after head.
func (s DeltaShape) Channels() int { return 2*s.KeyHeads*s.KeyDim + s.ValueHeads*s.ValueDim }

// DeltaWeights are a Gated DeltaNet layer's own parameters.
type DeltaWeights struct {
	Convolution []float32 // [Channels][Kernel], the last tap for the current token
	Decay       []float32 // [ValueHeads], -exp(A_log)
	TimeBias    []float32 // [ValueHeads]
	Norm        Norm      // of ValueDim
}

// DeltaState is what a Gated DeltaNet layer remembers of each slot: the last
// Kernel-1 inputs of the convolution, [slot][Kernel-1][Channels], and a state
// [slot][ValueHeads][KeyDim][ValueDim]. A run that starts at position 0 starts
// from zeros, whatever the slot held.
type DeltaState struct {
	shape       DeltaShape
	tail, state []float32
}

// DeltaState allocates a layer's memory of all slots.
func (p *Program) DeltaState(shape DeltaShape) *DeltaState {
	s := &DeltaState{shape: shape}
	if p.backend != nil {
		p.backend.deltaState(s)
		return s
	}
	s.tail = make([]float32, p.shape.Slots*s.tailSize())
	s.state = make([]float32, p.shape.Slots*s.stateSize())
	return s
}

func (s *DeltaState) tailSize() int { return (s.shape.Kernel - 1) * s.shape.Channels() }

func (s *DeltaState) stateSize() int { return s.shape.ValueHeads * s.shape.KeyDim * s.shape.ValueDim }

// Slot returns a slot's convolution tail and state. They are the slot's memory
// itself: copies of both, written back together, restore a position.
func (s *DeltaState) Slot(slot int) (tail, state []float32) {
	return s.tail[slot*s.tailSize():][:s.tailSize()], s.state[slot*s.stateSize():][:s.stateSize()]
}

// channelBlock is how many channels of a run are convolved together.
const channelBlock = 64

// DeltaNet appends the mixer between its projections: mixed, [Channels] a row,
// is convolved (and overwritten), the gated delta rule advances state with
// decay exp(Decay * softplus(a+TimeBias)) and rate sigmoid(b), and dst, ValueDim
// values a value head, is normed and multiplied by silu(z). Equations:
// "Gated Delta Networks", arXiv 2412.06464, as in the Qwen3.5 model.
func (p *Program) DeltaNet(dst, mixed, z, b, a *Activation, w DeltaWeights, state *DeltaState) {
	if p.backend != nil {
		p.backend.deltaNet(dst, mixed, z, b, a, w, state)
		return
	}
	d := &deltaNet{p, dst, mixed, z, b, a, w, state, state.shape, make([]float32, len(w.Convolution))}
	for i, tap := range w.Convolution {
		d.taps[i%d.shape.Kernel*d.shape.Channels()+i/d.shape.Kernel] = tap
	}
	p.reserve(max(d.shape.Kernel*channelBlock, chunkFloats(d.shape)))
	convolve, advance := d.convolve, d.advance
	blocks := (d.shape.Channels() + channelBlock - 1) / channelBlock
	p.then(func() {
		runs, rows := len(p.Batch.Runs), len(p.Batch.Token)
		if runs == 0 {
			return
		}
		p.share(runs*blocks, channelBlock*(d.shape.Kernel+16)*rows/runs, convolve)
		p.share(runs*d.shape.ValueHeads, 4*d.shape.KeyDim*d.shape.ValueDim*rows/runs, advance)
	})
}

type deltaNet struct {
	p                   *Program
	dst, mixed, z, b, a *Activation
	w                   DeltaWeights
	state               *DeltaState
	shape               DeltaShape
	taps                []float32 // the convolution as [Kernel][Channels]
}

// convolve computes y_t = silu(sum_j w_j m_(t-Kernel+1+j)) for blocks of
// channels of a run, last row first so that it can overwrite its input, and
// keeps the last Kernel-1 inputs for the next run.
func (d *deltaNet) convolve(worker, begin, end int) {
	channels, before := d.shape.Channels(), d.shape.Kernel-1
	blocks := (channels + channelBlock - 1) / channelBlock
	for item := begin; item < end; item++ {
		run := d.p.Batch.Runs[item/blocks]
		first := item % blocks * channelBlock
		count := min(channelBlock, channels-first)
		tail, _ := d.state.Slot(run.Slot)
		// input returns the block's channels t rows after the run's start.
		input := func(t int) []float32 {
			if t >= 0 {
				return d.mixed.Row(run.First + t)[first:][:count]
			}
			return tail[(before+t)*channels+first:][:count]
		}
		if run.Start == 0 {
			for t := -before; t < 0; t++ {
				clear(input(t))
			}
		}
		sums, kept := d.p.scratch[worker].float[:count], d.p.scratch[worker].float[channelBlock:]
		for j := range before {
			copy(kept[j*channelBlock:], input(run.Count-before+j))
		}
		for t := run.Count - 1; t >= 0; t-- {
			clear(sums)
			for j := range d.shape.Kernel {
				addProduct(sums, d.taps[j*channels+first:], input(t-before+j))
			}
			silu(input(t), sums)
		}
		for j := range before {
			copy(input(j-before), kept[j*channelBlock:][:count])
		}
	}
}

// advance runs value heads of runs through their tokens.
func (d *deltaNet) advance(worker, begin, end int) {
	size := d.shape.KeyDim * d.shape.ValueDim
	chunk := &d.p.scratch[worker].chunk
	chunk.bind(d.shape, d.p.scratch[worker].float)
	for item := begin; item < end; item++ {
		run, head := d.p.Batch.Runs[item/d.shape.ValueHeads], item%d.shape.ValueHeads
		_, all := d.state.Slot(run.Slot)
		state := all[head*size:][:size]
		if run.Start == 0 {
			clear(state)
		}
		for t := 0; t < run.Count; {
			count := min(run.Count-t, ChunkTokens-(run.Start+t)%ChunkTokens)
			d.read(chunk, run.First+t, count, head)
			if count == 1 {
				chunk.step(state, d.out(run.First+t, head))
			} else {
				chunk.solve(state)
				for i := range count {
					chunk.output(i, state, d.out(run.First+t+i, head))
				}
				chunk.leave(state)
			}
			for i := range count {
				d.gate(worker, run.First+t+i, head)
			}
			t += count
		}
	}
}

func (d *deltaNet) out(row, head int) []float32 {
	return d.dst.Row(row)[head*d.shape.ValueDim:][:d.shape.ValueDim]
}

// gate finishes a row's head: norm, times silu(z).
func (d *deltaNet) gate(worker, row, head int) {
	out, z := d.out(row, head), d.z.Row(row)[head*d.shape.ValueDim:]
	d.w.Norm.apply(out, out)
	gates := d.p.scratch[worker].float[:len(out)] // the chunk's inputs are no longer needed
	silu(gates, z)
	multiply(out, gates)
}
