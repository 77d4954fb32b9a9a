//go:build cuda

package kernels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"slipway/runtime/gpu"
)

// arena cuts device memory into aligned pieces, which are freed together. One
// without a device counts only.
type arena struct {
	device *gpu.Device
	blocks []gpu.Pointer
	next   gpu.Pointer // in the last block for small pieces
	left   int64
	taken  int64 // bytes of all blocks
}

const (
	arenaBlock = 32 << 20 // holds small pieces
	arenaSmall = 1 << 20  // the largest of those
	arenaAlign = 256      // what the driver's own allocations have
	arenaPage  = 2 << 20  // of which the driver maps whole ones
)

func (a *arena) take(bytes int64) (gpu.Pointer, error) {
	if bytes < 0 {
		return 0, errors.New("more memory is wanted than has addresses")
	}
	bytes = max(bytes+arenaAlign-1, arenaAlign) &^ (arenaAlign - 1)
	if bytes > arenaSmall {
		return a.block(bytes)
	}
	if bytes > a.left {
		at, err := a.block(arenaBlock)
		if err != nil {
			return 0, err
		}
		a.next, a.left = at, arenaBlock
	}
	at := a.next
	a.next += gpu.Pointer(bytes)
	a.left -= bytes
	return at, nil
}

func (a *arena) block(bytes int64) (gpu.Pointer, error) {
	a.taken += (bytes + arenaPage - 1) &^ (arenaPage - 1)
	if a.device == nil {
		return arenaAlign, nil
	}
	at, err := a.device.Alloc(bytes)
	if err != nil {
		return 0, err
	}
	a.blocks = append(a.blocks, at)
	return at, nil
}

func (a *arena) free() error {
	var all []error
	for _, at := range a.blocks {
		all = append(all, a.device.Free(at))
	}
	a.blocks, a.left = nil, 0
	return errors.Join(all...)
}

// batchBlock is a Batch on the device: counts of rows, runs and draws, then
// draws, runs, tokens, positions, slots and page tables.
type batchBlock struct {
	at                                          gpu.Pointer
	bytes                                       int
	draws, runs, token, position, slots, tables int // offsets
	staging                                     [2]*gpu.Pinned
	turn                                        int
}

const (
	drawBytes = 56
	runBytes  = 16
)

func (b *batchBlock) allocate(c *cudaProgram) (err error) {
	shape := c.p.shape
	next := 0
	part := func(bytes int) int {
		at := next
		next = (next + bytes + 7) &^ 7
		return at
	}
	part(16)
	b.draws, b.runs = part(drawBytes*shape.Slots), part(runBytes*shape.Rows)
	b.token, b.position, b.slots = part(4*shape.Rows), part(4*shape.Rows), part(4*shape.Rows)
	b.tables = part(4 * shape.Slots * c.p.pagesPer)
	b.bytes = next
	if b.at, err = c.arena.take(int64(next)); err != nil {
		return err
	}
	for i := range b.staging {
		if c.measuring() {
			break
		}
		if b.staging[i], err = c.d.gpu.Pinned(next); err != nil {
			return err
		}
	}
	return nil
}

func (b *batchBlock) free() error {
	var all []error
	for _, pinned := range b.staging {
		if pinned != nil {
			all = append(all, pinned.Free())
		}
	}
	return errors.Join(all...)
}

func (b *batchBlock) pointer(offset int) gpu.Pointer { return b.at + gpu.Pointer(offset) }

// upload copies the program's batch to the device. The copy may go on after it
// returns: the next one uses the other staging block.
func (b *batchBlock) upload(c *cudaProgram) error {
	if err := c.checkBatch(); err != nil {
		return err
	}
	batch := &c.p.Batch
	b.turn = 1 - b.turn
	data := b.staging[b.turn].Bytes()
	words := func(at int, values ...int) {
		for i, v := range values {
			binary.LittleEndian.PutUint32(data[at+4*i:], uint32(v))
		}
	}
	words(0, len(batch.Token), len(batch.Runs), len(batch.Draws))
	for i, run := range batch.Runs {
		words(b.runs+runBytes*i, run.Slot, run.First, run.Count, run.Start)
	}
	for i := range batch.Draws {
		batch.Draws[i].encode(data[b.draws+drawBytes*i:], int(batch.Slot[batch.Draws[i].Row]))
	}
	copy(data[b.token:], bytesOf(batch.Token))
	copy(data[b.position:], bytesOf(batch.Position))
	copy(data[b.slots:], bytesOf(batch.Slot))
	copy(data[b.tables:], bytesOf(batch.Pages))
	return c.d.stream.ToDevice(b.at, data[:b.bytes])
}

// checkBatch refuses what kernels would answer with an address outside: the
// device, once it has faulted, is lost to the process.
func (c *cudaProgram) checkBatch() error {
	batch, shape := &c.p.Batch, c.p.shape
	rows := len(batch.Token)
	if rows > shape.Rows || len(batch.Position) != rows || len(batch.Slot) != rows || len(batch.Runs) > rows || len(batch.Draws) > shape.Slots {
		return fmt.Errorf("batch of %d rows, %d runs and %d draws: there are %d rows and %d slots", rows, len(batch.Runs), len(batch.Draws), shape.Rows, shape.Slots)
	}
	pages := int32(shape.Slots * c.p.pagesPer)
	for i, slot := range batch.Slot {
		position := batch.Position[i]
		switch {
		case slot < 0 || int(slot) >= shape.Slots || position < 0 || int(position) >= shape.Context:
			return fmt.Errorf("row %d is position %d of slot %d: there are %d slots of %d tokens", i, position, slot, shape.Slots, shape.Context)
		case batch.Token[i] < 0 || c.tokens > 0 && int(batch.Token[i]) >= c.tokens:
			return fmt.Errorf("row %d is token %d of %d", i, batch.Token[i], c.tokens)
		}
		if page := c.p.slotPages(slot)[position/PageTokens]; page < 0 || page >= pages {
			return fmt.Errorf("row %d is in page %d of %d", i, page, pages)
		}
	}
	for i, run := range batch.Runs {
		if run.Slot < 0 || run.Slot >= shape.Slots || run.First < 0 || run.Count < 1 || run.First+run.Count > rows {
			return fmt.Errorf("run %d of slot %d is rows %d to %d of %d", i, run.Slot, run.First, run.First+run.Count, rows)
		}
	}
	for i := range batch.Draws {
		d := &batch.Draws[i]
		if d.Row < 0 || d.Row >= rows {
			return fmt.Errorf("draw %d is of row %d of %d", i, d.Row, rows)
		}
		if len(d.Sequence) > shape.Context {
			return fmt.Errorf("draw %d has a sequence of %d tokens, at most %d", i, len(d.Sequence), shape.Context)
		}
	}
	return nil
}

func (d *Draw) encode(data []byte, slot int) {
	p := &d.Params
	for i, v := range []uint32{
		uint32(d.Row), uint32(slot), uint32(len(d.Sequence)), uint32(d.Generated),
		math.Float32bits(p.Temperature), uint32(min(p.TopK, math.MaxInt32)), math.Float32bits(p.TopP), math.Float32bits(p.MinP),
		uint32(p.Seed), uint32(p.Seed >> 32),
		math.Float32bits(p.PresencePenalty), math.Float32bits(p.FrequencyPenalty), math.Float32bits(p.RepetitionPenalty), uint32(p.TopLogprobs),
	} {
		binary.LittleEndian.PutUint32(data[4*i:], v)
	}
}
