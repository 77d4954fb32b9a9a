package ternarytest

import (
	"fmt"
	"math"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/ternary"
)

// tq1 is TQ1_0 of ggml-org/llama.cpp (ggml-common.h) without the scale at the end
// of each block: 256 weights in 52 bytes, five to a byte, four in the last four.
var tq1 = ternary.Format{
	ID: TQ1, Words: "U8, blocks of 256 weights in 52 bytes, five trits a byte", Remedy: "pack the tensor again",
	Packing: ternary.NewPacking(5, "the 243 bytes that five trits give", "a byte that no five trits give", math.NaN(), trit),
	Place: func(l *ternary.Layout, e manifest.Quantity) error {
		n, k, err := matrix(e, 256)
		if err != nil {
			return err
		}
		if l.UnitSize != 256 {
			return fmt.Errorf("group_size %d is not 256", l.UnitSize)
		}
		l.Order = blocksOf256{}
		l.Codes = ternary.Part{DType: safetensors.U8, Shape: []int64{n, k / 256 * 52}}
		l.Scales = ternary.Part{DType: safetensors.F16, Shape: []int64{n, k / 256}}
		return nil
	},
}

// trit reads a trit: byte q is ceil(256*v/243), v having the first trit as its
// most significant digit. A byte that is no such q stands for nothing.
func trit(q byte, slot int) byte {
	v := 0
	var digits [5]byte
	power := 1
	for i := range digits {
		digits[i] = byte(int(byte(int(q)*power)) * 3 >> 8)
		v = 3*v + int(digits[i])
		power *= 3
	}
	if (256*v+242)/243 != int(q) {
		return ternary.Bad
	}
	return digits[slot]
}

type blocksOf256 struct{}

// The parts of a block: from which weight and which byte on, and how many bytes.
var parts = [...]struct{ weight, at, bytes int64 }{{0, 0, 32}, {160, 32, 16}, {240, 48, 4}}

func (blocksOf256) Slot(element int64) (at int64, slot int) {
	block, i, part := element/256, element%256, parts[0]
	for _, p := range parts {
		if i >= p.weight {
			part = p
		}
	}
	i -= part.weight
	return block*52 + part.at + i%part.bytes, int(i / part.bytes)
}

func (blocksOf256) Element(at int64, slot int) (element int64, ok bool) {
	block, i, part := at/52, at%52, parts[0]
	for _, p := range parts {
		if i >= p.at {
			part = p
		}
	}
	if part.bytes == 4 && slot == 4 {
		return 0, false
	}
	return block*256 + part.weight + int64(slot)*part.bytes + i - part.at, true
}
