package ternary

import (
	"fmt"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// mlxAffine is MLX's affine quantization with two bits (MLX documentation,
// mlx.core.quantize): U32 [..., K/16], lowest bits first; scales and biases
// [..., K/g]; value code*scale + bias. It is ternary exactly where every bias
// is the negative of its scale, bit for bit: the values are then (code-1)*scale.
var mlxAffine = Format{
	ID:      manifest.FormatMLXAffine,
	Words:   "U32, sixteen codes a word, lowest bits first along the inputs; value = code * scale + bias, and every bias is -scale",
	Remedy:  "pack the tensor again: U32 codes [N, K/16], scales and biases [N, K/g]",
	Packing: lowestFirst,
	Place: func(l *Layout, e manifest.Quantity) error {
		scalesByUnit(l, e)
		l.Biases = &Part{Shape: l.Scales.Shape}
		return alongInputs(l, e, safetensors.U32)
	},
}

// mlxRowAlpha is the packing of deepgrove-ai/mlx-lm-deepgrove: codes as
// mlxAffine's, one BF16 magnitude a row, [...] without the last dimension;
// value (code-1)*row_alpha.
var mlxRowAlpha = Format{
	ID:      manifest.FormatMLXRowAlpha,
	Words:   "U32, sixteen codes a word, lowest bits first along the inputs; value = (code - 1) * row_alpha, BF16",
	Remedy:  "pack the tensor again: U32 codes [N, K/16], BF16 row_alpha [N]",
	Packing: lowestFirst,
	Place: func(l *Layout, e manifest.Quantity) error {
		if l.Unit != manifest.UnitRow {
			return fmt.Errorf("unit %s is not row", l.Unit)
		}
		l.Scales = Part{safetensors.BF16, e.Shape[:len(e.Shape)-1]}
		return alongInputs(l, e, safetensors.U32)
	},
}
