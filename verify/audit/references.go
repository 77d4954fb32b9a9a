package audit

import (
	"slices"

	"slipway/manifest"
	"slipway/verify/ternary"
)

// Capacity is what a stored tensor serves an entry as.
type Capacity string

// What stored tensors serve as.
const (
	AsCodes  Capacity = "codes"
	AsScales Capacity = "scales"
	AsBiases Capacity = "biases"
	AsValues Capacity = "values"
)

// Use is one reference from an entry of the quantization manifest.
type Use struct {
	Entry string
	As    Capacity
}

// Reference is a stored tensor that an entry names. File points into the entry.
type Reference struct {
	File   *string
	Tensor string
	As     Capacity
}

// References lists the stored tensors that an entry names. It gives the entry
// stored tensors of its own, so that a caller may set the files.
func References(e *manifest.Quantity) []Reference {
	if e.Codes == nil {
		return []Reference{{&e.File, e.Tensor, AsValues}}
	}
	codes, scales := *e.Codes, *e.Scales
	e.Codes, e.Scales = &codes, &scales
	list := []Reference{{&codes.File, codes.Tensor, AsCodes}, {&scales.File, scales.Tensor, AsScales}}
	if e.Biases != nil {
		biases := *e.Biases
		e.Biases = &biases
		list = append(list, Reference{&biases.File, biases.Tensor, AsBiases})
	}
	return list
}

// LiteralSizes lists how many weights of a literal entry may share a magnitude,
// each a multiple of the next: what the entry says, or, where it does not say,
// all that are looked for. It is nil where the entry's unit does not fit.
func LiteralSizes(e manifest.Quantity) []int64 {
	total, ok := ternary.Product(e.Shape)
	row := rowOf(e)
	if !ok || total == 0 {
		return nil
	}
	switch e.ScaleUnit() {
	case manifest.UnitTensor:
		return []int64{total}
	case manifest.UnitRow:
		return []int64{row}
	case manifest.UnitGroup:
		if row%e.GroupSize != 0 {
			return nil
		}
		return []int64{e.GroupSize}
	}
	sizes := []int64{total, row}
	for _, group := range []int64{256, 128, 64, 32} {
		if row%group == 0 {
			sizes = append(sizes, group)
		}
	}
	return slices.Compact(sizes)
}

// rowOf is how many weights a row of a tensor has.
func rowOf(e manifest.Quantity) int64 {
	if len(e.Shape) == 0 {
		return 1
	}
	return e.Shape[len(e.Shape)-1]
}
