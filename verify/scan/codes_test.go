package scan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"slipway/manifest"
	"slipway/verify/ternary"
	"slipway/verify/ternary/ternarytest"
)

// plainCodes looks at the codes one by one.
func plainCodes(data []byte, l *ternary.Layout) *Codes {
	f := &Codes{ZeroUnits: UnitSet{}}
	for unit := range l.Units {
		f.ZeroUnits.add(unit)
	}
	for at := range int64(len(data)) {
		for slot := range l.Format.Packing.Slots {
			code := l.Format.Packing.Read(data[at], slot)
			element, weight := l.Element(at, slot)
			switch {
			case !weight && code != l.Format.Packing.Pad():
				if f.BadPads == 0 {
					f.FirstBadPad = at
				}
				f.BadPads++
				continue
			case !weight:
				continue
			case code == ternary.Bad && f.Histogram[3] == 0:
				f.FirstBad = element
			}
			f.Histogram[code]++
			if unit := element / l.UnitSize; code != ternary.Zero {
				if page := f.ZeroUnits[unit>>12]; page != nil {
					page[unit>>6&63] &^= 1 << (unit & 63)
				}
			}
		}
	}
	return f
}

// drawnCodes draws an entry of each format in turn.
func drawnCodes(n int, r *rand.Rand) manifest.Quantity {
	ids := manifest.PackedFormatIDs()
	e := manifest.Quantity{Kind: manifest.KindPacked2Bit, Format: ids[n%len(ids)], Shape: []int64{1 + r.Int64N(11), 512 * (1 + r.Int64N(2))}}
	switch unit := e.ScaleUnit(); {
	case e.Format == manifest.FormatBitNetU8:
		e.Shape[1] = 1 + r.Int64N(90)
	case e.Format == ternarytest.TQ1:
		e.GroupSize = 256
	case e.Format == manifest.FormatPacked2Bit:
		e.GroupSize = 4 * (1 + r.Int64N(70))
		e.Shape[1] = e.GroupSize * (1 + r.Int64N(5))
	case e.Format == manifest.FormatCompressedTensors && r.IntN(2) == 0: // rows with padding
		e.GroupSize = 1 + r.Int64N(70)
		e.Shape[1] = e.GroupSize * (1 + r.Int64N(5))
	case e.Format == manifest.FormatCompressedTensors:
		e.Unit, e.Shape[1] = []string{manifest.UnitRow, manifest.UnitTensor}[r.IntN(2)], 1+r.Int64N(90)
	case unit == manifest.UnitGroup:
		e.GroupSize = 64
	}
	return e
}

func TestCodesAgreeWithCountingOneByOne(t *testing.T) {
	r := random("codes")
	found := map[string][3]bool{} // bad codes, bad padding, units of zeros
	for n := range 1200 {
		e := drawnCodes(n, r)
		format, _ := ternary.Lookup(e.Format)
		l, err := format.Geometry(e)
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, l.CodeBytes())
		dense := r.IntN(3)
		for i := range data {
			if data[i] = byte(r.Uint32() & 0xef); r.IntN(3) > 0 || dense == 0 {
				data[i] = format.Packing.ZeroByte()
			}
		}
		got, want := observeIn(observeCodes(&l), data, r).Codes, plainCodes(data, &l)
		got.ZeroUnits, want.ZeroUnits = listed(got.ZeroUnits), listed(want.ZeroUnits)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s %v in units of %d: %+v, want %+v", e.Format, e.Shape, l.UnitSize, got, want)
		}
		f := found[e.Format]
		f[0], f[1], f[2] = f[0] || want.Histogram[ternary.Bad] > 0, f[1] || want.BadPads > 0, f[2] || len(want.ZeroUnits) > 0
		found[e.Format] = f
	}
	for _, id := range manifest.PackedFormatIDs() {
		pads := id == manifest.FormatBitNetU8 || id == manifest.FormatCompressedTensors || id == ternarytest.TQ1
		if found[id] != [3]bool{true, pads, true} {
			t.Errorf("%s: bad codes, bad padding, units of zeros: %v", id, found[id])
		}
	}
}

// listed leaves out the pages of a set that are empty.
func listed(s UnitSet) UnitSet {
	for index, page := range s {
		if *page == [64]uint64{} {
			delete(s, index)
		}
	}
	return s
}

// BenchmarkOtherCodes is the cost of codes that have to be looked up, byte by
// byte and, where padding is between them, one by one.
func BenchmarkOtherCodes(b *testing.B) {
	for _, e := range []manifest.Quantity{
		{Kind: manifest.KindPacked2Bit, Format: manifest.FormatCompressedTensors, GroupSize: 128, Shape: []int64{1 << 10, 1 << 12}},
		{Kind: manifest.KindPacked2Bit, Format: ternarytest.TQ1, GroupSize: 256, Shape: []int64{1 << 10, 1 << 12}},
	} {
		format, _ := ternary.Lookup(e.Format)
		l, err := format.Geometry(e)
		if err != nil {
			b.Fatal(err)
		}
		trits, r := make([]int8, l.Elements()), random("benchmark")
		for i := range trits {
			trits[i] = int8(r.IntN(3) - 1)
		}
		data, err := l.EncodeCodes(trits)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(e.Format, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				observeCodes(&l).write(data)
			}
		})
	}
}

// BenchmarkCodes is the cost of looking at codes that are in memory.
func BenchmarkCodes(b *testing.B) {
	r := random("benchmark")
	e := manifest.Quantity{Kind: manifest.KindPacked2Bit, Shape: []int64{1 << 12, 1 << 14}}
	data := make([]byte, 16<<20)
	for i := range data {
		data[i] = []byte{0x55, 0x12, 0x46, 0x8a, 0xa1, 0x04}[r.IntN(6)]
	}
	for _, group := range []int64{128, 1 << 14} {
		e.GroupSize = group
		format, _ := ternary.Lookup(manifest.FormatPacked2Bit)
		l, err := format.Geometry(e)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("group %d", group), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				o := observeCodes(&l)
				for p := data; len(p) > 0; p = p[blockBytes:] {
					o.write(p[:blockBytes])
				}
			}
		})
	}
}
