//go:build cuda

package kernels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"slipway/runtime/gpu"
)

// cudaProgram is a program on a device. What changes from step to step lies in
// one block of device memory, written from one of two blocks in pinned memory
// before the step's graph is launched; the graph, one a bucket of sizes, was
// captured when the program was finished.
type cudaProgram struct {
	p   *Program
	d   *Device
	err error // the first, of binding; or that it is closed

	finished bool

	arena     arena
	loader    *loader
	perSlot   int64 // bytes of what is there for each slot
	tokens    int   // rows of the embedding; 0: there is none
	batch     batchBlock
	sequences gpu.Pointer // [slots][context] token ids, written by embed
	results   gpu.Pointer // [slots] Result
	replies   *gpu.Pinned // the same on the host
	launches  []launch
	graphs    map[bucket]*gpu.Executable
	matrices  map[*Matrix][]byte // kernel arguments

	here        func() error // runHere, bound once
	activations map[*Activation]gpu.Pointer
	caches      map[*Cache][2]gpu.Pointer
	states      map[*DeltaState][2]gpu.Pointer
}

// launch puts an operation's kernels into the stream, sized for a bucket, or is
// an observer.
type launch struct {
	do      func(b bucket) error
	observe func()
}

// bucket is the sizes that grids are made for: token rows, and runs or draws,
// whichever are more.
type bucket struct{ rows, runs int }

// NewProgram allocates an empty program on the device.
func (d *Device) NewProgram(shape Shape) *Program {
	c := d.newProgram(shape)
	c.arena.device, c.loader = d.gpu, newLoader(d.gpu)
	c.try(c.allocate)
	c.try(c.loader.start)
	return c.p
}

// MeasureProgram returns a program that is bound without reading or allocating
// anything, and then says what it needs. It cannot run.
func (d *Device) MeasureProgram(shape Shape) *Program {
	c := d.newProgram(shape)
	c.try(c.allocate)
	return c.p
}

func (d *Device) newProgram(shape Shape) *cudaProgram {
	c := &cudaProgram{p: newProgram(shape), d: d, graphs: map[bucket]*gpu.Executable{}, matrices: map[*Matrix][]byte{},
		activations: map[*Activation]gpu.Pointer{}, caches: map[*Cache][2]gpu.Pointer{}, states: map[*DeltaState][2]gpu.Pointer{}}
	c.p.backend, c.here = c, c.runHere
	return c
}

func (c *cudaProgram) measuring() bool { return c.arena.device == nil }

// needs returns the bytes of device memory that a program takes, and how many
// of them each slot does.
func (c *cudaProgram) needs() (all, perSlot int64) {
	return c.arena.taken, c.perSlot / int64(c.p.shape.Slots)
}

// try does something of the binding on the device's thread, unless something
// before it failed.
func (c *cudaProgram) try(act func() error) {
	switch {
	case c.err != nil:
	case c.measuring():
		c.err = act()
	default:
		c.err = c.d.gpu.Do(act)
	}
}

func (c *cudaProgram) allocate() (err error) {
	shape := c.p.shape
	if err := c.batch.allocate(c); err != nil {
		return err
	}
	c.perSlot += int64(shape.Slots) * (4*int64(shape.Context) + resultBytes)
	if c.sequences, err = c.arena.take(4 * int64(shape.Slots) * int64(shape.Context)); err != nil {
		return err
	}
	if c.results, err = c.arena.take(resultBytes * int64(shape.Slots)); err != nil {
		return err
	}
	if !c.measuring() {
		c.replies, err = c.d.gpu.Pinned(resultBytes * shape.Slots)
	}
	return err
}

func (c *cudaProgram) rows(a *Activation) int {
	if a.drawn {
		return c.p.shape.Slots
	}
	return c.p.shape.Rows
}

func (c *cudaProgram) activation(a *Activation) {
	c.try(func() (err error) {
		bytes := 4 * int64(c.rows(a)) * int64(a.stride)
		if a.drawn {
			c.perSlot += bytes
		}
		c.activations[a], err = c.arena.take(bytes)
		return err
	})
	if c.d.options.Mirrored && !c.measuring() {
		c.host(a)
	}
}

// host allocates an activation's copy. Its padding is not a number, as what a
// kernel must not read.
func (c *cudaProgram) host(a *Activation) {
	if a.data == nil {
		a.data = make([]float32, c.rows(a)*a.stride)
		for i := range a.data {
			a.data[i] = float32(math.NaN())
		}
	}
}

func (c *cudaProgram) cache(cache *Cache) {
	c.try(func() (err error) {
		c.caches[cache], err = c.pair(c.p.cacheSize(cache.heads), c.p.cacheSize(cache.heads))
		return err
	})
}

func (c *cudaProgram) deltaState(s *DeltaState) {
	tail, state := c.p.shape.Slots*s.tailSize(), c.p.shape.Slots*s.stateSize()
	if c.d.options.Mirrored && !c.measuring() {
		s.tail, s.state = make([]float32, tail), make([]float32, state)
	}
	c.try(func() (err error) {
		c.states[s], err = c.pair(tail, state)
		return err
	})
}

// pair allocates two arrays of floats, of which each slot has its part.
func (c *cudaProgram) pair(first, second int) (at [2]gpu.Pointer, err error) {
	for i, size := range [2]int{first, second} {
		c.perSlot += 4 * int64(size)
		if at[i], err = c.arena.take(4 * int64(size)); err != nil {
			return at, err
		}
	}
	return at, nil
}

func (c *cudaProgram) call(observe func()) { c.launches = append(c.launches, launch{observe: observe}) }

// finish waits for the weights, and captures the graphs of all sizes that steps
// of one token a slot, and of one prompt, can have.
func (c *cudaProgram) finish() error {
	if c.measuring() {
		return c.err
	}
	if c.err != nil || c.finished {
		return c.err
	}
	if c.err = c.loader.finish(); c.err != nil {
		return c.err
	}
	c.finished = true
	c.try(func() error {
		for rows := 1; ; rows = nextSize(rows) {
			if rows <= c.p.shape.Slots || ceilingSize(c.p.shape.Slots) == rows {
				if _, err := c.graph(bucket{rows, rows}); err != nil {
					return err
				}
			}
			if _, err := c.graph(bucket{rows, 1}); err != nil {
				return err
			}
			if rows >= c.p.shape.Rows {
				return c.d.stream.Synchronize()
			}
		}
	})
	return c.err
}

// nextSize is the next larger size of a bucket: powers of two, and 24, which
// many servers run at a time.
func nextSize(size int) int {
	switch size {
	case 16:
		return 24
	case 24:
		return 32
	}
	return 2 * size
}

// ceilingSize is the smallest size of a bucket that holds n.
func ceilingSize(n int) int {
	size := 1
	for size < n {
		size = nextSize(size)
	}
	return size
}

func (c *cudaProgram) bucket() bucket {
	batch := &c.p.Batch
	return bucket{rows: ceilingSize(len(batch.Token)), runs: ceilingSize(max(len(batch.Runs), len(batch.Draws)))}
}

// graph returns the bucket's graph, which is captured when it is wanted first.
func (c *cudaProgram) graph(b bucket) (*gpu.Executable, error) {
	if x := c.graphs[b]; x != nil {
		return x, nil
	}
	graph, err := c.d.stream.Capture(func() error { return c.launch(b, false) })
	if err != nil {
		return nil, fmt.Errorf("capture a step of %d rows: %w", b.rows, err)
	}
	defer func() { _ = graph.Destroy() }()
	x, err := graph.Instantiate()
	if err != nil {
		return nil, fmt.Errorf("instantiate a step of %d rows: %w", b.rows, err)
	}
	c.graphs[b] = x
	return x, nil
}

func (c *cudaProgram) launch(b bucket, observed bool) error {
	for _, l := range c.launches {
		if l.do != nil {
			if err := l.do(b); err != nil {
				return err
			}
			continue
		}
		if observed {
			if err := c.download(); err != nil {
				return err
			}
			l.observe()
			if err := c.upload(); err != nil { // a test may give the next operation other inputs
				return err
			}
		}
	}
	return nil
}

func (c *cudaProgram) run() error {
	if err := c.finish(); err != nil {
		return err
	}
	if c.measuring() || len(c.p.Batch.Token) == 0 {
		return nil
	}
	return c.d.gpu.Do(c.here)
}

func (c *cudaProgram) runHere() error {
	err := c.step()
	if err != nil {
		_ = c.d.stream.Synchronize() // a copy out of the staging block may be under way
	}
	return err
}

func (c *cudaProgram) step() error {
	stream := c.d.stream
	if err := c.batch.upload(c); err != nil {
		return err
	}
	if err := c.mirrorIn(); err != nil {
		return err
	}
	b := c.bucket()
	if c.p.Observed || c.d.options.Uncaptured {
		if err := c.launch(b, c.p.Observed); err != nil {
			return err
		}
	} else {
		graph, err := c.graph(b)
		if err != nil {
			return err
		}
		if err := graph.Launch(stream); err != nil {
			return err
		}
	}
	draws := c.p.Batch.Draws
	if len(draws) > 0 {
		if err := stream.ToHost(c.replies.Bytes()[:resultBytes*len(draws)], c.results); err != nil {
			return err
		}
	}
	if err := stream.Synchronize(); err != nil {
		return err
	}
	for i := range draws {
		draws[i].decode(c.replies.Bytes()[resultBytes*i:])
	}
	return c.mirrorOut()
}

// decode reads a Result of the kernels.
func (d *Draw) decode(data []byte) {
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(data[4*i:]) }
	d.Token, d.Logprob = int32(word(0)), math.Float32frombits(word(1))
	for i := range min(max(d.Params.TopLogprobs, 0), MaxTopLogprobs) {
		d.Top[i] = TokenLogprob{int32(word(2 + i)), math.Float32frombits(word(2 + MaxTopLogprobs + i))}
	}
}

const resultBytes = 8 + 8*MaxTopLogprobs

// download copies the activations to the host, for observers.
func (c *cudaProgram) download() error {
	for a, at := range c.activations {
		c.host(a)
		if err := c.d.stream.ToHost(bytesOf(a.data), at); err != nil {
			return err
		}
	}
	return c.d.stream.Synchronize()
}

// upload copies mirrored activations to the device.
func (c *cudaProgram) upload() error {
	if !c.d.options.Mirrored {
		return nil
	}
	for a, at := range c.activations {
		if err := c.d.stream.ToDevice(at, bytesOf(a.data)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cudaProgram) mirrorIn() error {
	if !c.d.options.Mirrored {
		return nil
	}
	if err := c.upload(); err != nil {
		return err
	}
	stream := c.d.stream
	for s, at := range c.states {
		if err := stream.ToDevice(at[0], bytesOf(s.tail)); err != nil {
			return err
		}
		if err := stream.ToDevice(at[1], bytesOf(s.state)); err != nil {
			return err
		}
	}
	// Programs of tests need not have an embedding, which would write these.
	for _, draw := range c.p.Batch.Draws {
		at := c.sequences + gpu.Pointer(4*int(c.p.Batch.Slot[draw.Row])*c.p.shape.Context)
		if err := stream.ToDevice(at, bytesOf(draw.Sequence)); err != nil {
			return err
		}
	}
	return stream.Synchronize()
}

func (c *cudaProgram) mirrorOut() error {
	if !c.d.options.Mirrored {
		return nil
	}
	for s, at := range c.states {
		if err := c.d.stream.ToHost(bytesOf(s.tail), at[0]); err != nil {
			return err
		}
		if err := c.d.stream.ToHost(bytesOf(s.state), at[1]); err != nil {
			return err
		}
	}
	return c.download()
}

var errClosed = errors.New("the program is closed")

func (c *cudaProgram) close() error {
	if c.measuring() || c.err == errClosed {
		return nil
	}
	c.err = errClosed
	c.loader.stop()
	return c.d.gpu.Do(func() error {
		all := []error{c.d.stream.Synchronize()}
		for _, x := range c.graphs {
			all = append(all, x.Destroy())
		}
		all = append(all, c.batch.free())
		if c.replies != nil {
			all = append(all, c.replies.Free())
		}
		return errors.Join(append(all, c.arena.free())...)
	})
}

// bytesOf is a slice's memory.
func bytesOf[T float32 | int32](values []T) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 4*len(values))
}
