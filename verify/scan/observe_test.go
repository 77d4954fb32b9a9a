package scan

import (
	"encoding/binary"
	"hash/fnv"
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
