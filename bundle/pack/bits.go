package pack

import (
	"encoding/binary"
	"math/bits"

	"slipway/manifest/safetensors"
)

// floats says how values of a type lie in memory, little endian, the sign in the
// highest bit. A magnitude is a value's bits without the sign.
type floats struct {
	bytes    int64
	infinity uint32 // magnitudes from here on are infinite or no numbers
}

func floatsOf(dtype safetensors.DType) (f floats, ok bool) {
	switch dtype {
	case safetensors.BF16:
		return floats{2, 0x7f80}, true
	case safetensors.F16:
		return floats{2, 0x7c00}, true
	case safetensors.F32:
		return floats{4, 0x7f800000}, true
	}
	return floats{}, false
}

// Four 16-bit values in a word.
const (
	magnitudes = 0x7fff7fff7fff7fff
	signs      = 0x8000800080008000
	ones       = 0x0001000100010001
)

// nonZero sets the highest bit of each lane of a word of magnitudes that is not
// zero: adding 0x7fff reaches that bit exactly then, and never leaves the lane.
func nonZero(x uint64) uint64 { return (x + magnitudes) & signs }

// at returns the magnitude and sign of value i.
func (f floats) at(data []byte, i int) (magnitude uint32, negative bool) {
	if f.bytes == 2 {
		v := binary.LittleEndian.Uint16(data[2*i:])
		return uint32(v & 0x7fff), v>>15 == 1
	}
	v := binary.LittleEndian.Uint32(data[4*i:])
	return v & 0x7fffffff, v>>31 == 1
}

func (f floats) count(data []byte) int { return len(data) / int(f.bytes) }

// first returns the first magnitude that is not zero, 0 where all are.
func (f floats) first(data []byte) uint32 {
	i := 0
	if f.bytes == 2 {
		for ; i+4 <= f.count(data); i += 4 {
			if binary.LittleEndian.Uint64(data[2*i:])&magnitudes != 0 {
				break
			}
		}
	}
	for ; i < f.count(data); i++ {
		if m, _ := f.at(data, i); m != 0 {
			return m
		}
	}
	return 0
}

// uniform reports whether every value is zero or of the magnitude m, and counts
// the negative zeros.
func (f floats) uniform(data []byte, m uint32) (ok bool, negativeZeros int64) {
	ok = m < f.infinity
	i := 0
	if f.bytes == 2 {
		var wrong uint64
		all := uint64(m) * ones
		for ; i+4 <= f.count(data); i += 4 {
			w := binary.LittleEndian.Uint64(data[2*i:])
			x := w & magnitudes
			set := nonZero(x)
			wrong |= x ^ (set>>15*0xffff)&all
			negativeZeros += int64(bits.OnesCount64(w & signs &^ set))
		}
		ok = ok && wrong == 0
	}
	for ; i < f.count(data); i++ {
		switch magnitude, negative := f.at(data, i); {
		case magnitude == 0 && negative:
			negativeZeros++
		case magnitude != 0 && magnitude != m:
			ok = false
		}
	}
	return ok, negativeZeros
}

// stray returns the index of the first value that is neither zero nor of the
// magnitude m, or that is not finite; -1 where there is none.
func (f floats) stray(data []byte, m uint32) int {
	for i := range f.count(data) {
		if magnitude, _ := f.at(data, i); magnitude >= f.infinity || magnitude != 0 && magnitude != m {
			return i
		}
	}
	return -1
}

// The codes: value = (code-1) * scale.
const (
	codeMinus = 0
	codeZero  = 1
	codePlus  = 2
)

// encode writes the codes of values, four a byte, the first in the lowest bits,
// and reports whether every value is zero or of the magnitude m. The number of
// values is a multiple of four.
func (f floats) encode(codes, data []byte, m uint32) (ok bool) {
	if f.bytes == 4 {
		return f.encode32(codes, data, m)
	}
	var wrong uint64
	all := uint64(m) * ones
	for i := range codes {
		w := binary.LittleEndian.Uint64(data[8*i:])
		x := w & magnitudes
		set := nonZero(x)
		wrong |= x ^ (set>>15*0xffff)&all
		// Code 1 is zero, code 2 positive: two bits at the foot of each lane,
		// which then move together.
		y := (^set&signs)>>15 | (set&^w)>>14
		codes[i] = byte(y | y>>14 | y>>28 | y>>42)
	}
	return wrong == 0
}

func (f floats) encode32(codes, data []byte, m uint32) (ok bool) {
	ok = true
	for i := range codes {
		codes[i] = 0
		for slot := range 4 {
			code := byte(codePlus)
			switch magnitude, negative := f.at(data, 4*i+slot); {
			case magnitude == 0:
				code = codeZero
			case magnitude != m:
				ok = false
			case negative:
				code = codeMinus
			}
			codes[i] |= code << (2 * slot)
		}
	}
	return ok
}

// lanes16 gives for each byte of codes the lanes that are not zero, all bits
// set, and the signs.
var lanes16 = func() (table [256]struct{ set, negative uint64 }) {
	for b := range table {
		for slot := range 4 {
			switch b >> (2 * slot) & 3 {
			case codeMinus:
				table[b].negative |= 0x8000 << (16 * slot)
				fallthrough
			case codePlus:
				table[b].set |= 0xffff << (16 * slot)
			}
		}
	}
	return table
}()

// decode writes the values of codes whose scale has the bits scale. ok is false
// where a code is 3, which ternary weights do not have.
func (f floats) decode(data, codes []byte, scale uint32) (ok bool) {
	ok = true
	for i, b := range codes {
		if b&(b>>1)&0x55 != 0 {
			ok = false
		}
		if f.bytes == 2 {
			lanes := lanes16[b]
			binary.LittleEndian.PutUint64(data[8*i:], uint64(scale)*ones&lanes.set^lanes.negative)
			continue
		}
		for slot := range 4 {
			v := scale
			switch b >> (2 * slot) & 3 {
			case codeMinus:
				v ^= 1 << 31
			case codeZero:
				v = 0
			}
			binary.LittleEndian.PutUint32(data[16*i+4*slot:], v)
		}
	}
	return ok
}

// scale returns the bits of one scale.
func (f floats) scale(data []byte) uint32 {
	if f.bytes == 2 {
		return uint32(binary.LittleEndian.Uint16(data))
	}
	return binary.LittleEndian.Uint32(data)
}

func (f floats) appendScale(out []byte, magnitude uint32) []byte {
	if f.bytes == 2 {
		return binary.LittleEndian.AppendUint16(out, uint16(magnitude))
	}
	return binary.LittleEndian.AppendUint32(out, magnitude)
}
