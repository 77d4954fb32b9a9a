// Package ternarytest has formats that tests alone know: two of GGUF's packings
// with their scales as a tensor of their own, as safetensors would hold them.
// They lie as no other format does, five codes to a byte with padding between
// them, and the first code in the highest bits. That nothing else is needed to
// read them is the promise that tests hold. Importing it makes them known, which
// only tests may.
package ternarytest

import (
	"fmt"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/ternary"
)

// The formats' ids.
const (
	TQ1 = "tq1_0_codes" // U8 [N, 52*K/256], F16 scales [N, K/256]
	I2S = "i2_s_codes"  // U8 [N, K/4], one F32 scale [1]
)

func init() {
	manifest.RegisterPackedFormat(manifest.PackedFormat{ID: TQ1, Unit: manifest.UnitGroup})
	manifest.RegisterPackedFormat(manifest.PackedFormat{ID: I2S, Unit: manifest.UnitTensor})
	ternary.Register(tq1)
	ternary.Register(i2s)
}

// matrix refuses shapes other than [n, k] whose rows are whole blocks.
func matrix(e manifest.Quantity, block int64) (n, k int64, err error) {
	if len(e.Shape) != 2 {
		return 0, 0, fmt.Errorf("shape %v is not that of a matrix", e.Shape)
	}
	if e.Axis != nil && *e.Axis != 1 {
		return 0, 0, fmt.Errorf("axis %d is not the last one", *e.Axis)
	}
	n, k = e.Shape[0], e.Shape[1]
	if k%block != 0 {
		return 0, 0, fmt.Errorf("%d inputs are not a multiple of the %d weights of a block", k, block)
	}
	return n, k, nil
}

// i2s is I2_S of microsoft/BitNet (src/ggml-bitnet-mad.cpp): blocks of 128 weights
// in 32 bytes, of which byte p holds weights p, p+32, p+64 and p+96, the first in
// the highest bits.
var i2s = ternary.Format{
	ID: I2S, Words: "U8, blocks of 128 weights, highest bits first", Remedy: "pack the tensor again",
	Packing: ternary.NewPacking(4, "codes 0, 1 and 2", "code 3", 0, func(b byte, slot int) byte { return b >> (6 - 2*slot) & 3 }),
	Place: func(l *ternary.Layout, e manifest.Quantity) error {
		n, k, err := matrix(e, 128)
		if err != nil {
			return err
		}
		l.Order = blocksOf128{}
		l.Codes = ternary.Part{DType: safetensors.U8, Shape: []int64{n, k / 4}}
		l.Scales = ternary.Part{DType: safetensors.F32, Shape: []int64{1}}
		l.UnitBytes, l.Padded = n*k/4, n*k/4
		return nil
	},
}

type blocksOf128 struct{}

func (blocksOf128) Slot(element int64) (at int64, slot int) {
	return element/128*32 + element%32, int(element % 128 / 32)
}

func (blocksOf128) Element(at int64, slot int) (element int64, ok bool) {
	return at/32*128 + int64(slot)*32 + at%32, true
}
