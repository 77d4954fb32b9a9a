package weights

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// Kind says how a logical tensor is stored.
type Kind int

const (
	Dense      Kind = iota // BF16, F16 or F32 values
	Packed2Bit             // U8: four codes a byte, lowest bits first along the input axis; value = (code-1) * scale
	FP8Block               // F8_E4M3: value = element * scale of its block
	Other                  // a type that nothing here computes with; only skipped tensors may have it
)

// DType is the element type of stored tensors.
type DType = safetensors.DType

// The element types of tensors that a model computes with.
const (
	BF16   = safetensors.BF16
	F16    = safetensors.F16
	F32    = safetensors.F32
	F8E4M3 = safetensors.F8E4M3
	U8     = safetensors.U8
)

// Tensor is a logical tensor: its shape as the model sees it, and where its
// stored parts are.
type Tensor struct {
	Name  string
	Kind  Kind
	Shape []int // [out, in] for matrices
	DType DType

	// One scale covers GroupRows x GroupColumns weights; Scales has shape
	// [ceil(out/GroupRows), ceil(in/GroupColumns)]. Zero for Dense.
	GroupRows, GroupColumns int
	ScaleDType              DType // BF16, F16 or F32

	data, scales *part
}

// part is one stored tensor.
type part struct {
	shard string
	name  string
	bytes *io.SectionReader
}

// scaleSuffix is appended to the name of a block-FP8 tensor to name its scales,
// which are multiplied despite the name.
const scaleSuffix = "_scale_inv"

func isFP8(s stored) bool { return s.DType == F8E4M3 }

func (c *Checkpoint) part(s stored) *part {
	section, _ := c.shards[s.shard].tensors.Section(s.Name)
	return &part{s.shard, s.Name, section}
}

// plain makes a logical tensor of one stored tensor, and of its scales if it is
// F8_E4M3.
func (c *Checkpoint) plain(name string, s stored, all map[string]stored) (*Tensor, error) {
	t := &Tensor{Name: name, Kind: Other, DType: s.DType, data: c.part(s)}
	for _, n := range s.Shape {
		t.Shape = append(t.Shape, int(n))
	}
	switch s.DType {
	case BF16, F16, F32:
		t.Kind = Dense
	case F8E4M3:
		scales, ok := all[s.Name+scaleSuffix]
		if !ok {
			return nil, fmt.Errorf("is F8_E4M3 and has no %s", s.Name+scaleSuffix)
		}
		return t, c.blocks(t, scales)
	}
	return t, nil
}

// blocks completes a block-FP8 tensor.
func (c *Checkpoint) blocks(t *Tensor, scales stored) error {
	block := c.Config.fp8Block
	if block == nil {
		return fmt.Errorf("is F8_E4M3 and config.json has no quantization_config with weight_block_size")
	}
	if len(t.Shape) != 2 {
		return fmt.Errorf("is F8_E4M3 of shape %v, not a matrix", t.Shape)
	}
	switch scales.DType {
	case BF16, F16, F32:
	default:
		return fmt.Errorf("has scales of dtype %s, want BF16, F16 or F32", scales.DType)
	}
	want := []int{ceilDiv(t.Shape[0], block[0]), ceilDiv(t.Shape[1], block[1])}
	if !equalShape(want, scales.Shape) {
		return fmt.Errorf("has scales of shape %v; %v in blocks of %v needs %v", scales.Shape, t.Shape, block, want)
	}
	t.Kind, t.GroupRows, t.GroupColumns, t.ScaleDType, t.scales = FP8Block, block[0], block[1], scales.DType, c.part(scales)
	return nil
}

// packed makes a logical tensor of codes and scales.
func (c *Checkpoint) packed(name string, entry manifest.Quantity, codes, scales stored) (*Tensor, error) {
	if len(entry.Shape) != 2 {
		return nil, fmt.Errorf("is %s of shape %v, not a matrix", entry.Kind, entry.Shape)
	}
	rows, columns := int(entry.Shape[0]), int(entry.Shape[1])
	groupRows, groupColumns := packedGroup(entry, rows, columns)
	t := &Tensor{Name: name, Kind: Packed2Bit, Shape: []int{rows, columns}, DType: codes.DType, GroupRows: groupRows, GroupColumns: groupColumns,
		ScaleDType: scales.DType, data: c.part(codes), scales: c.part(scales)}
	wantScales := []int{ceilDiv(rows, groupRows), ceilDiv(columns, groupColumns)}
	flat := entry.ScaleUnit() != manifest.UnitGroup && len(scales.Shape) < 2 // a scale a row, or one, needs no second dimension
	switch {
	case codes.DType != U8:
		return nil, fmt.Errorf("has codes of dtype %s, want U8", codes.DType)
	case scales.DType != F16 && scales.DType != BF16 && scales.DType != F32:
		return nil, fmt.Errorf("has scales of dtype %s, want BF16, F16 or F32", scales.DType)
	case columns%4 != 0 || groupColumns%8 != 0:
		return nil, fmt.Errorf("has %d inputs in groups of %d; they must be multiples of 4 and of 8", columns, groupColumns)
	case !equalShape([]int{rows, columns / 4}, codes.Shape):
		return nil, fmt.Errorf("has codes of shape %v, want [%d %d]", codes.Shape, rows, columns/4)
	case !equalShape(wantScales, scales.Shape) && !(flat && scales.Elements() == int64(wantScales[0])):
		return nil, fmt.Errorf("has scales of shape %v, want %v", scales.Shape, wantScales)
	}
	return t, nil
}

// packedGroup is the block of weights that shares a scale. Where a row has one,
// the block's width is rounded up to what matrices are decoded by.
func packedGroup(entry manifest.Quantity, rows, columns int) (groupRows, groupColumns int) {
	switch entry.ScaleUnit() {
	case manifest.UnitTensor:
		return rows, (columns + 7) &^ 7
	case manifest.UnitRow:
		return 1, (columns + 7) &^ 7
	}
	return 1, int(entry.GroupSize)
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// Data reads the stored elements, C order, little endian. Ternary code 3 and
// F8_E4M3 NaN are errors: no ternary or trained checkpoint holds them.
func (t *Tensor) Data() ([]byte, error) {
	data := make([]byte, t.DataSize())
	return data, t.ReadData(data, 0)
}

// DataSize returns the number of bytes of the stored elements.
func (t *Tensor) DataSize() int64 { return t.data.bytes.Size() }

// ReadData reads a piece of what Data reads.
func (t *Tensor) ReadData(dst []byte, offset int64) error {
	if err := t.data.read(dst, offset); err != nil {
		return err
	}
	switch t.Kind {
	case Packed2Bit:
		if i := find(dst, hasCode3); i >= 0 {
			return fmt.Errorf("tensor %q of %s: byte %d holds code 3, which ternary weights do not have", t.data.name, t.data.shard, offset+int64(i))
		}
	case FP8Block:
		if i := find(dst, hasNaN); i >= 0 {
			return fmt.Errorf("tensor %q of %s: element %d is not a number", t.data.name, t.data.shard, offset+int64(i))
		}
	}
	return nil
}

// find returns the index of the first byte that has a property, -1 for none;
// the property is tested for eight bytes at once.
func find(data []byte, has func(eight uint64) bool) int {
	i := 0
	for ; i+8 <= len(data) && !has(binary.LittleEndian.Uint64(data[i:])); i += 8 {
	}
	for ; i < len(data); i++ {
		if has(uint64(data[i])) {
			return i
		}
	}
	return -1
}

// hasCode3 looks for two set bits in a pair.
func hasCode3(eight uint64) bool { return eight&(eight>>1)&0x5555555555555555 != 0 }

// hasNaN looks for 0x7F under the sign: adding one then carries into bit 7.
func hasNaN(eight uint64) bool {
	return (eight&0x7F7F7F7F7F7F7F7F+0x0101010101010101)&0x8080808080808080 != 0
}

// Scales reads the stored scales of a Packed2Bit or FP8Block tensor, nil for
// others. A scale that is infinite or not a number is an error.
func (t *Tensor) Scales() ([]byte, error) {
	if t.scales == nil {
		return nil, nil
	}
	data := make([]byte, t.ScalesSize())
	return data, t.ReadScales(data, 0)
}

// ScalesSize returns the number of bytes of the stored scales.
func (t *Tensor) ScalesSize() int64 {
	if t.scales == nil {
		return 0
	}
	return t.scales.bytes.Size()
}

// ReadScales reads a piece of what Scales reads. It begins and ends between
// scales.
func (t *Tensor) ReadScales(dst []byte, offset int64) error {
	if err := t.scales.read(dst, offset); err != nil {
		return err
	}
	width := t.ScaleDType.Bits() / 8
	for i := range len(dst) / width {
		var special bool // all exponent bits set
		switch t.ScaleDType {
		case F16:
			special = binary.LittleEndian.Uint16(dst[2*i:])&0x7C00 == 0x7C00
		case BF16:
			special = binary.LittleEndian.Uint16(dst[2*i:])&0x7F80 == 0x7F80
		case F32:
			special = binary.LittleEndian.Uint32(dst[4*i:])&0x7F800000 == 0x7F800000
		}
		if special {
			return fmt.Errorf("tensor %q of %s: scale %d is not finite", t.scales.name, t.scales.shard, offset/int64(width)+int64(i))
		}
	}
	return nil
}

func (p *part) read(dst []byte, offset int64) error {
	n, err := p.bytes.ReadAt(dst, offset)
	if n == len(dst) {
		return nil
	}
	if errors.Is(err, io.EOF) { // it was longer when its header was read
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read tensor %q of %s: %w", p.name, p.shard, err)
}
