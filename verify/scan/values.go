package scan

import (
	"encoding/binary"
	"math"
	"math/bits"

	"slipway/manifest/safetensors"
)

// valueLayout says where magnitude, exponent and sign of a floating type lie.
type valueLayout struct {
	bits      int
	magnitude uint64 // all bits but the sign
	exponent  uint64
}

// HoldsValues reports whether scales and literal weights may have a type.
func HoldsValues(dtype safetensors.DType) bool {
	_, ok := layoutOf(dtype)
	return ok
}

// layoutOf covers the types that scales and literal weights may have.
func layoutOf(dtype safetensors.DType) (valueLayout, bool) {
	switch dtype {
	case safetensors.BF16:
		return valueLayout{16, 0x7fff, 0x7f80}, true
	case safetensors.F16:
		return valueLayout{16, 0x7fff, 0x7c00}, true
	case safetensors.F32:
		return valueLayout{32, 0x7fffffff, 0x7f800000}, true
	}
	return valueLayout{}, false
}

// Value returns the number that the bits of a scale or a literal weight stand
// for.
func Value(dtype safetensors.DType, b uint64) float64 {
	switch dtype {
	case safetensors.BF16:
		return float64(math.Float32frombits(uint32(b) << 16))
	case safetensors.F32:
		return float64(math.Float32frombits(uint32(b)))
	}
	sign, exponent, mantissa := 1.0, int(b>>10&0x1f), float64(b&0x3ff)
	if b>>15 == 1 {
		sign = -1
	}
	switch exponent {
	case 0x1f:
		if mantissa != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	case 0:
		return sign * math.Ldexp(mantissa, -24)
	}
	return sign * math.Ldexp(1+mantissa/1024, exponent-15)
}

// scalesObserver describes the values of a scale tensor.
type scalesObserver struct {
	words  words
	dtype  safetensors.DType
	layout valueLayout
	facts  *Scales
	least  int64 // of the finite scales, their bits in the order of their values
	most   int64
}

// observeScales returns nil for types that scales must not have.
func observeScales(dtype safetensors.DType) observer {
	layout, ok := layoutOf(dtype)
	if !ok {
		return nil
	}
	return &scalesObserver{dtype: dtype, layout: layout, facts: newScales(), least: math.MaxInt64, most: math.MinInt64}
}

func (o *scalesObserver) write(p []byte) { o.words.feed(p, o.take) }

func (o *scalesObserver) take(p []byte) {
	if o.layout.bits == 16 {
		p = o.takeSixteens(p)
	}
	for ; len(p) >= 8; p = p[8:] {
		o.word(binary.LittleEndian.Uint64(p), 8)
	}
}

// takeSixteens is take for words of four positive normal numbers, which nearly
// all are. It goes value by value through the others, and returns what is no
// whole word.
func (o *scalesObserver) takeSixteens(p []byte) []byte {
	const lanes = 0x0001000100010001
	top, exponents := uint64(0x8000*lanes), o.layout.exponent*lanes
	lowest := (o.layout.exponent & -o.layout.exponent) * lanes
	least, most := o.least, o.most
	for ; len(p) >= 8; p = p[8:] {
		x := binary.LittleEndian.Uint64(p)
		e := x & exponents
		// No sign; adding all exponent bits carries from every lane that has
		// one; adding the lowest carries from none that lacks one.
		if x&top != 0 || (e+exponents)&top != top || (e+lowest)&top != 0 {
			o.least, o.most = least, most
			o.word(x, 8)
			least, most = o.least, o.most
			continue
		}
		a, b, c, d := int64(x&0xffff), int64(x>>16&0xffff), int64(x>>32&0xffff), int64(x>>48)
		least = min(least, a, b, c, d)
		most = max(most, a, b, c, d)
		o.facts.Count += 4
	}
	o.least, o.most = least, most
	return p
}

func (o *scalesObserver) word(x uint64, bytes int) {
	lane, exponent := uint64(1)<<o.layout.bits-1, o.layout.exponent
	for i := 0; i < bytes*8; i += o.layout.bits {
		b := x >> i & lane
		if e := b & exponent; e == exponent || e == 0 {
			o.unusual(b)
		} else {
			o.number(b)
		}
		o.facts.Count++
	}
}

// unusual takes a zero, a subnormal number, or none.
func (o *scalesObserver) unusual(b uint64) {
	f := o.facts
	switch {
	case b&o.layout.magnitude == 0:
		f.ZeroUnits.add(f.Count)
		o.least, o.most = min(o.least, 0), max(o.most, 0)
	case b&o.layout.exponent == 0:
		f.Subnormal++
		o.number(b)
	default:
		if f.NonFinite == 0 {
			f.FirstNonFinite = f.Count
		}
		f.NonFinite++
	}
}

func (o *scalesObserver) number(b uint64) {
	order := int64(b & o.layout.magnitude)
	if order != int64(b) {
		order = -order
		o.facts.Negative++
	}
	o.least, o.most = min(o.least, order), max(o.most, order)
}

// ordered returns the value whose bits a scale had.
func (o *scalesObserver) ordered(order int64) float64 {
	if order < 0 {
		return -Value(o.dtype, uint64(-order))
	}
	return Value(o.dtype, uint64(order))
}

func (o *scalesObserver) finish(facts *Tensor) {
	if x, n := o.words.rest(); n > 0 {
		o.word(x, n)
	}
	if o.least <= o.most {
		o.facts.Min, o.facts.Max = o.ordered(o.least), o.ordered(o.most)
	}
	facts.Scales = o.facts
}

// literalObserver checks that every unit of a float tensor is {-a, 0, +a} for
// one magnitude a, compared bit for bit; -0 is zero.
type literalObserver struct {
	words    words
	layout   valueLayout
	lanes    uint64 // lane 0 of every lane of a word
	facts    Literal
	element  int64
	position int64  // within the unit
	a        uint64 // the unit's magnitude, 0 while only zeros were seen
	bad      bool   // the unit has failed
}

// observeLiteral returns nil for types that literal weights must not have.
func observeLiteral(dtype safetensors.DType, unit int64) observer {
	layout, ok := layoutOf(dtype)
	if !ok || unit <= 0 {
		return nil
	}
	lanes := uint64(0x0001000100010001)
	if layout.bits == 32 {
		lanes = 0x0000000100000001
	}
	return &literalObserver{layout: layout, lanes: lanes, facts: Literal{Unit: unit}}
}

func (o *literalObserver) write(p []byte) { o.words.feed(p, o.take) }

func (o *literalObserver) take(p []byte) {
	perWord := int64(64 / o.layout.bits)
	magnitudes := o.lanes * o.layout.magnitude // all lanes without their signs
	for ; len(p) >= 8; p = p[8:] {
		x := binary.LittleEndian.Uint64(p)
		if o.a != 0 && !o.bad && o.position+perWord < o.facts.Unit {
			// A lane is not zero where adding all ones below the sign's
			// place carries into it.
			zero := x & magnitudes
			other := zero ^ o.lanes*o.a
			nonZero := (zero + magnitudes) &^ magnitudes
			if nonZero&(other+magnitudes) == 0 {
				o.facts.Zeros += perWord - int64(bits.OnesCount64(nonZero))
				o.position += perWord
				o.element += perWord
				continue
			}
		}
		o.word(x, 8)
	}
}

// word looks at the elements in the first bytes of a word one by one.
func (o *literalObserver) word(x uint64, bytes int) {
	for i := 0; i < bytes*8; i += o.layout.bits {
		o.weight(x >> i & o.layout.magnitude)
	}
}

func (o *literalObserver) weight(magnitude uint64) {
	switch {
	case magnitude == 0:
		o.facts.Zeros++
	case o.a == 0:
		o.a = magnitude
	case magnitude != o.a && !o.bad:
		o.bad = true
		if o.facts.BadUnits == 0 {
			o.facts.FirstBad, o.facts.First, o.facts.Second = o.element, o.a, magnitude
		}
		o.facts.BadUnits++
	}
	o.element++
	if o.position++; o.position == o.facts.Unit {
		o.facts.Units++
		o.position, o.a, o.bad = 0, 0, false
	}
}

func (o *literalObserver) finish(facts *Tensor) {
	if x, n := o.words.rest(); n > 0 {
		o.word(x, n)
	}
	facts.Literal = &o.facts
}
