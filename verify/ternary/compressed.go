package ternary

import (
	"fmt"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// compressedTensors is the packing of vllm-project/compressed-tensors
// (pack_quantized.py, num_bits 2, symmetric): I32 [N, ceil(K/16)], lowest bits
// first, bits of zero after the last input of a row; weight_scale [N, K/g],
// [N, 1] or [1]; value (code-2)*scale, so that code 0 is -2 and no ternary tensor
// has it. The program stores weight_shape beside them, which says what the
// entry's shape does.
var compressedTensors = Format{
	ID:      manifest.FormatCompressedTensors,
	Words:   "I32, sixteen codes a word, lowest bits first along the inputs; value = (code - 2) * weight_scale",
	Remedy:  "pack the tensor again: I32 codes [N, ceil(K/16)] and one scale for each group of a row",
	Packing: NewPacking(4, "codes 1, 2 and 3", "code 0", -2, func(b byte, slot int) byte { return [4]byte{Bad, Minus, Zero, Plus}[b>>(2*slot)&3] }),
	Place: func(l *Layout, e manifest.Quantity) error {
		if len(e.Shape) != 2 {
			return fmt.Errorf("shape %v is not that of a matrix", e.Shape)
		}
		scalesByUnit(l, e)
		return inWords(l, e, safetensors.I32)
	},
}
