package ternary

// What the code of a weight stands for: -1, 0 or +1 times its scale, or nothing
// that a ternary tensor holds. Formats differ in the bits that stand for each.
const (
	Minus = 0
	Zero  = 1
	Plus  = 2
	Bad   = 3
)

// MaxSlots is how many codes a byte holds at most: 3^5 is below 256.
const MaxSlots = 5

// Packing is how codes share a byte: a table of what each of the 256 bytes
// stands for, and its inverse. Bits that are zero are padding.
type Packing struct {
	Slots  int    // codes in a byte
	Good   string // the codes that may stand in one, in words
	BadOne string // the code that must not

	// Beyond is what programs decode a code that stands for nothing to, as a
	// multiple of the scale; NaN where that is no one number.
	Beyond float64

	table   [256][MaxSlots]byte
	inverse map[[MaxSlots]byte]byte
	bad     [256]bool // one of the codes is Bad
	zero    byte      // all codes Zero
	plain   bool
}

// NewPacking tabulates decode, which says what the code in a slot of a byte
// stands for. Where several bytes stand for the same, the lowest one is written.
func NewPacking(slots int, good, bad string, beyond float64, decode func(b byte, slot int) byte) *Packing {
	p := &Packing{Slots: slots, Good: good, BadOne: bad, Beyond: beyond, inverse: map[[MaxSlots]byte]byte{}, plain: slots == 4}
	var zeros [MaxSlots]byte
	for slot := range slots {
		zeros[slot] = Zero
	}
	for b := range 256 {
		var counts [4]int
		for slot := range slots {
			meaning := decode(byte(b), slot)
			p.table[b][slot] = meaning
			p.bad[b] = p.bad[b] || meaning == Bad
			counts[meaning]++
			counts[b>>(2*slot)&3]--
		}
		p.plain = p.plain && counts == [4]int{}
		if _, taken := p.inverse[p.table[b]]; !taken {
			p.inverse[p.table[b]] = byte(b)
		}
	}
	p.zero = p.inverse[zeros]
	return p
}

// lowestFirst is the packing of most formats: four codes c-1 of two bits, the
// first in the lowest bits.
var lowestFirst = NewPacking(4, "codes 0, 1 and 2", "code 3", 2, func(b byte, slot int) byte { return b >> (2 * slot) & 3 })

// Plain reports whether every byte has its four two-bit codes c-1 in any order,
// so that what is asked of all four can be asked of many bytes at once.
func (p *Packing) Plain() bool { return p.plain }

// ZeroByte is the byte all of whose codes stand for 0.
func (p *Packing) ZeroByte() byte { return p.zero }

// Read returns what the code in a slot of a byte stands for.
func (p *Packing) Read(b byte, slot int) byte { return p.table[b][slot] }

// BadBytes says of each byte whether one of its codes stands for nothing.
func (p *Packing) BadBytes() *[256]bool { return &p.bad }

// Pad is what padding reads as.
func (p *Packing) Pad() byte { return p.table[0][0] }

// Set returns the byte with another code in a slot; ok is false where no byte
// stands for that.
func (p *Packing) Set(b byte, slot int, meaning byte) (changed byte, ok bool) {
	codes := p.table[b]
	codes[slot] = meaning
	changed, ok = p.inverse[codes]
	return changed, ok
}

// level is the multiple of a scale that a code decodes to, NaN for none.
func (p *Packing) level(meaning byte) float64 {
	if meaning == Bad {
		return p.Beyond
	}
	return float64(meaning) - 1
}
