package scan

import (
	"fmt"
	"reflect"
	"testing"

	"slipway/manifest"
	"slipway/verify/ternary"
)

// plainCodes looks at the codes one by one.
func plainCodes(data []byte, l *ternary.Layout) *Codes {
	f := &Codes{ZeroUnits: UnitSet{}}
	for unit := range l.Units {
		f.ZeroUnits.add(unit)
	}
	for at := range int64(len(data)) {
		for slot := range 4 {
			code := data[at] >> (2 * slot) & 3
			element, weight := l.Element(at, slot)
			switch {
			case !weight && code != ternary.Minus:
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

func TestCodesAgreeWithCountingOneByOne(t *testing.T) {
	r := random("codes")
	for range 400 {
		e := manifest.Quantity{Kind: manifest.KindPacked2Bit, Format: manifest.FormatBitNetU8, Shape: []int64{1 + r.Int64N(11), 1 + r.Int64N(90)}}
		if r.IntN(2) == 0 {
			e.Format, e.GroupSize = manifest.FormatPacked2Bit, 4*(1+r.Int64N(70))
			e.Shape[1] = e.GroupSize * (1 + r.Int64N(5))
		}
		format, _ := ternary.Lookup(e.Format)
		l, err := format.Geometry(e)
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, l.CodeBytes())
		dense := r.IntN(3)
		for i := range data {
			if data[i] = byte(r.Uint32() & 0xef); r.IntN(3) > 0 || dense == 0 {
				data[i] = 0x55
			}
		}
		got, want := observeIn(observeCodes(&l), data, r).Codes, plainCodes(data, &l)
		got.ZeroUnits, want.ZeroUnits = listed(got.ZeroUnits), listed(want.ZeroUnits)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s %v in units of %d: %+v, want %+v", e.Format, e.Shape, l.UnitSize, got, want)
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
