package scan

import (
	"encoding/binary"
	"slices"

	"slipway/manifest/safetensors"
)

// Halves says whether the lower halves of numbers in single precision look like
// numbers of 16 bits of their own.
type Halves struct {
	Counted int64 // numbers looked at whose lower half is more than a shorter number's widened
	Narrow  int64 // of those, how many lower halves have the 32 most frequent values of bits 7 to 14
	Spread  int64 // and how many have not the 16 most frequent values of bits 0 to 6
	Beyond  int64 // of double precision: numbers that single precision does not hold exactly
}

// halvesMinimum is how many numbers it takes to tell.
const halvesMinimum = 192

// TwoInOne reports whether the lower halves are numbers of their own.
//
// What training or arithmetic leaves in the lower half of a float32's mantissa is
// evenly distributed: bits 7 to 14 then have each of their 256 values as often, and
// of 192 numbers no more than a half have the 32 most frequent ones; six in ten do
// less than once in 10^11 tensors. Of a BF16 number these bits are the exponent,
// of which trained weights use a dozen values; of an F16 number they are the
// exponent and three bits more, of which 32 values hold nine in ten. Bits 0 to 6
// are evenly distributed in all of these, and are not where a tensor has only a few
// values, which are then as they are. Numbers of 16 or 24 bits that were widened
// end in zeros and are not counted. Halves that look random, as those of encrypted
// or compressed bytes do, are not found.
func (h *Halves) TwoInOne() bool {
	return h.Counted >= halvesMinimum && 10*h.Narrow >= 6*h.Counted && 2*h.Spread >= h.Counted
}

// halvesObserver counts the values of the lower halves' bits: of all numbers of a
// small tensor, and of one in eight beyond.
type halvesObserver struct {
	words  words
	size   int // bits of a number
	offset int // words
	facts  Halves
	upper  [256]int64 // bits 7 to 14
	lower  [128]int64 // bits 0 to 6
}

// halvesWhole is how many words are looked at one by one.
const halvesWhole = 1 << 16

// observeHalves returns nil for types that are not wider than 16 bits.
func observeHalves(dtype safetensors.DType) observer {
	switch dtype {
	case safetensors.F32, safetensors.F64:
		return &halvesObserver{size: dtype.Bits()}
	}
	return nil
}

func (o *halvesObserver) write(p []byte) { o.words.feed(p, o.take) }

func (o *halvesObserver) take(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		if o.offset++; o.offset > halvesWhole && o.offset%8 != 0 {
			continue
		}
		switch x := binary.LittleEndian.Uint64(p); o.size {
		case 32:
			o.half(x & 0xffff)
			o.half(x >> 32 & 0xffff)
		default:
			const singles = 29 // bits of a double's mantissa that a single's has not
			if x&(1<<singles-1) != 0 {
				o.facts.Beyond++
			}
			o.half(x >> singles & 0xffff)
		}
	}
}

func (o *halvesObserver) half(x uint64) {
	if x&0x7f != 0 {
		o.facts.Counted++
		o.upper[x>>7&0xff]++
		o.lower[x&0x7f]++
	}
}

func (o *halvesObserver) finish(facts *Tensor) {
	if x, n := o.words.rest(); n == 4 && o.size == 32 {
		o.half(x & 0xffff)
	}
	slices.Sort(o.upper[:])
	slices.Sort(o.lower[:])
	for _, n := range o.upper[256-32:] {
		o.facts.Narrow += n
	}
	for _, n := range o.lower[:128-16] {
		o.facts.Spread += n
	}
	facts.Halves = &o.facts
}
