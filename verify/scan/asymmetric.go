package scan

import (
	"encoding/binary"

	"slipway/manifest/safetensors"
)

// asymmetricObserver finds the largest of several unit sizes of which every unit
// is {-b, 0, +a} for one a and one b, compared bit for bit; -0 is zero. It goes
// element by element, as few tasks ask for it.
type asymmetricObserver struct {
	words    words
	layout   valueLayout
	sizes    []asymmetricUnit
	position int64
}

// asymmetricUnit is the unit of one size that an element belongs to.
type asymmetricUnit struct {
	size int64
	a    [2]uint64 // the magnitudes of positive and of negative elements; 0 while there is none
	bad  bool      // a unit of this size was not as it should be
}

// observeAsymmetric is asked what observeLiteral is.
func observeAsymmetric(dtype safetensors.DType, sizes []int64) *asymmetricObserver {
	layout, _ := layoutOf(dtype)
	o := &asymmetricObserver{layout: layout}
	for _, size := range sizes {
		o.sizes = append(o.sizes, asymmetricUnit{size: size})
	}
	return o
}

func (o *asymmetricObserver) write(p []byte) { o.words.feed(p, o.take) }

func (o *asymmetricObserver) take(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		o.word(binary.LittleEndian.Uint64(p), 64)
	}
}

func (o *asymmetricObserver) word(x uint64, bits int) {
	for i := 0; i < bits; i += o.layout.bits {
		b := x >> i
		magnitude, sign := b&o.layout.magnitude, b>>(o.layout.bits-1)&1
		for j := range o.sizes {
			o.sizes[j].add(o.position, magnitude, sign, o.layout.exponent)
		}
		o.position++
	}
}

func (u *asymmetricUnit) add(position int64, magnitude, sign, exponent uint64) {
	if position%u.size == 0 {
		u.a = [2]uint64{}
	}
	switch {
	case magnitude == 0:
	case magnitude&exponent == exponent:
		u.bad = true
	case u.a[sign] == 0:
		u.a[sign] = magnitude
	default:
		u.bad = u.bad || u.a[sign] != magnitude
	}
}

func (o *asymmetricObserver) finish(facts *Tensor) {
	if x, n := o.words.rest(); n > 0 {
		o.word(x, n*8)
	}
	for _, unit := range o.sizes { // the largest first
		if !unit.bad {
			facts.Asymmetric = unit.size
			return
		}
	}
}
