package verify

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/report"
)

// literalOf stores gate0 as literal weights of a type, with another magnitude for
// each unit of so many weights; every other zero is -0.0.
func (f *fixture) literalOf(dtype safetensors.DType, unit int64) {
	f.literal(gate0)
	r := random(gate0)
	s := &stored{dtype, []int64{256, 256}, nil}
	for i := range int64(256 * 256) {
		v := float32(i/unit%31+32) / 4096 * float32(r.IntN(3)-1) // six bits: every type holds it
		if v == 0 && i%2 == 0 {
			v = float32(math.Copysign(0, -1))
		}
		switch b := math.Float32bits(v); dtype {
		case safetensors.F32:
			s.data = binary.LittleEndian.AppendUint32(s.data, b)
		case safetensors.BF16:
			s.data = binary.LittleEndian.AppendUint16(s.data, uint16(b>>16))
		default:
			half := uint16(b >> 16 & 0x8000)
			if v != 0 {
				half |= uint16(b>>23&0xff-112)<<10 | uint16(b>>13&0x3ff)
			}
			s.data = binary.LittleEndian.AppendUint16(s.data, half)
		}
	}
	f.shards[floatShard][gate0] = s
}

// The unit of literal weights is the largest that fits, in every type: the
// tensor, a row, or a group. Zeros of both signs are zeros.
func TestUnitOfLiteralWeightsIsFound(t *testing.T) {
	for _, dtype := range []safetensors.DType{safetensors.BF16, safetensors.F16, safetensors.F32} {
		for unit, shared := range map[int64]string{
			256 * 256: manifest.UnitTensor, 256: manifest.UnitRow, 128: manifest.UnitGroup, 64: manifest.UnitGroup, 32: manifest.UnitGroup, 16: "",
		} {
			t.Run(fmt.Sprint(dtype, unit), func(t *testing.T) {
				f := newFixture()
				f.literalOf(dtype, unit)
				if shared == "" {
					vector{names: "is ternary in no unit of [65536 256 128 64 32] weights"}.look(t, onlyTernaryFails(t, f), "ternary", report.Error)
					return
				}
				r := run(t, f.write(t), Options{Profile: toyProfile()})
				if r.Err() != nil {
					t.Fatalf("%v\n%s", r.Err(), text(t, r))
				}
				for _, tensor := range r.Tensors {
					if tensor.Name != gate0 {
						continue
					}
					if tensor.Unit != unit || tensor.SharedBy != shared {
						t.Errorf("found %s of %d, want %s of %d", tensor.SharedBy, tensor.Unit, shared, unit)
					}
					if h := tensor.Histogram; h[0] < 20000 || h[1] < 20000 || h[2] < 20000 || h[0]+h[1]+h[2] != 256*256 {
						t.Errorf("histogram %v", h)
					}
				}
			})
		}
	}
}

// A unit that the entry gives is the one that is held against the weights.
func TestUnitOfLiteralWeightsAsTheEntrySays(t *testing.T) {
	for _, tc := range []struct {
		name  string
		alter func(*manifest.Quantity)
		fault string
	}{
		{"row", func(e *manifest.Quantity) { e.Unit = manifest.UnitRow }, ""},
		{"group", func(e *manifest.Quantity) { e.GroupSize = 64 }, ""},
		{"tensor", func(e *manifest.Quantity) { e.Unit = manifest.UnitTensor }, "are not {-a, 0, +a}"},
		{"a group that does not divide", func(e *manifest.Quantity) { e.GroupSize = 96 }, "group_size does not fit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			f.literalOf(safetensors.BF16, 256)
			f.edit(gate0, tc.alter)
			if tc.fault != "" {
				vector{names: tc.fault}.look(t, onlyTernaryFails(t, f), "ternary", report.Error)
			} else if r := run(t, f.write(t), Options{Profile: toyProfile()}); r.Err() != nil {
				t.Fatalf("%v\n%s", r.Err(), text(t, r))
			}
		})
	}
}
