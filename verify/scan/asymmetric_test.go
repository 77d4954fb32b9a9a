package scan

import (
	"encoding/binary"
	"math"
	"testing"

	"slipway/manifest/safetensors"
)

func TestAsymmetricUnits(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values []float32 // of units of four
		want   int64
	}{
		{"one unit", []float32{-1, 2, 0, 2, -1, -1, 2, 0}, 8},
		{"two units", []float32{-1, 2, 0, 2, -3, -3, 2, 0}, 4},
		{"symmetric", []float32{-1, 1, 0, 1, -1, 1, 1, float32(math.Copysign(0, -1))}, 8},
		{"a second positive magnitude", []float32{-1, 2, 0, 3, -1, -1, 2, 0}, 0},
		{"a second negative magnitude in the last place", []float32{-1, 2, 0, 2, -1, -1, 2, -2}, 0},
		{"infinite", []float32{-1, 2, 0, 2, -1, -1, 2, float32(math.Inf(1))}, 0},
		{"nothing", make([]float32, 8), 8},
	} {
		var data []byte
		for _, v := range tc.values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		o, facts := observeAsymmetric(safetensors.F32, []int64{8, 4}), &Tensor{}
		o.write(data[:5])
		o.write(data[5:])
		if o.finish(facts); facts.Asymmetric != tc.want {
			t.Errorf("%s: units of %d, want %d", tc.name, facts.Asymmetric, tc.want)
		}
	}
}
