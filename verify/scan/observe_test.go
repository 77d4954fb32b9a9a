package scan

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"slipway/manifest/safetensors"
)

// observeIn feeds data to an observer in pieces of random lengths.
func observeIn(o observer, data []byte, r *rand.Rand) *Tensor {
	for len(data) > 0 {
		n := min(len(data), 1+r.IntN(1+r.IntN(90)))
		o.write(data[:n])
		data = data[n:]
	}
	facts := &Tensor{}
	o.finish(facts)
	return facts
}

// plainCodes counts codes one by one.
func plainCodes(data []byte, unitCodes int) *Codes {
	f := &Codes{ZeroUnits: UnitSet{}}
	zero := true
	for i := range 4 * len(data) {
		code := data[i/4] >> (2 * (i % 4)) & 3
		if code == 3 && f.Histogram[3] == 0 {
			f.FirstBad = int64(i)
		}
		f.Histogram[code]++
		zero = zero && code == 1
		if (i+1)%unitCodes == 0 {
			if zero {
				f.ZeroUnits.add(int64(i / unitCodes))
			}
			zero = true
		}
	}
	return f
}

func TestCodesAgreeWithCountingOneByOne(t *testing.T) {
	r := random("codes")
	for range 200 {
		unitBytes := 1 + r.IntN(70)
		data := make([]byte, unitBytes*(1+r.IntN(20)))
		for i := range data {
			if data[i] = byte(r.Uint32()); r.IntN(3) > 0 {
				data[i] = 0x55
			}
		}
		got := observeIn(observeCodes(int64(unitBytes)), data, r).Codes
		if want := plainCodes(data, 4*unitBytes); !reflect.DeepEqual(got, want) {
			t.Fatalf("unit of %d bytes: %+v, want %+v", unitBytes, got, want)
		}
	}
}

// plainLiteral checks units one weight at a time.
func plainLiteral(values []uint16, unit int) Literal {
	f := Literal{Unit: int64(unit)}
	for begin := 0; begin < len(values); begin += unit {
		end := min(begin+unit, len(values))
		a, bad := uint64(0), false
		for i := begin; i < end; i++ {
			switch m := uint64(values[i] & 0x7fff); {
			case m == 0:
				f.Zeros++
			case a == 0:
				a = m
			case m != a && !bad:
				bad = true
				if f.BadUnits == 0 {
					f.FirstBad, f.First, f.Second = int64(i), a, m
				}
				f.BadUnits++
			}
		}
		if end-begin == unit {
			f.Units++
		}
	}
	return f
}

func TestLiteralAgreesWithCheckingOneByOne(t *testing.T) {
	r := random("literal")
	for range 400 {
		unit := 1 + r.IntN(70)
		values := make([]uint16, unit*(1+r.IntN(12)))
		for i := range values {
			values[i] = []uint16{0, 0x8000, 0x3c00, 0xbc00}[r.IntN(4)]
			if r.IntN(200) == 0 {
				values[i] = uint16(r.Uint32())
			}
		}
		data := make([]byte, 2*len(values))
		for i, v := range values {
			binary.LittleEndian.PutUint16(data[2*i:], v)
		}
		got := *observeIn(observeLiteral(safetensors.BF16, int64(unit)), data, r).Literal
		if want := plainLiteral(values, unit); got != want {
			t.Fatalf("unit %d: %+v, want %+v", unit, got, want)
		}
	}
}

func TestFiniteFindsEveryPattern(t *testing.T) {
	type pattern struct {
		dtype     safetensors.DType
		bits      uint64
		NonFinite bool
	}
	for _, p := range []pattern{
		{safetensors.BF16, 0x7f80, true}, {safetensors.BF16, 0xffc1, true}, {safetensors.BF16, 0x7f7f, false}, {safetensors.BF16, 0xff7f, false},
		{safetensors.F16, 0x7c00, true}, {safetensors.F16, 0xfe00, true}, {safetensors.F16, 0x7bff, false},
		{safetensors.F32, 0x7f800000, true}, {safetensors.F32, 0xffffffff, true}, {safetensors.F32, 0x7f7fffff, false},
		{safetensors.F64, 0x7ff0000000000000, true}, {safetensors.F64, 0xfff8000000000000, true}, {safetensors.F64, 0x7fefffffffffffff, false},
		{safetensors.F8E4M3, 0x7f, true}, {safetensors.F8E4M3, 0xff, true}, {safetensors.F8E4M3, 0x7e, false}, {safetensors.F8E4M3, 0x80, false},
		{safetensors.F8E5M2, 0x7c, true}, {safetensors.F8E5M2, 0xfd, true}, {safetensors.F8E5M2, 0x7b, false},
		{safetensors.F8E8M0, 0xff, true}, {safetensors.F8E8M0, 0xfe, false},
		{safetensors.F8E4M3FNUZ, 0x80, true}, {safetensors.F8E4M3FNUZ, 0xff, false}, {safetensors.F8E5M2FNUZ, 0x80, true},
	} {
		size := p.dtype.Bits() / 8
		for at := range 83 { // every lane of every word of four, and the tails
			data := make([]byte, 83*size)
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], p.bits)
			copy(data[at*size:(at+1)*size], word[:size])
			facts := observeIn(observeFinite(p.dtype), data, random("finite"))
			if (facts.NonFinite == 1) != p.NonFinite || p.NonFinite && facts.FirstNonFinite != int64(at) {
				t.Errorf("%s %#x at %d: %d non-finite, first at %d", p.dtype, p.bits, at, facts.NonFinite, facts.FirstNonFinite)
			}
		}
	}
}

func TestScaleFacts(t *testing.T) {
	data := make([]byte, 0, 14)
	for _, v := range []uint16{0x3c00, 0, 0x8000, 0xc000, 0x0001, 0x7c00, 0x7e01} {
		data = binary.LittleEndian.AppendUint16(data, v)
	}
	f := observeIn(observeScales(safetensors.F16), data, random("scales")).Scales
	if f.Count != 7 || f.Negative != 1 || f.Subnormal != 1 || f.NonFinite != 2 || f.FirstNonFinite != 5 || f.Min != -2 || f.Max != 1 {
		t.Errorf("facts %+v", *f)
	}
	if f.ZeroUnits.Size() != 2 || !f.ZeroUnits.has(1) || !f.ZeroUnits.has(2) {
		t.Errorf("zero units %v", f.ZeroUnits)
	}
}

func TestUnitSet(t *testing.T) {
	a, b := UnitSet{}, UnitSet{}
	for _, unit := range []int64{0, 63, 64, 4095, 4096, 1 << 40} {
		a.add(unit)
	}
	b.add(0)
	b.add(4096)
	if count, first := a.MissingFrom(b); count != 4 || first != 63 {
		t.Errorf("%d missing, first %d", count, first)
	}
	if a.has(65) || !a.has(1<<40) {
		t.Error("membership")
	}
}

func TestValueOfHalfPrecision(t *testing.T) {
	for bits, want := range map[uint64]float64{
		0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0400: math.Ldexp(1, -14), 0x0001: math.Ldexp(1, -24), 0x7c00: math.Inf(1), 0xfc00: math.Inf(-1),
	} {
		if got := Value(safetensors.F16, bits); got != want {
			t.Errorf("Value(%#04x) = %v, want %v", bits, got, want)
		}
	}
	if got := Value(safetensors.F16, 0x7e00); !math.IsNaN(got) {
		t.Errorf("NaN reads as %v", got)
	}
}

// random yields numbers that depend on name alone.
func random(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

// Four scales are looked at together where all are positive and normal; the
// result is that of looking at each alone.
func TestScalesAgreeWithOneByOne(t *testing.T) {
	for _, dtype := range []safetensors.DType{safetensors.F16, safetensors.BF16} {
		r := random("scales " + dtype.String())
		layout, _ := layoutOf(dtype)
		for range 300 {
			data := []byte{}
			for range 1 + r.IntN(60) {
				v := uint16(r.Uint32()) &^ 0x8000 // positive, nearly always normal
				if r.IntN(8) == 0 {
					v = []uint16{0, 0x8000, 1, 0x8001, uint16(layout.exponent), uint16(layout.exponent) | 0x8001, v | 0x8000}[r.IntN(7)]
				}
				data = binary.LittleEndian.AppendUint16(data, v)
			}
			got := observeIn(observeScales(dtype), data, r).Scales
			single := observeScales(dtype).(*scalesObserver)
			for i := 0; i < len(data); i += 2 {
				single.word(uint64(binary.LittleEndian.Uint16(data[i:])), 2)
			}
			want := &Tensor{}
			single.finish(want)
			if !reflect.DeepEqual(got, want.Scales) {
				t.Fatalf("%s %x: %+v, want %+v", dtype, data, got, want.Scales)
			}
		}
	}
}
