package scan

import (
	"encoding/binary"
	"hash"
	"math"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/ternary"
)

// valueLayout says where magnitude, exponent and sign of a floating type lie.
type valueLayout struct {
	bits      int
	magnitude uint64 // all bits but the sign
	exponent  uint64
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
		return -ternary.Value(o.dtype, uint64(-order))
	}
	return ternary.Value(o.dtype, uint64(order))
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

// Pairing says which of two tensors that must be each other's negative this is.
type Pairing uint8

// The pairings.
const (
	Unpaired Pairing = iota
	AsScales         // the digest is of its values
	AsBiases         // the digest is of their negatives
)

// pairObserver digests values so that scales and biases have one digest exactly
// where every bias is the negative of its scale, bit for bit. A zero has no
// sign here.
type pairObserver struct {
	words  words
	hash   hash.Hash
	flip   uint64 // the sign bits that are turned
	lanes  uint64 // the lowest bit of every lane
	layout valueLayout
	out    [512]byte
	n      int
}

func observePair(dtype safetensors.DType, pairing Pairing) *pairObserver {
	layout, _ := layoutOf(dtype)
	o := &pairObserver{hash: manifest.NewHash(), lanes: lanesOf(layout.bits), layout: layout}
	if pairing == AsBiases {
		o.flip = o.lanes << (layout.bits - 1)
	}
	return o
}

// lanesOf returns a word with the lowest bit of every lane set.
func lanesOf(bits int) uint64 {
	if bits == 32 {
		return 0x0000000100000001
	}
	return 0x0001000100010001
}

func (o *pairObserver) write(p []byte) { o.words.feed(p, o.take) }

func (o *pairObserver) take(p []byte) {
	magnitudes := o.lanes * o.layout.magnitude
	for ; len(p) >= 8; p = p[8:] {
		x := binary.LittleEndian.Uint64(p) ^ o.flip
		nonZero := (x&magnitudes + magnitudes) &^ magnitudes // the sign's place of every lane that is not zero
		binary.LittleEndian.PutUint64(o.out[o.n:], x&(magnitudes|nonZero))
		if o.n += 8; o.n == len(o.out) {
			o.flush()
		}
	}
}

func (o *pairObserver) flush() {
	_, _ = o.hash.Write(o.out[:o.n]) // a hash never returns a write error
	o.n = 0
}

func (o *pairObserver) finish(facts *Tensor) {
	if _, n := o.words.rest(); n > 0 { // both tensors have as many values, so both end in the same zeros
		o.take(o.words.carry[:])
	}
	o.flush()
	facts.Pair = manifest.FinishHash(o.hash)
}
