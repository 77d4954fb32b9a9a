package verify

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"testing"

	"slipway/manifest/safetensors"
)

// observeIn feeds data to an observer in pieces of random lengths.
func observeIn(o observer, data []byte, r *rand.Rand) *tensorFacts {
	for len(data) > 0 {
		n := min(len(data), 1+r.IntN(1+r.IntN(90)))
		o.write(data[:n])
		data = data[n:]
	}
	facts := &tensorFacts{}
	o.finish(facts)
	return facts
}

// plainCodes counts codes one by one.
func plainCodes(data []byte, unitCodes int) *codeFacts {
	f := &codeFacts{zeroUnits: unitSet{}}
	zero := true
	for i := range 4 * len(data) {
		code := data[i/4] >> (2 * (i % 4)) & 3
		if code == 3 && f.histogram[3] == 0 {
			f.firstBad = int64(i)
		}
		f.histogram[code]++
		zero = zero && code == 1
		if (i+1)%unitCodes == 0 {
			if zero {
				f.zeroUnits.add(int64(i / unitCodes))
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
		got := observeIn(observeCodes(int64(unitBytes)), data, r).codes
		if want := plainCodes(data, 4*unitBytes); !reflect.DeepEqual(got, want) {
			t.Fatalf("unit of %d bytes: %+v, want %+v", unitBytes, got, want)
		}
	}
}

// plainLiteral checks units one weight at a time.
func plainLiteral(values []uint16, unit int) literalFacts {
	f := literalFacts{unit: int64(unit)}
	for begin := 0; begin < len(values); begin += unit {
		end := min(begin+unit, len(values))
		a, bad := uint64(0), false
		for i := begin; i < end; i++ {
			switch m := uint64(values[i] & 0x7fff); {
			case m == 0:
				f.zeros++
			case a == 0:
				a = m
			case m != a && !bad:
				bad = true
				if f.badUnits == 0 {
					f.firstBad, f.first, f.second = int64(i), a, m
				}
				f.badUnits++
			}
		}
		if end-begin == unit {
			f.units++
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
		got := *observeIn(observeLiteral(safetensors.BF16, int64(unit)), data, r).literal
		if want := plainLiteral(values, unit); got != want {
			t.Fatalf("unit %d: %+v, want %+v", unit, got, want)
		}
	}
}

func TestFiniteFindsEveryPattern(t *testing.T) {
	type pattern struct {
		dtype     safetensors.DType
		bits      uint64
		nonFinite bool
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
		for at := range 19 { // every lane, and the words' tail
			data := make([]byte, 19*size)
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], p.bits)
			copy(data[at*size:(at+1)*size], word[:size])
			facts := observeIn(observeFinite(p.dtype), data, random("finite"))
			if (facts.nonFinite == 1) != p.nonFinite || p.nonFinite && facts.firstNonFinite != int64(at) {
				t.Errorf("%s %#x at %d: %d non-finite, first at %d", p.dtype, p.bits, at, facts.nonFinite, facts.firstNonFinite)
			}
		}
	}
}

func TestScaleFacts(t *testing.T) {
	data := make([]byte, 0, 14)
	for _, v := range []uint16{0x3c00, 0, 0x8000, 0xc000, 0x0001, 0x7c00, 0x7e01} {
		data = binary.LittleEndian.AppendUint16(data, v)
	}
	f := observeIn(observeScales(safetensors.F16), data, random("scales")).scales
	if f.count != 7 || f.negative != 1 || f.subnormal != 1 || f.nonFinite != 2 || f.firstNonFinite != 5 || f.min != -2 || f.max != 1 {
		t.Errorf("facts %+v", *f)
	}
	if f.zeroUnits.size() != 2 || !f.zeroUnits.has(1) || !f.zeroUnits.has(2) {
		t.Errorf("zero units %v", f.zeroUnits)
	}
}

func TestUnitSet(t *testing.T) {
	a, b := unitSet{}, unitSet{}
	for _, unit := range []int64{0, 63, 64, 4095, 4096, 1 << 40} {
		a.add(unit)
	}
	b.add(0)
	b.add(4096)
	if count, first := a.missingFrom(b); count != 4 || first != 63 {
		t.Errorf("%d missing, first %d", count, first)
	}
	if a.has(65) || !a.has(1<<40) {
		t.Error("membership")
	}
}
