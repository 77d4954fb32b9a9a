package generate

import (
	"math"
	"testing"
)

func TestHalfPrecisionRounds(t *testing.T) {
	tests := []struct {
		v           float64
		half, brain uint16
	}{
		{1, 0x3c00, 0x3f80},
		{0.5, 0x3800, 0x3f00},
		{1 + 1.0/2048, 0x3c00, 0x3f80},         // a tie: to the even one below
		{1 + 3.0/2048, 0x3c02, 0x3f80},         // a tie: to the even one above
		{1 + 3.0/256, 0x3c0c, 0x3f82},          // a tie in bfloat16
		{2 - 1.0/4096, 0x4000, 0x4000},         // carries into the exponent
		{0.02, 0x251f, 0x3ca4},                 // the median scale
		{1.0 / 16384, 0x0400, 0x3880},          // the smallest normal half
		{65504, 0x7bff, 0x4780},                // the largest
		{math.Ldexp(1.5, -10), 0x1600, 0x3ac0}, //
	}
	for _, test := range tests {
		if got := float16(test.v); got != test.half {
			t.Errorf("float16(%v) = %#04x, want %#04x", test.v, got, test.half)
		}
		if got := bfloat16(test.v); got != test.brain {
			t.Errorf("bfloat16(%v) = %#04x, want %#04x", test.v, got, test.brain)
		}
	}
	if got := bfloat16(-0.02); got != 0xbca4 {
		t.Errorf("bfloat16(-0.02) = %#04x, want 0xbca4", got)
	}
}

func TestCodesTable(t *testing.T) {
	var counts [4]int
	bytes := map[byte]bool{}
	for _, b := range codesTable() {
		bytes[b] = true
		for i := range 4 {
			counts[b>>(2*i)&3]++
		}
	}
	if len(bytes) != 81 {
		t.Errorf("%d different bytes, want all 81 of four ternary codes", len(bytes))
	}
	if counts[3] != 0 {
		t.Errorf("code 3 stands %d times", counts[3])
	}
	for code, want := range []float64{0.3, 0.4, 0.3} {
		if got := float64(counts[code]) / (4 * tableSize); math.Abs(got-want) > 0.005 {
			t.Errorf("code %d has fraction %.4f, want %.2f", code, got, want)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	block := make([]byte, blockBytes)
	for name, f := range map[string]fill{"codes": fillCodes, "scales": fillScales, "weights": fillWeights} {
		b.Run(name, func(b *testing.B) {
			source := newSource(0, name)
			b.SetBytes(blockBytes)
			for b.Loop() {
				f(source, block)
			}
		})
	}
}
