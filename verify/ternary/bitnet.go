package ternary

import (
	"fmt"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// bitnet is the packing of huggingface/transformers (integrations/bitnet.py,
// pack_weights): U8 [R, K] with R = ceil(N/4); a byte of row r holds the codes
// of rows r, r+R, r+2R and r+3R, lowest bits first. Rows from N to 4R are
// padding of code 0. One weight_scale [1] for the whole tensor; value
// (code-1)*scale. Some loaders divide by the stored scale: this one multiplies.
var bitnet = Format{
	ID:      manifest.FormatBitNetU8,
	Words:   "U8, a byte holds one row of each quarter of the rows, lowest bits first; value = (code - 1) * scale, one scale",
	Remedy:  "pack the tensor again: U8 codes [ceil(N/4), K] along the first axis, one scale [1]",
	Packing: lowestFirst,
	Place: func(l *Layout, e manifest.Quantity) error {
		switch {
		case len(e.Shape) != 2:
			return fmt.Errorf("shape %v is not that of a matrix", e.Shape)
		case e.Axis != nil && *e.Axis != 0:
			return fmt.Errorf("axis %d is not the first one, along which %s packs", *e.Axis, l.Format.ID)
		case l.Unit != manifest.UnitTensor:
			return fmt.Errorf("unit %s is not tensor", l.Unit)
		}
		packedRows := (l.Rows + 3) / 4
		l.Order = quarters{l.Rows, l.Inputs, packedRows}
		l.Codes = Part{safetensors.U8, []int64{packedRows, l.Inputs}}
		l.Scales = Part{Shape: []int64{1}}
		l.UnitBytes = packedRows * l.Inputs
		l.Padded = max(l.Rows-3*packedRows, 0) * l.Inputs
		return nil
	},
}
