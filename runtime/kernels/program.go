package kernels

// Shape fixes what a Program can take in one run.
type Shape struct {
	Rows    int // token rows
	Slots   int // sequences that have caches and states
	Context int // tokens of a sequence
}

// Batch says which rows a run computes. The program allocates it once; its
// slices are refilled, never replaced.
type Batch struct {
	Token, Position []int32 // per row; Position is the index in the row's sequence
	Slot            []int32 // per row
	Runs            []Run   // the rows, in order, by slot; a slot has at most one
	Pages           []int32 // [Slots][PagesPerSlot]: a slot's cache pages in order
	Draws           []Draw  // the rows whose logits are wanted
}

// Run is consecutive rows of one slot, in sequence order.
type Run struct {
	Slot, First, Count int
	Start              int // position of the first row
}

// Clear empties the batch; page tables stay.
func (b *Batch) Clear() {
	b.Token, b.Position, b.Slot = b.Token[:0], b.Position[:0], b.Slot[:0]
	b.Runs, b.Draws = b.Runs[:0], b.Draws[:0]
}

// Append adds a run of rows.
func (b *Batch) Append(slot, start int, tokens []int32) {
	b.Runs = append(b.Runs, Run{slot, len(b.Token), len(tokens), start})
	for i, token := range tokens {
		b.Token = append(b.Token, token)
		b.Position = append(b.Position, int32(start+i))
		b.Slot = append(b.Slot, int32(slot))
	}
}

// Activation is rows of float32 values between operations. Rows are padded to a
// multiple of 8: with zeros, or on a device with anything.
type Activation struct {
	width, stride int
	data          []float32 // on a device for tests and observers alone
	drawn         bool      // one row for each draw, not for each token
}

// Row returns one row's values, for tests and observers.
func (a *Activation) Row(i int) []float32 { return a.data[i*a.stride:][:a.width:a.width] }

// Width returns the number of values in a row.
func (a *Activation) Width() int { return a.width }

// Program is a sequence of operations over one batch and the memory that they
// use.
type Program struct {
	Batch Batch

	// Observed says that the next runs call the observers.
	Observed bool

	shape    Shape
	pagesPer int
	pool     *Pool
	scratch  []scratch // by worker
	steps    []func()
	backend  backend // computes the operations; nil: the steps do
}

// backend is another place than this process's processors where a program's
// operations are computed. Its methods append an operation as the Program's of
// the same name do, and allocate what it needs; the first error is kept for
// finish.
type backend interface {
	activation(a *Activation)
	cache(c *Cache)
	deltaState(s *DeltaState)

	linear(src *Activation, outs []Projection)
	embed(dst *Activation, table *Matrix)
	addNorm(dst, residual, delta *Activation, norm Norm)
	siluMul(dst, gate, up *Activation)
	selectRows(dst, src *Activation)
	rotary(r *Rotary)
	headNormRope(q, k, v *Activation, cache *Cache, qNorm, kNorm Norm, rotary *Rotary)
	attention(dst, q *Activation, cache *Cache)
	deltaNet(dst, mixed, z, b, a *Activation, w DeltaWeights, state *DeltaState)
	sample(logits *Activation, tokens int)
	call(observe func())

	needs() (all, perSlot int64)
	finish() error
	run() error
	close() error
}

// scratch is a worker's own memory, grown while operations are bound.
type scratch struct {
	tile  [tileRows * blockColumns]float32
	lanes [rowBlock * tileRows * 8]float32
	float []float32 // Attention, DeltaNet, Sample
	chunk chunk     // DeltaNet
	marks []int32   // Sample
	order []int32   // Sample
	_     [64]byte  // no two workers in one cache line
}

// NewProgram allocates an empty program.
func NewProgram(pool *Pool, shape Shape) *Program {
	p := newProgram(shape)
	p.pool, p.scratch = pool, make([]scratch, pool.Workers())
	return p
}

func newProgram(shape Shape) *Program {
	pages := (shape.Context + PageTokens - 1) / PageTokens
	return &Program{
		Batch: Batch{
			Token:    make([]int32, 0, shape.Rows),
			Position: make([]int32, 0, shape.Rows),
			Slot:     make([]int32, 0, shape.Rows),
			Runs:     make([]Run, 0, shape.Rows),
			Pages:    make([]int32, shape.Slots*pages),
			Draws:    make([]Draw, 0, shape.Slots),
		},
		shape: shape, pagesPer: pages,
	}
}

// PagesPerSlot returns how many cache pages a slot needs at most.
func (p *Program) PagesPerSlot() int { return p.pagesPer }

// Needs returns the bytes of a device's memory that the program takes, and how
// many of them each slot does; zeros for one that needs no device.
func (p *Program) Needs() (all, perSlot int64) {
	if p.backend != nil {
		return p.backend.needs()
	}
	return 0, 0
}

// Finish ends the binding. An error is of memory that a device does not have, or
// of the device itself.
func (p *Program) Finish() error {
	if p.backend != nil {
		return p.backend.finish()
	}
	return nil
}

// Run executes the operations over the batch. An error is of a device; what the
// caches and states hold afterwards is then unknown.
func (p *Program) Run() error {
	if p.backend != nil {
		return p.backend.run()
	}
	for _, step := range p.steps {
		step()
	}
	return nil
}

// Close gives a device's memory back.
func (p *Program) Close() error {
	if p.backend != nil {
		return p.backend.close()
	}
	return nil
}

// Call appends a call to an observer of activations, which is made in the runs
// that are Observed; it must not change them.
func (p *Program) Call(observe func()) {
	if p.backend != nil {
		p.backend.call(observe)
		return
	}
	p.then(func() {
		if p.Observed {
			observe()
		}
	})
}

func (p *Program) then(step func()) { p.steps = append(p.steps, step) }

// reserve makes sure that every worker has that many floats of scratch.
func (p *Program) reserve(floats int) {
	for i := range p.scratch {
		if len(p.scratch[i].float) < floats {
			p.scratch[i].float = make([]float32, floats)
		}
	}
}

// Activation allocates rows of width values, one for each token row.
func (p *Program) Activation(width int) *Activation { return p.allocate(p.shape.Rows, width, false) }

// Drawn allocates rows of width values, one for each draw.
func (p *Program) Drawn(width int) *Activation { return p.allocate(p.shape.Slots, width, true) }

func (p *Program) allocate(rows, width int, drawn bool) *Activation {
	a := &Activation{width: width, stride: (width + 7) &^ 7, drawn: drawn}
	if p.backend != nil {
		p.backend.activation(a)
	} else {
		a.data = make([]float32, rows*a.stride)
	}
	return a
}

// rows returns how many rows of a are in use.
func (p *Program) rows(a *Activation) int {
	if a.drawn {
		return len(p.Batch.Draws)
	}
	return len(p.Batch.Token)
}

// grainWork is how many multiply-adds are worth waking a worker for.
const grainWork = 1 << 18

// share runs task over items of about work multiply-adds each.
func (p *Program) share(items, work int, task Task) {
	p.pool.Run(items, grainWork/max(work, 1), task)
}
