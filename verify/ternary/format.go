// Package ternary knows how ternary weights are packed. A format is one value:
// the stored tensors that it needs (Place), where each weight's code lies
// (Order), and what the codes stand for (Packing). Everything else that is asked
// of packed weights is asked of a Layout, so that a new format is a decoder and
// nothing else. The formulas are those of the formats' own programs, named
// beside each.
//
// Adding a format takes one file here, whose Format is named in formats, and one
// line of the manifest's packedFormats, which says what its entries may give. Its
// known answers go into this package's tests, whose other tests take in all formats.
package ternary

import (
	"fmt"
	"math"
	"slices"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// Format is a way of storing ternary weights as codes and scales.
type Format struct {
	ID      string
	Words   string // the packing in words, for people
	Remedy  string // what to do about a tensor that is stored otherwise
	Packing *Packing

	// Place lays out an entry: it sets Codes, Scales, Biases, Order, UnitBytes
	// and Padded of a layout that has everything else.
	Place func(l *Layout, e manifest.Quantity) error
}

// formats are all that this package decodes, in the order in which they are
// documented.
var formats = []Format{packed, mlxAffine, mlxRowAlpha, bitnet, compressedTensors}

// Register makes a format known for tests that prove that a format is a decoder and
// nothing else: nothing but a test calls it, or manifest.RegisterPackedFormat, once,
// when it starts.
func Register(f Format) {
	if _, there := Lookup(f.ID); there {
		panic("format " + f.ID + " is registered twice")
	}
	formats = append(formats, f)
}

// Formats returns all formats, in the order in which they are documented.
func Formats() []Format { return slices.Clone(formats) }

// Lookup returns the format of an id.
func Lookup(id string) (Format, bool) {
	i := slices.IndexFunc(formats, func(f Format) bool { return f.ID == id })
	if i < 0 {
		return Format{}, false
	}
	return formats[i], true
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
	Order

	Unit      string // manifest.UnitTensor, UnitRow or UnitGroup
	UnitSize  int64  // weights that share a scale
	Units     int64
	UnitBytes int64 // bytes of codes of one unit, which are consecutive; 0 where units are not so many whole bytes

	// Padded is from which byte of the codes on some of a byte's codes may be
	// padding, which is bits of zero and stands for no weight: 0 where UnitBytes
	// is, the number of bytes where there is none.
	Padded int64
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
	if err := f.Place(&l, e); err != nil {
		return Layout{}, err
	}
	return l, nil
}

// LayoutOf returns the geometry of a packed entry.
func LayoutOf(e manifest.Quantity) (Layout, error) {
	format, known := Lookup(e.FormatID())
	if !known { // a manifest that was read names only formats that are read here
		return Layout{}, fmt.Errorf("format %q is not one that is read here", manifest.Clip(e.FormatID()))
	}
	return format.Geometry(e)
}

// Elements returns the number of weights.
func (l *Layout) Elements() int64 { return l.Rows * l.Inputs }

// CodeBytes returns the bytes of the codes.
func (l *Layout) CodeBytes() int64 {
	n, _ := Product(l.Codes.Shape)
	return n * int64(l.Codes.DType.Bits()) / 8
}

// Span returns the bytes of the codes between which the codes of consecutive
// weights lie, at least one of them.
func (l *Layout) Span(first, count int64) (begin, end int64) {
	begin, _ = l.Slot(first)
	if _, ascending := l.Order.(sideBySide); ascending {
		end, _ = l.Slot(first + count - 1)
		return begin, end + 1
	}
	end = begin
	for i := range count {
		at, _ := l.Slot(first + i)
		begin, end = min(begin, at), max(end, at)
	}
	return begin, end + 1
}

// Read returns what the code of a weight stands for. codes are the bytes from
// byte begin on.
func (l *Layout) Read(codes []byte, begin, element int64) byte {
	at, slot := l.Slot(element)
	return l.Format.Packing.Read(codes[at-begin], slot)
}

// PackedRow returns in which row of the stored codes a byte lies.
func (l *Layout) PackedRow(at int64) int64 {
	last := l.Codes.Shape[len(l.Codes.Shape)-1]
	return at / (last * int64(l.Codes.DType.Bits()) / 8)
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

// alongInputs lays codes of two bits out side by side along the last axis: so
// many to a word, the first in its lowest bits. Words are little endian, so that
// bytes hold four codes each in the same order.
func alongInputs(l *Layout, e manifest.Quantity, dtype safetensors.DType) error {
	perWord := int64(dtype.Bits() / 2)
	word := map[safetensors.DType]string{safetensors.U8: "byte", safetensors.U32: "word", safetensors.I32: "word"}[dtype]
	if l.Inputs%perWord != 0 {
		return fmt.Errorf("%d inputs are not a multiple of the %d codes of a %s", l.Inputs, perWord, word)
	}
	if l.UnitSize%4 != 0 {
		return fmt.Errorf("group_size %d is not a multiple of the 4 codes of a byte", l.UnitSize)
	}
	return inWords(l, e, dtype)
}

// inWords is alongInputs for any number of inputs: the last word of a row is
// padded.
func inWords(l *Layout, e manifest.Quantity, dtype safetensors.DType) error {
	last := len(e.Shape) - 1
	if e.Axis != nil && *e.Axis != int64(last) {
		return fmt.Errorf("axis %d is not the last one, along which %s packs", *e.Axis, l.Format.ID)
	}
	perWord := int64(dtype.Bits() / 2)
	l.Codes = Part{dtype, slices.Clone(e.Shape)}
	l.Codes.Shape[last] = (l.Inputs + perWord - 1) / perWord
	l.Order = sideBySide{l.Inputs, l.Codes.Shape[last] * perWord / 4, 4}
	if l.Inputs%perWord == 0 && l.UnitSize%4 == 0 {
		l.UnitBytes, l.Padded = l.UnitSize/4, l.CodeBytes()
	}
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
