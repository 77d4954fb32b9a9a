package scan

import (
	"math/bits"
	"slices"

	"slipway/verify/scan/vector"
	"slipway/verify/ternary"
)

// codesObserver counts two-bit codes and finds the scale units whose codes all
// mean zero. Four codes lie in a byte; their order does not matter for that.
type codesObserver struct {
	facts     Codes
	layout    *ternary.Layout
	unitBytes int64 // bytes of codes that share a scale
	padStart  int64 // the first byte that holds padding
	unit      int64 // under the cursor
	seen      int64 // bytes of that unit
	zero      bool  // all of them zero codes
	offset    int64 // bytes of the tensor

	// Of the bytes without padding: their number, codes with the low bit set,
	// with the high bit, with both.
	whole, low, high, bad int64
}

func observeCodes(layout *ternary.Layout) *codesObserver {
	return &codesObserver{
		facts: Codes{ZeroUnits: UnitSet{}}, layout: layout, unitBytes: layout.UnitBytes, padStart: slices.Min(layout.PadFrom[:]), zero: true,
	}
}

func (o *codesObserver) write(p []byte) {
	if whole := o.padStart - o.offset; int64(len(p)) > whole {
		n := max(whole, 0)
		o.weights(p[:n])
		o.padded(p[n:])
		return
	}
	o.weights(p)
}

// weights takes bytes whose four codes all stand for weights.
func (o *codesObserver) weights(p []byte) {
	for len(p) > 0 {
		n := min(int64(len(p)), unitsAtOnce) / o.unitBytes * o.unitBytes
		if o.seen != 0 || n == 0 || o.unitBytes%8 != 0 {
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
		o.add(p[:n], vector.CountCodes(p[:n], 8))
		o.zero = o.zero && allZeroCodes(p[:n])
		p = p[n:]
		o.advance(n)
	}
}

// advance moves on within the unit, and into the next one at its end.
func (o *codesObserver) advance(n int64) {
	if o.seen += n; o.seen == o.unitBytes {
		if o.zero {
			o.facts.ZeroUnits.add(o.unit)
		}
		o.unit++
		o.seen, o.zero = 0, true
	}
}

// padded takes bytes of which some codes are padding: the last few rows of a
// tensor at most.
func (o *codesObserver) padded(p []byte) {
	for _, c := range p {
		for slot := range 4 {
			code := c >> (2 * slot) & 3
			element, weight := o.layout.Element(o.offset, slot)
			switch {
			case !weight && code != ternary.Minus:
				if o.facts.BadPads == 0 {
					o.facts.FirstBadPad = o.offset
				}
				o.facts.BadPads++
				continue
			case !weight:
				continue
			case code == ternary.Bad && o.facts.Histogram[ternary.Bad] == 0:
				o.facts.FirstBad = element
			}
			o.zero = o.zero && code == ternary.Zero
			o.facts.Histogram[code]++
		}
		o.offset++
		o.advance(1)
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

func (o *codesObserver) finish(facts *Tensor) {
	h := &o.facts.Histogram
	one, two := o.low-o.bad, o.high-o.bad
	h[1] += one
	h[2] += two
	h[0] += o.whole*4 - one - two - o.bad
	facts.Codes = &o.facts
}

// badCodes counts codes 3, of which there is one at least.
func (o *codesObserver) badCodes(p []byte) {
	if o.facts.Histogram[ternary.Bad] == 0 {
		at, slot := firstBadCode(p)
		o.facts.FirstBad, _ = o.layout.Element(o.offset+at, slot)
	}
	bad := int64(0)
	for _, c := range p {
		bad += int64(bits.OnesCount8(c & (c >> 1) & 0x55))
	}
	o.facts.Histogram[ternary.Bad] += bad
	o.bad += bad
}

// allZeroCodes reports whether every code is 1.
func allZeroCodes(p []byte) bool {
	for _, c := range p {
		if c != 0x55 {
			return false
		}
	}
	return true
}

// firstBadCode returns the byte and the slot of the first code 3, lowest bits
// first.
func firstBadCode(p []byte) (at int64, slot int) {
	for i, c := range p {
		if bad := c & (c >> 1) & 0x55; bad != 0 {
			return int64(i), bits.TrailingZeros8(bad) / 2
		}
	}
	return int64(len(p)), 0
}
