// Package ternary knows how ternary weights are packed. A format is one value:
// where each weight's code lies, what the codes stand for, and which stored
// tensors of which shape it needs. Everything else that is asked of packed
// weights is asked of a Layout, so that a new format is a decoder and nothing
// else. The formulas are those of the formats' own programs, named beside each.
package ternary

import (
	"fmt"
	"math"
	"slices"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// Format is a way of storing ternary weights in two bits each.
type Format struct {
	ID     string
	Words  string // the packing in words, for people
	Remedy string // what to do about a tensor that is stored otherwise

	// place lays out an entry whose shape has rows of inputs elements, scale
	// unit and axis as the entry gives them.
	place func(l *Layout, e manifest.Quantity) error
}

// The codes, which all formats share: a code stands for -1, 0 or +1 times its
// scale. One more fits into two bits, and no ternary tensor holds it.
const (
	Minus = 0
	Zero  = 1
	Plus  = 2
	Bad   = 3
)

// Formats returns all formats, in the order in which they are documented.
func Formats() []Format { return []Format{packed, mlxAffine, mlxRowAlpha, bitnet} }

// Lookup returns the format of an id.
func Lookup(id string) (Format, bool) {
	for _, f := range Formats() {
		if f.ID == id {
			return f, true
		}
	}
	return Format{}, false
}

// Part is a stored tensor that a format needs. No DType means one that scales
// may have.
type Part struct {
	DType safetensors.DType
	Shape []int64
}

// Layout is the geometry of one packed tensor: Rows rows of Inputs weights, each
// weight's code in a byte of the codes, and units of consecutive weights that
// share a scale. Units never straddle rows unless one unit is the whole tensor.
type Layout struct {
	Format       Format
	Rows, Inputs int64
	Codes        Part
	Scales       Part
	Biases       *Part // nil for formats without

	Unit      string // manifest.UnitTensor, UnitRow or UnitGroup
	UnitSize  int64  // weights that share a scale
	Units     int64
	UnitBytes int64 // bytes of codes of one unit; they are consecutive

	// PadFrom says from which byte of the codes on each of a byte's four codes
	// is padding, which holds code Minus and stands for no weight. It is the
	// number of bytes where there is none.
	PadFrom [4]int64

	quarters bool // a byte's codes lie in four quarters of the rows, not side by side
}

// Geometry lays out an entry of kind packed_2bit. The error says what about its
// shape or unit does not fit the format.
func (f Format) Geometry(e manifest.Quantity) (Layout, error) {
	if len(e.Shape) < 2 {
		return Layout{}, fmt.Errorf("shape %v has fewer than two dimensions", e.Shape)
	}
	total, ok := Product(e.Shape)
	if !ok {
		return Layout{}, fmt.Errorf("shape %v is out of range", e.Shape)
	}
	if total == 0 {
		return Layout{}, fmt.Errorf("shape %v is empty", e.Shape)
	}
	l := Layout{Format: f, Inputs: e.Shape[len(e.Shape)-1], Unit: e.ScaleUnit()}
	l.Rows = total / l.Inputs
	switch l.Unit {
	case manifest.UnitTensor:
		l.UnitSize = total
	case manifest.UnitRow:
		l.UnitSize = l.Inputs
	case manifest.UnitGroup:
		l.UnitSize = e.GroupSize
	default:
		return Layout{}, fmt.Errorf("unit %q is not known", manifest.Clip(l.Unit))
	}
	if l.UnitSize <= 0 || l.Unit == manifest.UnitGroup && l.Inputs%l.UnitSize != 0 {
		return Layout{}, fmt.Errorf("%d inputs are not a multiple of group_size %d", l.Inputs, l.UnitSize)
	}
	l.Units = total / l.UnitSize
	if err := f.place(&l, e); err != nil {
		return Layout{}, err
	}
	if bytes := l.CodeBytes(); l.PadFrom == [4]int64{} {
		l.PadFrom = [4]int64{bytes, bytes, bytes, bytes}
	}
	return l, nil
}

// Elements returns the number of weights.
func (l *Layout) Elements() int64 { return l.Rows * l.Inputs }

// CodeBytes returns the bytes of the codes.
func (l *Layout) CodeBytes() int64 {
	n, _ := Product(l.Codes.Shape)
	return n * int64(l.Codes.DType.Bits()) / 8
}

// Slot returns where the code of a weight lies: in which byte of the codes, and
// from which bit on.
func (l *Layout) Slot(element int64) (at int64, shift uint) {
	if !l.quarters {
		return element / 4, uint(element%4) * 2
	}
	row, input := element/l.Inputs, element%l.Inputs
	packedRows := l.Codes.Shape[0]
	return row%packedRows*l.Inputs + input, uint(row/packedRows) * 2
}

// Span returns the bytes of the codes between which the codes of consecutive
// weights lie, at least one of them.
func (l *Layout) Span(first, count int64) (begin, end int64) {
	if !l.quarters {
		return first / 4, (first+count-1)/4 + 1
	}
	begin, _ = l.Slot(first)
	end = begin
	for i := range count {
		at, _ := l.Slot(first + i)
		begin, end = min(begin, at), max(end, at)
	}
	return begin, end + 1
}

// Element returns the weight whose code lies in a byte of the codes at a slot,
// 0 for the lowest two bits; ok is false where that is padding.
func (l *Layout) Element(at int64, slot int) (element int64, ok bool) {
	if at >= l.PadFrom[slot] {
		return 0, false
	}
	if !l.quarters {
		return at*4 + int64(slot), true
	}
	row := at/l.Inputs + int64(slot)*l.Codes.Shape[0]
	return row*l.Inputs + at%l.Inputs, true
}

// Product multiplies a shape; ok is false above 2^50, far more than any model.
func Product(shape []int64) (n int64, ok bool) {
	n = 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > (1<<50)/d {
			return math.MaxInt64, false
		}
		n *= d
	}
	return n, true
}

// alongInputs lays codes out side by side along the last axis: so many codes
// to a word, the first in its lowest bits. Words are little endian, so that
// bytes hold four codes each in the same order.
func alongInputs(l *Layout, e manifest.Quantity, dtype safetensors.DType) error {
	last := len(e.Shape) - 1
	if e.Axis != nil && *e.Axis != int64(last) {
		return fmt.Errorf("axis %d is not the last one, along which %s packs", *e.Axis, l.Format.ID)
	}
	perWord := int64(dtype.Bits() / 2)
	word := map[safetensors.DType]string{safetensors.U8: "byte", safetensors.U32: "word"}[dtype]
	if l.Inputs%perWord != 0 {
		return fmt.Errorf("%d inputs are not a multiple of the %d codes of a %s", l.Inputs, perWord, word)
	}
	if l.UnitSize%4 != 0 {
		return fmt.Errorf("group_size %d is not a multiple of the 4 codes of a byte", l.UnitSize)
	}
	l.Codes = Part{dtype, slices.Clone(e.Shape)}
	l.Codes.Shape[last] /= perWord
	l.UnitBytes = l.UnitSize / 4
	return nil
}

// scalesByUnit gives the scales a shape with one element for each unit.
func scalesByUnit(l *Layout, e manifest.Quantity) {
	l.Scales.Shape = slices.Clone(e.Shape)
	if l.Unit == manifest.UnitTensor {
		l.Scales.Shape = []int64{1}
		return
	}
	l.Scales.Shape[len(e.Shape)-1] = l.Inputs / l.UnitSize
}
