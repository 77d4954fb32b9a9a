package ternary_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	. "slipway/verify/ternary"
	"slipway/verify/ternary/ternarytest"
)

// drawn draws an entry of n rows and about k blocks of inputs, for each format.
var drawn = map[string]func(n, k int64, r *rand.Rand) manifest.Quantity{
	manifest.FormatPacked2Bit: func(n, k int64, r *rand.Rand) manifest.Quantity {
		g := 4 * (1 + r.Int64N(9))
		return [...]manifest.Quantity{entry("", "", g, n, g*k), entry("", "", g, 2, n, g*k), entry("packed_2bit", "row", 0, n, 4*k), entry("", "tensor", 0, n, 4*k)}[r.IntN(4)]
	},
	manifest.FormatMLXAffine: func(n, k int64, r *rand.Rand) manifest.Quantity {
		g := 16 * (1 + r.Int64N(3))
		return entry("mlx_affine_2bit", "", g, n, g*k)
	},
	manifest.FormatMLXRowAlpha: func(n, k int64, r *rand.Rand) manifest.Quantity {
		return [...]manifest.Quantity{entry("mlx_row_alpha_2bit", "", 0, n, 16*k), entry("mlx_row_alpha_2bit", "", 0, 3, n, 16*k)}[r.IntN(2)]
	},
	manifest.FormatBitNetU8: func(n, k int64, r *rand.Rand) manifest.Quantity { return entry("bitnet_u8", "", 0, n, 7*k) },
	manifest.FormatCompressedTensors: func(n, k int64, r *rand.Rand) manifest.Quantity {
		g := 1 + r.Int64N(40)
		const id = "compressed_tensors_2bit"
		return [...]manifest.Quantity{entry(id, "", g, n, g*k), entry(id, "", 16, n, 16*k), entry(id, "row", 0, n, g), entry(id, "tensor", 0, n, g)}[r.IntN(4)]
	},
	ternarytest.TQ1: func(n, k int64, r *rand.Rand) manifest.Quantity { return entry(ternarytest.TQ1, "", 256, n, 256*k) },
	ternarytest.I2S: func(n, k int64, r *rand.Rand) manifest.Quantity { return entry(ternarytest.I2S, "", 0, n, 128*k) },
}

// The manifest's vocabulary and the decoders are of the same formats, and every
// one of them is drawn here.
func TestFormatsAreTheManifests(t *testing.T) {
	var ids []string
	for _, f := range Formats() {
		ids = append(ids, f.ID)
		if drawn[f.ID] == nil {
			t.Errorf("format %s is not drawn", f.ID)
		}
		if f.Words == "" || f.Remedy == "" {
			t.Errorf("format %s has no words", f.ID)
		}
	}
	if want := manifest.PackedFormatIDs(); !slices.Equal(ids, want) || len(drawn) != len(ids) {
		t.Errorf("decoders of %v, manifest has %v", ids, want)
	}
}

// checkOrder walks over the codes: every weight lies once, one unit follows the
// other, and units and padding are where the layout says.
func checkOrder(t *testing.T, l *Layout) {
	t.Helper()
	weights, unit := int64(0), int64(0)
	for at := range l.CodeBytes() {
		padding := false
		for slot := range l.Format.Packing.Slots {
			element, ok := l.Element(at, slot)
			behind := padding
			padding = padding || !ok
			switch {
			case ok && behind:
				t.Fatalf("%s %v: byte %d has a code behind padding", l.Format.ID, l.Codes.Shape, at)
			case !ok && at < l.Padded:
				t.Fatalf("%s %v: byte %d has padding, before byte %d", l.Format.ID, l.Codes.Shape, at, l.Padded)
			case !ok:
				continue
			case element/l.UnitSize < unit || element/l.UnitSize > unit+1:
				t.Fatalf("%s %v: byte %d is of unit %d, after unit %d", l.Format.ID, l.Codes.Shape, at, element/l.UnitSize, unit)
			case l.UnitBytes > 0 && at/l.UnitBytes != element/l.UnitSize:
				t.Fatalf("%s %v: byte %d is of unit %d", l.Format.ID, l.Codes.Shape, at, element/l.UnitSize)
			case l.UnitBytes == 0 && l.Padded > 0:
				t.Fatalf("%s: no bytes of a unit, and none of padding", l.Format.ID)
			}
			unit = element / l.UnitSize
			weights++
		}
	}
	if weights != l.Elements() {
		t.Fatalf("%s %v: %d codes of %d weights", l.Format.ID, l.Codes.Shape, weights, l.Elements())
	}
}

// decode(encode(x)) is x for every format, unit and scale type, and Slot and
// Element are each other's inverse.
func TestDecodeInvertsEncode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ids := manifest.PackedFormatIDs()
	for n := range 3000 {
		draw := drawn[ids[n%len(ids)]]
		e := draw(1+r.Int64N(9), 1+r.Int64N(5), r)
		l := layout(t, e)
		dtype := []safetensors.DType{safetensors.F16, safetensors.BF16, safetensors.F32}[r.IntN(3)]
		if l.Scales.DType != 0 {
			dtype = l.Scales.DType
		}
		values := make([]float32, l.Elements())
		magnitude := float32(0)
		for i := range values {
			if int64(i)%l.UnitSize == 0 { // a random number of the type, sometimes zero or subnormal
				b := uint64(r.Uint32())
				if dtype != safetensors.F32 {
					b &= 0xffff
				}
				magnitude = float32(math.Abs(Value(dtype, b)))
				if magnitude != magnitude || math.IsInf(float64(magnitude), 0) {
					magnitude = 0
				}
			}
			values[i] = magnitude * float32(r.IntN(3)-1)
		}
		s, err := l.Encode(values, dtype)
		if err != nil {
			t.Fatalf("%+v %s: %v", e, dtype, err)
		}
		got, err := l.Decode(s)
		if err != nil {
			t.Fatal(err)
		}
		checkOrder(t, &l)
		for i := range values {
			if got[i] != values[i] {
				t.Fatalf("%+v %s: weight %d is %v, was %v", e, dtype, i, got[i], values[i])
			}
			at, slot := l.Slot(int64(i))
			if element, ok := l.Element(at, slot); !ok || element != int64(i) {
				t.Fatalf("%+v: weight %d lies at byte %d, slot %d, where weight %d lies", e, i, at, slot, element)
			}
		}
	}
}

// FuzzDecode gives any geometry and any bytes: no panic, and what decodes has
// as many weights as its shape says.
func FuzzDecode(f *testing.F) {
	f.Add(uint8(0), uint8(2), int64(64), int64(2), int64(2), int64(64), []byte("codes and scales"))
	f.Add(uint8(3), uint8(0), int64(0), int64(1), int64(5), int64(3), make([]byte, 8))
	f.Add(uint8(1), uint8(2), int64(16), int64(1), int64(1), int64(16), make([]byte, 8))
	for format := range Formats() { // a shape that all take, each with its own units
		for unit := range 3 {
			f.Add(uint8(format), uint8(unit), int64(256), int64(1), int64(3), int64(512), []byte{0x80, 0xff, 1, 0x55})
		}
	}
	f.Fuzz(func(t *testing.T, format, unit uint8, group, a, b, c int64, data []byte) {
		units := []string{"tensor", "row", "group", "", "x"}
		e := entry(Formats()[int(format)%len(Formats())].ID, units[int(unit)%len(units)], group, a, b, c)
		if a == 1 {
			e.Shape = e.Shape[1:]
		}
		known, _ := Lookup(e.FormatID())
		l, err := known.Geometry(e)
		if err != nil {
			return
		}
		for _, dtype := range []safetensors.DType{safetensors.F16, safetensors.BF16, safetensors.F32} {
			take := func(n int64) []byte {
				if n > 1<<16 {
					return nil
				}
				out := make([]byte, n)
				copy(out, data)
				return out
			}
			s := Stored{Codes: take(l.CodeBytes()), Scales: take(l.Units * int64(dtype.Bits()) / 8), ScaleDType: dtype}
			if l.Biases != nil {
				s.Biases = s.Scales
			}
			values, err := l.Decode(s)
			if err == nil && int64(len(values)) != l.Elements() {
				t.Errorf("%s: %d weights of shape %v", fmt.Sprint(e), len(values), e.Shape)
			}
		}
	})
}

// Of the 256 bytes 243 are what five trits give; of the others it is known which.
func TestCanonicalBytes(t *testing.T) {
	tq1, _ := Lookup(ternarytest.TQ1)
	var bad []int
	fourTrits := 0
	for b := range 256 {
		if tq1.Packing.BadBytes()[b] {
			bad = append(bad, b)
		} else if tq1.Packing.Read(byte(b), 4) == Minus {
			fourTrits++
		}
	}
	if want := []int{1, 20, 40, 60, 79, 99, 119, 138, 158, 178, 197, 217, 237}; !slices.Equal(bad, want) || fourTrits != 81 {
		t.Errorf("not canonical: %v, want %v; %d bytes have a fifth trit 0", bad, want, fourTrits)
	}
	l := layout(t, entry(ternarytest.TQ1, "", 256, 1, 256))
	codes := make([]byte, 52)
	codes[3] = 20
	if _, err := l.Decode(Stored{Codes: codes, Scales: make([]byte, 2), ScaleDType: safetensors.F16}); err == nil {
		t.Error("a byte that no five trits give decodes")
	}
}
