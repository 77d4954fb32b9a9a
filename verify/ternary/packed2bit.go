package ternary

import (
	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// packed is the bundle format's own: codes U8 [..., K/4], lowest bits first
// along the inputs, value (code-1)*scale; scales [..., K/g], [..., 1] for a
// scale a row, [1] for one in all.
var packed = Format{
	ID:      manifest.FormatPacked2Bit,
	Words:   "U8, four codes a byte, lowest bits first along the inputs; value = (code - 1) * scale",
	Remedy:  "pack the tensor again: U8 codes [N, K/4] and one scale for each group of a row",
	Packing: lowestFirst,
	Place: func(l *Layout, e manifest.Quantity) error {
		scalesByUnit(l, e)
		return alongInputs(l, e, safetensors.U8)
	},
}
