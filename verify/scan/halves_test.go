package scan

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"slipway/manifest/safetensors"
)

// Two numbers in one are told from numbers in single precision, whatever those
// come from.
func TestTwoNumbersInOne(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	bf16 := func(v float64) uint32 { return math.Float32bits(float32(v)) >> 16 }
	f16 := func(v float64) uint32 { // of normal numbers
		x := math.Float32bits(float32(v))
		return x>>16&0x8000 | (max(x>>23&0xff, 113)-112)<<10 | x>>13&0x3ff
	}
	normal := func() float64 { return 0.02 * r.NormFloat64() }
	for _, tc := range []struct {
		name string
		next func(i int) uint32
		want bool
	}{
		{"two in BF16", func(int) uint32 { return bf16(normal())<<16 | bf16(normal()) }, true},
		{"two in F16", func(int) uint32 { return f16(normal())<<16 | f16(normal()) }, true},
		{"BF16 below a norm's gain", func(int) uint32 { return bf16(1+normal())<<16 | bf16(normal()) }, true},
		{"trained", func(int) uint32 { return math.Float32bits(float32(normal())) }, false},
		{"a norm's gains", func(int) uint32 { return math.Float32bits(float32(1 + normal())) }, false},
		{"logarithms", func(i int) uint32 { return math.Float32bits(float32(math.Log(float64(i + 1)))) }, false},
		{"widened from BF16", func(int) uint32 { return bf16(normal()) << 16 }, false},
		{"widened from F16", func(int) uint32 { return math.Float32bits(float32(int(normal()*1e5)) / 1024) }, false},
		{"products of two in BF16", func(int) uint32 {
			a, b := math.Float32frombits(bf16(normal())<<16), math.Float32frombits(bf16(normal())<<16)
			return math.Float32bits(a * b)
		}, false},
		{"one value", func(int) uint32 { return math.Float32bits(0.1) }, false},
		{"ten values", func(i int) uint32 { return math.Float32bits(float32(i%10+1) / 7) }, false},
		{"even steps", func(i int) uint32 { return math.Float32bits(float32(i) / 4096 * 0.1) }, false},
	} {
		for _, count := range []int{256, 4096, 300_000} {
			data, wide := make([]byte, 0, 4*count), make([]byte, 0, 8*count)
			for i := range count {
				x := tc.next(i)
				data = binary.LittleEndian.AppendUint32(data, x)
				wide = binary.LittleEndian.AppendUint64(wide, math.Float64bits(float64(math.Float32frombits(x))))
			}
			for dtype, bytes := range map[safetensors.DType][]byte{safetensors.F32: data, safetensors.F64: wide} {
				o, facts := observeHalves(dtype), &Tensor{}
				o.write(bytes[:9])
				o.write(bytes[9:])
				o.finish(facts)
				if h := facts.Halves; h.TwoInOne() != tc.want || h.Beyond != 0 {
					t.Errorf("%s, %d as %s: %+v", tc.name, count, dtype, *h)
				}
			}
		}
	}
}
