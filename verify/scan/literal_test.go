package scan

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"slipway/manifest/safetensors"
	"slipway/verify/ternary"
)

// plainLiteral checks units of each size one weight at a time.
func plainLiteral(dtype safetensors.DType, values []uint64, sizes []int64) (f Literal, nonFinite int64) {
	layout, _ := layoutOf(dtype)
	f = Literal{Tested: sizes[len(sizes)-1], Count: int64(len(values)), Near: true}
	for _, b := range values {
		switch m := b & layout.magnitude; {
		case m == 0:
			f.Zeros++
		case b != m:
			f.Minus++
		}
		if b&layout.exponent == layout.exponent {
			nonFinite++
		}
	}
	for _, size := range sizes {
		bad := false
		for begin := int64(0); begin < f.Count; begin += size {
			unitBad := plainUnit(&f, layout, dtype, values[begin:begin+size], begin, size == f.Tested)
			bad = bad || unitBad
		}
		if !bad && f.Unit == 0 {
			f.Unit = size
		}
	}
	f.Near = f.Near && f.BadUnits > 0
	return f, nonFinite
}

// plainUnit checks one unit, and counts it if it is of the smallest size.
func plainUnit(f *Literal, layout valueLayout, dtype safetensors.DType, unit []uint64, begin int64, smallest bool) (bad bool) {
	a, low, top, second, at := uint64(0), uint64(0), uint64(0), uint64(0), int64(0)
	for i, b := range unit {
		m := b & layout.magnitude
		if m == 0 {
			continue
		}
		if m&layout.exponent == layout.exponent || a != 0 && m != a {
			if !bad {
				bad, second, at = true, m, begin+int64(i)
			}
		} else if a == 0 && !bad {
			a = m
		}
		if low == 0 {
			low = m
		}
		low, top = min(low, m), max(top, m)
	}
	switch {
	case !smallest:
	case bad:
		if f.BadUnits == 0 {
			f.FirstBad, f.First, f.Second = at, a, second
		}
		f.BadUnits++
		lowest, highest := ternary.Value(dtype, low), ternary.Value(dtype, top)
		f.Near = f.Near && highest-lowest <= highest/128
	case a != 0:
		v := ternary.Value(dtype, a)
		if f.Max == 0 {
			f.Min = v
		}
		f.Min, f.Max = min(f.Min, v), max(f.Max, v)
	}
	return bad
}

func TestLiteralAgreesWithCheckingOneByOne(t *testing.T) {
	r := random("literal")
	for range 3000 {
		dtype := []safetensors.DType{safetensors.BF16, safetensors.F16, safetensors.F32}[r.IntN(3)]
		layout, _ := layoutOf(dtype)
		block := 1 + r.Int64N(70)
		sizes := []int64{block}
		for range r.IntN(4) {
			sizes = append([]int64{sizes[0] * (1 + r.Int64N(3))}, sizes...)
		}
		sizes = slices.Compact(sizes)
		count := sizes[0] * (1 + r.Int64N(3))
		values := make([]uint64, count)
		unit := sizes[r.IntN(len(sizes))] // the one that is ternary, but for a fault here and there
		a := uint64(0)
		for i := range values {
			if int64(i)%unit == 0 {
				a = []uint64{0x3c00, 0x3c01, 0x3d55}[r.IntN(3)] << (layout.bits - 16)
			}
			values[i] = []uint64{0, layout.magnitude + 1, a, a | layout.magnitude + 1}[r.IntN(4)]
			if r.IntN(400) == 0 {
				values[i] = []uint64{uint64(r.Uint32()) & (layout.magnitude<<1 | 1), layout.exponent, a + 1}[r.IntN(3)]
			}
		}
		var data []byte
		for _, v := range values {
			if layout.bits == 16 {
				data = binary.LittleEndian.AppendUint16(data, uint16(v))
			} else {
				data = binary.LittleEndian.AppendUint32(data, uint32(v))
			}
		}
		facts := observeIn(observeLiteral(dtype, sizes), data, r)
		want, nonFinite := plainLiteral(dtype, values, sizes)
		want.Units = count / block
		if *facts.Literal != want || facts.NonFinite != nonFinite {
			t.Fatalf("%s, units of %v: %+v with %d, want %+v with %d", dtype, sizes, *facts.Literal, facts.NonFinite, want, nonFinite)
		}
	}
}

func TestKeptBytes(t *testing.T) {
	r := random("keep")
	data := make([]byte, 300)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	ranges := []Range{{0, 3}, {3, 4}, {90, 200}, {299, 300}}
	kept := observeIn(&keepObserver{ranges: ranges}, data, r).Kept
	if len(kept) != len(ranges) {
		t.Fatalf("%d parts of %d", len(kept), len(ranges))
	}
	for i, part := range ranges {
		if !slices.Equal(kept[i], data[part.Begin:part.End]) {
			t.Errorf("part %v is %x", part, kept[i])
		}
	}
}

// Scales and biases pair exactly where every bias is -scale; zeros have no sign.
func TestPairing(t *testing.T) {
	r := random("pair")
	for range 200 {
		dtype := []safetensors.DType{safetensors.BF16, safetensors.F16, safetensors.F32}[r.IntN(3)]
		size := dtype.Bits() / 8
		scales := make([]byte, size*(1+r.IntN(300)))
		for i := range scales {
			if scales[i] = byte(r.Uint32()); r.IntN(3) == 0 {
				scales[i] = 0
			}
		}
		biases := ternary.Biases(dtype, scales)
		if r.IntN(2) == 0 {
			biases[r.IntN(len(biases))] ^= 1 << r.IntN(8)
		}
		want := true
		for i := range len(scales) / size {
			want = want && ternary.IsNegated(dtype, ternary.Bits(dtype, scales, int64(i)), ternary.Bits(dtype, biases, int64(i)))
		}
		a, b := observeIn(observePair(dtype, AsScales), scales, r), observeIn(observePair(dtype, AsBiases), biases, r)
		if got := a.Pair == b.Pair; got != want {
			t.Fatalf("%s %x, %x: pair %v, want %v", dtype, scales, biases, got, want)
		}
	}
}

// literalData makes rows of 2048 weights with a magnitude each, or each unit.
func literalData(r *rand.Rand, unit int) []byte {
	data := make([]byte, 16<<20)
	a := uint16(0)
	for i := 0; i < len(data); i += 2 {
		if i/2%unit == 0 {
			a = 0x3c00 + uint16(r.IntN(0x80))
		}
		binary.LittleEndian.PutUint16(data[i:], []uint16{0, 0x8000, a, a, a | 0x8000}[r.IntN(5)])
	}
	return data
}

func BenchmarkLiteral(b *testing.B) {
	for _, unit := range []int{2048, 128} {
		data := literalData(random("benchmark"), unit)
		b.Run(fmt.Sprintf("unit %d", unit), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				o := observeLiteral(safetensors.BF16, []int64{8 << 20, 2048, 256, 128, 64, 32})
				for p := data; len(p) > 0; p = p[blockBytes:] {
					o.write(p[:blockBytes])
				}
			}
		})
	}
}

// BenchmarkSHA256 is what the rates of the others are to be held against.
func BenchmarkSHA256(b *testing.B) {
	data := literalData(random("benchmark"), 2048)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		sha256.Sum256(data)
	}
}
