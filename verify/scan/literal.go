package scan

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"slipway/manifest/safetensors"
	"slipway/verify/scan/vector"
	"slipway/verify/ternary"
)

// literalObserver checks that every unit of a float tensor is {-a, 0, +a} for
// one magnitude a, compared bit for bit; -0 is zero. It looks at blocks, the
// units of the smallest size. A larger unit is ternary exactly where its blocks
// are and no two of their magnitudes differ; of those that are not zero it is
// enough to compare neighbours.
type literalObserver struct {
	words  words
	dtype  safetensors.DType
	layout valueLayout
	lanes  uint64 // the lowest bit of every lane of a word
	block  int64
	sizes  []int64 // of larger units that were all ternary so far
	facts  Literal

	position int64  // elements of the block so far
	a        uint64 // the block's magnitude, 0 while only zeros were seen
	guess    uint64 // the magnitude of an earlier block
	bad      bool   // the block has failed
	low, top uint64 // least and largest magnitude of a block that has failed

	last      uint64 // the magnitude of the last good block that is not zero
	lastBegin int64  // that block's first element

	least, most               uint64 // magnitudes of good blocks, whose bits have the order of their values
	nonFinite, firstNonFinite int64
}

// nearSpread is how far apart the magnitudes of a unit may be that was ternary
// before it was rounded: one unit in the last place of BF16.
const nearSpread = 1.0 / 128

func observeLiteral(dtype safetensors.DType, sizes []int64) *literalObserver {
	layout, _ := layoutOf(dtype)
	last := len(sizes) - 1
	return &literalObserver{
		dtype: dtype, layout: layout, lanes: lanesOf(layout.bits), block: sizes[last], sizes: slices.Clone(sizes[:last]),
		facts: Literal{Tested: sizes[last], Near: true}, least: math.MaxUint64,
	}
}

func (o *literalObserver) write(p []byte) { o.words.feed(p, o.take) }

// take goes quickly through the words that are as one expects, and element by
// element through the others.
func (o *literalObserver) take(p []byte) {
	for len(p) >= 8 {
		if !o.bad {
			if n := o.run(p); n > 0 {
				p = p[n:]
				continue
			}
		}
		o.word(binary.LittleEndian.Uint64(p), 8)
		p = p[8:]
	}
}

// run takes whole words while their elements are all zero or of the block's
// magnitude; it may go through many blocks. It returns how many bytes it took.
func (o *literalObserver) run(p []byte) int {
	a := o.a
	if a == 0 {
		a = o.firstMagnitude(binary.LittleEndian.Uint64(p))
	}
	r := vector.Literal(p, o.lanes*o.layout.magnitude, o.lanes*a)
	o.facts.Zeros += int64(r.Bytes*8/o.layout.bits - r.Weights)
	o.facts.Minus += int64(r.Minus)
	if r.Bytes > 0 {
		o.ran(p[:r.Bytes], a, r.Weights > 0)
	}
	return r.Bytes
}

// firstMagnitude is that of a word's first element that is not zero; where all
// are, that of an earlier block is as good a guess as any.
func (o *literalObserver) firstMagnitude(x uint64) uint64 {
	x &= o.lanes * o.layout.magnitude
	if x == 0 {
		return o.guess
	}
	a := x >> (bits.TrailingZeros64(x) / o.layout.bits * o.layout.bits) & o.layout.magnitude
	if a&o.layout.exponent == o.layout.exponent {
		return o.guess // it is no number
	}
	return a
}

// ran moves on by the words of a run, in which some elements or none are of
// magnitude a and the others zero.
func (o *literalObserver) ran(p []byte, a uint64, some bool) {
	begin := o.facts.Count
	o.facts.Count += int64(len(p) * 8 / o.layout.bits)
	open := o.facts.Count - o.facts.Count%o.block // where the block begins that the run does not end
	first := begin - o.position                   // the first block with an element of a
	if some && o.a == 0 {
		first = o.blockOf(begin + o.firstNonZero(p))
	}
	o.position = o.facts.Count - open
	switch {
	case !some && o.a == 0: // zeros only, as before
	case first == open:
		o.a = a
	default:
		o.good(a, first)
		o.a = 0
		if some {
			if last := o.blockOf(begin + o.lastNonZero(p)); last < open {
				o.lastBegin = last
			} else {
				o.a = a // of the open block, which will say where it began
			}
		}
	}
}

// blockOf returns where the block of an element begins.
func (o *literalObserver) blockOf(element int64) int64 { return element - element%o.block }

func (o *literalObserver) firstNonZero(p []byte) int64 {
	magnitudes := o.lanes * o.layout.magnitude
	for i := 0; ; i += 8 {
		if m := binary.LittleEndian.Uint64(p[i:]) & magnitudes; m != 0 {
			return int64((i*8 + bits.TrailingZeros64(m)) / o.layout.bits)
		}
	}
}

func (o *literalObserver) lastNonZero(p []byte) int64 {
	magnitudes := o.lanes * o.layout.magnitude
	for i := len(p) - 8; ; i -= 8 {
		if m := binary.LittleEndian.Uint64(p[i:]) & magnitudes; m != 0 {
			return int64((i*8 + bits.Len64(m) - 1) / o.layout.bits)
		}
	}
}

// word looks at the elements in the first bytes of a word one by one.
func (o *literalObserver) word(x uint64, bytes int) {
	for i := 0; i < bytes*8; i += o.layout.bits {
		b := x >> i
		o.weight(b&o.layout.magnitude, b>>(o.layout.bits-1)&1 == 1)
	}
}

func (o *literalObserver) weight(magnitude uint64, negative bool) {
	if magnitude != 0 && negative {
		o.facts.Minus++
	}
	switch {
	case magnitude == 0:
		o.facts.Zeros++
	case magnitude&o.layout.exponent == o.layout.exponent:
		if o.nonFinite == 0 {
			o.firstNonFinite = o.facts.Count
		}
		o.nonFinite++
		o.fail(magnitude)
	case o.a == 0 && !o.bad:
		o.a, o.guess = magnitude, magnitude
	case magnitude != o.a || o.bad:
		o.fail(magnitude)
	}
	o.forward()
}

// fail says that the block holds a magnitude beside its own.
func (o *literalObserver) fail(magnitude uint64) {
	if !o.bad {
		o.bad, o.low, o.top = true, magnitude, magnitude
		if o.a != 0 {
			o.low, o.top = o.a, o.a
		}
		if o.facts.BadUnits == 0 {
			o.facts.FirstBad, o.facts.First, o.facts.Second = o.facts.Count, o.a, magnitude
		}
		o.facts.BadUnits++
	}
	o.low, o.top = min(o.low, magnitude), max(o.top, magnitude)
}

// forward moves on by one element, and into the next block at the end of one.
func (o *literalObserver) forward() {
	o.facts.Count++
	if o.position++; o.position < o.block {
		return
	}
	if o.bad {
		o.sizes = nil
		low, top := ternary.Value(o.dtype, o.low), ternary.Value(o.dtype, o.top)
		o.facts.Near = o.facts.Near && top-low <= nearSpread*top // false for what is no number
	} else if o.a != 0 {
		o.good(o.a, o.facts.Count-o.block)
	}
	o.position, o.a, o.bad = 0, 0, false
}

// good takes a block of one magnitude that is not zero: the units that hold the
// last such block too must have one magnitude.
func (o *literalObserver) good(a uint64, begin int64) {
	if a != o.last && o.last != 0 && len(o.sizes) > 0 {
		o.sizes = slices.DeleteFunc(o.sizes, func(size int64) bool { return o.lastBegin >= begin-begin%size })
	}
	o.last, o.lastBegin, o.guess = a, begin, a
	o.least, o.most = min(o.least, a), max(o.most, a)
}

func (o *literalObserver) finish(facts *Tensor) {
	if x, n := o.words.rest(); n > 0 {
		o.word(x, n)
	}
	f := &o.facts
	f.Units = f.Count / o.block
	if f.BadUnits == 0 {
		f.Near = false
		f.Unit = append(o.sizes, o.block)[0]
	}
	if o.most > 0 {
		f.Min, f.Max = ternary.Value(o.dtype, o.least), ternary.Value(o.dtype, o.most)
	}
	facts.Literal, facts.NonFinite, facts.FirstNonFinite = f, o.nonFinite, o.firstNonFinite
}
