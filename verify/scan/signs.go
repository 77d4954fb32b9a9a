package scan

import (
	"encoding/binary"

	"slipway/manifest/safetensors"
)

// SignWindow is how many elements from the start of every row have their signs
// kept, a bit each.
const SignWindow = 256

// signsObserver keeps one bit for each of the first SignWindow elements of every
// row: set where the element is negative. A zero of either sign is not.
type signsObserver struct {
	stride int64 // bytes of a row
	size   int   // bytes of an element
	offset int64
	part   []byte // of a window that lies in two pieces
	signs  []uint64
}

// Rows are those of a tensor: how many elements each has, SignWindow at least, and
// how many there are.
type Rows struct{ Length, Count int64 }

func observeSigns(dtype safetensors.DType, rows Rows) *signsObserver {
	size := dtype.Bits() / 8
	return &signsObserver{stride: rows.Length * int64(size), size: size, part: make([]byte, 0, SignWindow*size),
		signs: make([]uint64, 0, rows.Count*SignWindow/64)}
}

func (o *signsObserver) write(p []byte) {
	window := int64(SignWindow * o.size)
	for len(p) > 0 {
		at := o.offset % o.stride
		if at >= window {
			n := min(o.stride-at, int64(len(p)))
			p = p[n:]
			o.offset += n
			continue
		}
		n := min(window-at, int64(len(p)))
		switch {
		case n == window:
			o.take(p[:n])
		default:
			if o.part = append(o.part, p[:n]...); int64(len(o.part)) == window {
				o.take(o.part)
				o.part = o.part[:0]
			}
		}
		p = p[n:]
		o.offset += n
	}
}

// take keeps the signs of one window.
func (o *signsObserver) take(p []byte) {
	var bits [SignWindow / 64]uint64
	if o.size == 2 {
		signsOfSixteens(&bits, p)
	} else {
		for i := range SignWindow {
			element := p[i*o.size:][:o.size]
			rest := element[o.size-1] &^ 0x80
			for _, b := range element[:o.size-1] {
				rest |= b
			}
			if rest != 0 {
				bits[i/64] |= uint64(element[o.size-1]>>7) << (i % 64)
			}
		}
	}
	o.signs = append(o.signs, bits[:]...)
}

// signsOfSixteens is take for elements of two bytes, four at a time.
func signsOfSixteens(bits *[SignWindow / 64]uint64, p []byte) {
	const magnitudes, tops = 0x7fff7fff7fff7fff, uint64(0x8000800080008000)
	for i := range SignWindow / 4 {
		x := binary.LittleEndian.Uint64(p[i*8:])
		negative := x & (x&magnitudes + magnitudes) & tops
		bits[i/16] |= (negative >> 15 * 0x1000200040008000 >> 60) << (i * 4 % 64)
	}
}

func (o *signsObserver) finish(facts *Tensor) { facts.Signs = append(facts.Signs, o.signs) }
