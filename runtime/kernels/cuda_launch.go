//go:build cuda

package kernels

import (
	"encoding/binary"
	"fmt"

	"slipway/runtime/gpu"
)

// The launchers: each appends a closure that puts the operation's kernel into
// the stream. Arguments are in the order of the kernels' own declarations.

const (
	linearTile    = 16   // outputs of a block of linear
	linearRows    = 8    // rows of a block of linear
	mostProjected = 4    // projections of one linear
	wideBlock     = 256  // threads of a block that takes a row
	headBlock     = 128  // threads of a block that takes a head
	siluColumns   = 1024 // columns of a block of silu_mul
)

// start appends an operation of one kernel. grid and shared say its sizes in a
// bucket.
func (c *cudaProgram) start(name string, block, shared int, grid func(b bucket) [3]int, arguments *gpu.Arguments) {
	function := c.d.functions[name]
	if !c.measuring() {
		c.try(func() error { return c.d.allowShared(name, shared) })
	}
	c.launches = append(c.launches, launch{do: func(b bucket) error {
		return c.d.stream.Launch(function, gpu.Launch{Grid: grid(b), Block: [3]int{block, 1, 1}, Shared: shared, Args: arguments})
	}})
}

func rowGrid(b bucket) [3]int { return [3]int{b.rows, 1, 1} }

// arguments starts a list with an activation.
func (c *cudaProgram) arguments(first *Activation) *gpu.Arguments {
	return c.with(&gpu.Arguments{}, first)
}

func (c *cudaProgram) with(list *gpu.Arguments, a *Activation) *gpu.Arguments {
	return list.Pointer(c.activations[a]).Int32(int32(a.stride))
}

func integers(list *gpu.Arguments, values ...int) *gpu.Arguments {
	for _, v := range values {
		list.Int32(int32(v))
	}
	return list
}

func (c *cudaProgram) counts() gpu.Pointer { return c.batch.pointer(0) }

// countOf is where the count stands that a's rows have.
func (c *cudaProgram) countOf(a *Activation) gpu.Pointer {
	if a.drawn {
		return c.batch.pointer(8)
	}
	return c.counts()
}

// vector copies values to new device memory.
func (c *cudaProgram) vector(values []float32) (at gpu.Pointer) {
	c.try(func() (err error) {
		if at, err = c.arena.take(4 * int64(len(values))); err != nil || c.measuring() {
			return err
		}
		return c.d.stream.ToDevice(at, bytesOf(values))
	})
	return at
}

// part allocates device memory for a part of a matrix and has it filled.
func (c *cudaProgram) part(data []byte, size int64, read func(dst []byte, offset int64) error) (at gpu.Pointer) {
	if size == 0 {
		return 0
	}
	c.try(func() (err error) {
		if at, err = c.arena.take(size); err != nil || c.measuring() {
			return err
		}
		if read != nil {
			c.loader.add(at, size, read)
			return nil
		}
		return c.d.stream.ToDevice(at, data)
	})
	return at
}

// matrix is a matrix as the kernels take it, its parts on the device; those of
// one that two operations share are there once.
func (c *cudaProgram) matrix(m *Matrix) []byte {
	if known := c.matrices[m]; known != nil {
		return known
	}
	var readData, readScales func(dst []byte, offset int64) error
	if m.Stored != nil {
		readData, readScales = m.Stored.ReadData, m.Stored.ReadScales
	}
	data := binary.LittleEndian.AppendUint64(nil, uint64(c.part(m.Data, m.dataBytes(), readData)))
	data = binary.LittleEndian.AppendUint64(data, uint64(c.part(m.Scales, m.scaleBytes(), readScales)))
	groups := 1
	if m.scaleBytes() > 0 {
		groups = m.groups()
	}
	for _, v := range []int{m.Rows, m.Columns, int(m.Format), int(m.ScaleFormat), m.GroupRows, m.GroupColumns, groups, 0} {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	c.matrices[m] = data
	return data
}

func (c *cudaProgram) linear(src *Activation, outs []Projection) {
	if len(outs) > mostProjected {
		panic(fmt.Sprintf("kernels: %d projections of one input, at most %d", len(outs), mostProjected))
	}
	var list []byte
	tiles := 0
	for _, out := range outs {
		list = append(list, c.matrix(out.Weight)...)
		list = binary.LittleEndian.AppendUint64(list, uint64(c.activations[out.Dst]))
		list = binary.LittleEndian.AppendUint32(list, uint32(out.Dst.stride))
		list = binary.LittleEndian.AppendUint32(list, uint32(tiles))
		tiles += (out.Weight.Rows + linearTile - 1) / linearTile
	}
	list = append(list, make([]byte, 64*mostProjected-len(list))...)
	list = binary.LittleEndian.AppendUint64(list, uint64(len(outs)))
	arguments := c.arguments(src).Int32(int32(src.width)).Bytes(list, 8).Pointer(c.countOf(src))
	c.start("linear", 128, 0, func(b bucket) [3]int {
		rows := b.rows
		if src.drawn {
			rows = b.runs
		}
		return [3]int{tiles, (rows + linearRows - 1) / linearRows, 1}
	}, arguments)
}

func (c *cudaProgram) embed(dst *Activation, table *Matrix) {
	c.tokens = table.Rows
	arguments := c.arguments(dst).Bytes(c.matrix(table), 8).
		Pointer(c.batch.pointer(c.batch.token)).Pointer(c.batch.pointer(c.batch.position)).Pointer(c.batch.pointer(c.batch.slots)).
		Pointer(c.sequences).Int32(int32(c.p.shape.Context)).Pointer(c.counts())
	c.start("embed", wideBlock, 0, rowGrid, arguments)
}

func (c *cudaProgram) addNorm(dst, residual, delta *Activation, norm Norm) {
	arguments := c.with(c.arguments(dst), residual)
	if delta != nil {
		c.with(arguments, delta)
	} else {
		arguments.Pointer(0).Int32(0)
	}
	arguments.Pointer(c.vector(norm.Weight)).Int32(int32(residual.width)).Float32(norm.Epsilon).Pointer(c.counts())
	c.start("add_norm", wideBlock, 0, rowGrid, arguments)
}

func (c *cudaProgram) siluMul(dst, gate, up *Activation) {
	arguments := c.with(c.with(c.arguments(dst), gate), up).Int32(int32(dst.width)).Pointer(c.counts())
	c.start("silu_mul", wideBlock, 0, func(b bucket) [3]int {
		return [3]int{b.rows, (dst.width + siluColumns - 1) / siluColumns, 1}
	}, arguments)
}

func (c *cudaProgram) selectRows(dst, src *Activation) {
	arguments := c.with(c.arguments(dst), src).Int32(int32(src.width)).Pointer(c.batch.pointer(c.batch.draws)).Pointer(c.counts())
	c.start("select_rows", wideBlock, 0, func(b bucket) [3]int { return [3]int{b.runs, 1, 1} }, arguments)
}

func (c *cudaProgram) rotary(r *Rotary) {
	half := r.dim / 2
	arguments := c.arguments(r.table).Pointer(c.vector(r.inverse)).Int32(int32(half)).
		Pointer(c.batch.pointer(c.batch.position)).Pointer(c.counts())
	c.start("rotary", min((half+31)&^31, 1024), 0, rowGrid, arguments)
}

// paged appends what says where a row's keys and values are.
func (c *cudaProgram) paged(list *gpu.Arguments) *gpu.Arguments {
	return list.Pointer(c.batch.pointer(c.batch.slots)).Pointer(c.batch.pointer(c.batch.position)).
		Pointer(c.batch.pointer(c.batch.tables)).Int32(int32(c.p.pagesPer)).Pointer(c.counts())
}

func (c *cudaProgram) headNormRope(q, k, v *Activation, cache *Cache, qNorm, kNorm Norm, rotary *Rotary) {
	h := cache.heads
	arguments := c.with(c.with(c.arguments(q), k), v).
		Pointer(c.caches[cache][0]).Pointer(c.caches[cache][1]).
		Pointer(c.vector(qNorm.Weight)).Float32(qNorm.Epsilon).Pointer(c.vector(kNorm.Weight)).Float32(kNorm.Epsilon)
	c.paged(integers(c.with(arguments, rotary.table), rotary.dim/2, h.Query, h.KV, h.Dim, q.width/h.Query))
	c.start("head_norm_rope", headBlock, 0, func(b bucket) [3]int { return [3]int{b.rows, h.Query + h.KV, 1} }, arguments)
}

func (c *cudaProgram) attention(dst, q *Activation, cache *Cache) {
	h := cache.heads
	gated := 0
	if h.Gated {
		gated = 1
	}
	arguments := c.with(c.arguments(dst), q).Pointer(c.caches[cache][0]).Pointer(c.caches[cache][1])
	c.paged(integers(arguments, h.Query, h.KV, h.Dim, q.width/h.Query, gated))
	c.start("attention", headBlock, 4*(SplitKeys+2*h.Dim), func(b bucket) [3]int { return [3]int{b.rows, h.Query, 1} }, arguments)
}

func (c *cudaProgram) deltaNet(dst, mixed, z, b, a *Activation, w DeltaWeights, state *DeltaState) {
	s := state.shape
	channels := s.Channels()
	taps := make([]float32, len(w.Convolution)) // as [Kernel][Channels]
	for i, tap := range w.Convolution {
		taps[i%s.Kernel*channels+i/s.Kernel] = tap
	}
	runs := c.batch.pointer(c.batch.runs)
	convolve := c.arguments(mixed).Pointer(c.vector(taps)).Pointer(c.states[state][0]).
		Int32(int32(channels)).Int32(int32(s.Kernel)).Pointer(runs).Pointer(c.counts())
	c.start("delta_convolve", headBlock, 0, func(b bucket) [3]int {
		return [3]int{b.runs, (channels + headBlock - 1) / headBlock, 1}
	}, convolve)
	rule := c.with(c.with(c.with(c.with(c.arguments(dst), mixed), z), b), a).
		Pointer(c.vector(w.Decay)).Pointer(c.vector(w.TimeBias)).Pointer(c.vector(w.Norm.Weight)).Float32(w.Norm.Epsilon).
		Pointer(c.states[state][1])
	integers(rule, s.KeyHeads, s.ValueHeads, s.KeyDim, s.ValueDim).Pointer(runs).Pointer(c.counts())
	c.start("delta_rule", headBlock, deltaShared(s), func(b bucket) [3]int { return [3]int{b.runs, s.ValueHeads, 1} }, rule)
}

func (c *cudaProgram) sample(logits *Activation, tokens int) {
	slots := int64(c.p.shape.Slots)
	c.perSlot += 8 * slots * int64(logits.width)
	var scratch, marks gpu.Pointer
	c.try(func() (err error) {
		if scratch, err = c.arena.take(4 * slots * int64(logits.width)); err != nil {
			return err
		}
		if marks, err = c.arena.take(4 * slots * int64(logits.width)); err != nil || c.measuring() {
			return err
		}
		return c.d.stream.Fill(marks, 0, 4*slots*int64(logits.width))
	})
	arguments := integers(c.arguments(logits), logits.width, tokens).
		Pointer(c.batch.pointer(c.batch.draws)).Pointer(c.sequences).Int32(int32(c.p.shape.Context)).
		Pointer(scratch).Pointer(marks).Pointer(c.results).Pointer(c.counts())
	c.start("sample", 1024, 0, func(b bucket) [3]int { return [3]int{b.runs, 1, 1} }, arguments)
}

// deltaShared is the bytes of shared memory of delta_rule, by the formula that
// stands above the kernel: keys and queries of four tokens and their factors, the
// outputs, and the state of a head where it is small enough.
func deltaShared(s DeltaShape) int {
	state := s.KeyDim * s.ValueDim
	if state > 16384 {
		state = 0
	}
	return 4 * (8*((s.KeyDim+3)&^3) + 8 + 4*s.ValueDim + state)
}
