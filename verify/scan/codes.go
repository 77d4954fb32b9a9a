package scan

import (
	"math/bits"
	"slices"

	"slipway/verify/scan/vector"
	"slipway/verify/ternary"
)

// codesObserver counts codes and finds the scale units whose codes all mean
// zero. Where bytes hold four two-bit codes, many are looked at together.
type codesObserver struct {
	facts     Codes
	layout    *ternary.Layout
	packing   *ternary.Packing
	unitBytes int64 // bytes of codes that share a scale
	unit      int64 // under the cursor
	seen      int64 // bytes of that unit
	zero      bool  // all of them zero codes
	offset    int64 // bytes of the tensor
	plain     bool
	foundBad  bool

	// Of the bytes without padding: how often each occurs, where codes are not
	// plain; else their number, codes with the low bit set, with the high bit,
	// with both.
	bytes                 [256]int64
	whole, low, high, bad int64
}

func observeCodes(layout *ternary.Layout) *codesObserver {
	packing := layout.Format.Packing
	return &codesObserver{
		facts: Codes{ZeroUnits: UnitSet{}}, layout: layout, packing: packing, unitBytes: layout.UnitBytes, zero: true, plain: packing.Plain(),
	}
}

func (o *codesObserver) write(p []byte) {
	if whole := o.layout.Padded - o.offset; int64(len(p)) > whole {
		n := max(whole, 0)
		o.weights(p[:n])
		o.padded(p[n:])
		return
	}
	o.weights(p)
}

// weights takes bytes whose codes all stand for weights.
func (o *codesObserver) weights(p []byte) {
	for len(p) > 0 {
		n := min(int64(len(p)), unitsAtOnce) / o.unitBytes * o.unitBytes
		if o.seen != 0 || n == 0 || o.unitBytes%8 != 0 || !o.plain {
			n = min(int64(len(p)), o.unitBytes-o.seen)
			o.byUnit(p[:n])
		} else if count := vector.CountCodes(p[:n], o.wordStep()); count.ZeroWord {
			o.byUnit(p[:n])
		} else { // where no word is all zero codes, no unit is
			o.add(p[:n], count)
			o.unit += n / o.unitBytes
		}
		p = p[n:]
	}
}

// byUnit counts unit by unit, to know which of them are all zero codes.
func (o *codesObserver) byUnit(p []byte) {
	for len(p) > 0 {
		n := min(int64(len(p)), o.unitBytes-o.seen)
		if o.plain {
			o.add(p[:n], vector.CountCodes(p[:n], 8))
		} else {
			o.addBytes(p[:n])
		}
		o.zero = o.zero && o.allZeroCodes(p[:n])
		p = p[n:]
		if o.seen += n; o.seen == o.unitBytes {
			o.seen = 0
			o.enter(o.unit + 1)
		}
	}
}

// enter ends the unit under the cursor where another one begins.
func (o *codesObserver) enter(unit int64) {
	if unit == o.unit {
		return
	}
	if o.zero {
		o.facts.ZeroUnits.add(o.unit)
	}
	o.unit, o.zero = unit, true
}

// padded takes bytes of which some codes may be padding, or belong to different
// units.
func (o *codesObserver) padded(p []byte) {
	size, last := o.layout.UnitSize, o.packing.Slots-1
	for i, b := range p {
		first, _ := o.layout.Element(o.offset, 0)
		end, whole := o.layout.Element(o.offset, last) // padding is behind all codes of a byte
		if unit := first / size; whole && unit == end/size {
			o.enter(unit)
			o.zero = o.zero && b == o.packing.ZeroByte()
			o.addBytes(p[i : i+1])
			continue
		}
		o.oneByOne(b)
		o.offset++
	}
}

// oneByOne looks at each code of the byte under the cursor.
func (o *codesObserver) oneByOne(b byte) {
	for slot := range o.packing.Slots {
		code := o.packing.Read(b, slot)
		element, weight := o.layout.Element(o.offset, slot)
		switch {
		case !weight && code != o.packing.Pad():
			if o.facts.BadPads == 0 {
				o.facts.FirstBadPad = o.offset
			}
			o.facts.BadPads++
			continue
		case !weight:
			continue
		case code == ternary.Bad && !o.foundBad:
			o.facts.FirstBad, o.foundBad = element, true
		}
		o.enter(element / o.layout.UnitSize)
		o.zero = o.zero && code == ternary.Zero
		o.facts.Histogram[code]++
	}
}

// unitsAtOnce is how many bytes of codes are counted in one go.
const unitsAtOnce = 2 << 10

// wordStep is how far apart words are of which every unit holds one.
func (o *codesObserver) wordStep() int { return int(min(o.unitBytes&-o.unitBytes, 32)) }

func (o *codesObserver) add(p []byte, count vector.Codes) {
	o.low += count.Low
	o.high += count.High
	if count.Both {
		o.badCodes(p)
	}
	o.offset += int64(len(p))
	o.whole += int64(len(p))
}

// addBytes counts bytes that have to be looked up.
func (o *codesObserver) addBytes(p []byte) {
	counts, bad, found := &o.bytes, o.packing.BadBytes(), false
	for _, b := range p {
		counts[b]++
		found = found || bad[b]
	}
	if found && !o.foundBad {
		o.noteBad(p)
	}
	o.offset += int64(len(p))
}

func (o *codesObserver) finish(facts *Tensor) {
	h := &o.facts.Histogram
	one, two := o.low-o.bad, o.high-o.bad
	h[1] += one
	h[2] += two
	h[0] += o.whole*4 - one - two - o.bad
	for b, times := range o.bytes {
		for slot := range o.packing.Slots {
			h[o.packing.Read(byte(b), slot)] += times
		}
	}
	if o.unit < o.layout.Units {
		o.enter(o.layout.Units)
	}
	facts.Codes = &o.facts
}

// badCodes counts codes that stand for nothing, of which there is one at least.
func (o *codesObserver) badCodes(p []byte) {
	if !o.foundBad {
		o.noteBad(p)
	}
	bad := int64(0)
	for _, c := range p {
		bad += int64(bits.OnesCount8(c & (c >> 1) & 0x55))
	}
	o.facts.Histogram[ternary.Bad] += bad
	o.bad += bad
}

// allZeroCodes reports whether every code stands for 0.
func (o *codesObserver) allZeroCodes(p []byte) bool {
	zero := o.packing.ZeroByte()
	for _, c := range p {
		if c != zero {
			return false
		}
	}
	return true
}

// noteBad looks for the first code that stands for nothing, of which there is
// one in p, the bytes under the cursor.
func (o *codesObserver) noteBad(p []byte) {
	at, slot := slices.IndexFunc(p, func(b byte) bool { return o.packing.BadBytes()[b] }), 0
	for o.packing.Read(p[at], slot) != ternary.Bad {
		slot++
	}
	o.facts.FirstBad, _ = o.layout.Element(o.offset+int64(at), slot)
	o.foundBad = true
}
