// Package vector has the loops that see every byte of a checkpoint: they count
// two-bit codes, look for NaN, and check literal weights. Each is written in Go
// and, for processors with AVX2, in assembly; both give the same results.
package vector

import (
	"encoding/binary"
	"math/bits"
)

const lowBits = 0x5555555555555555

// zeroCodes is a word of 32 codes 1, which stands for zero.
const zeroCodes = 0x5555555555555555

// Codes is what CountCodes finds in two-bit codes, four a byte.
type Codes struct {
	Low, High int64 // codes with the low bit set; with the high bit
	Both      bool  // a code has both
	ZeroWord  bool  // all codes of an eight-byte word that was looked at are 1
}

// CountCodes counts the codes of p. Words whose codes are all 1 are looked for
// at multiples of step bytes: 8, 16 or 32; others may be seen too.
func CountCodes(p []byte, step int) Codes {
	n := len(p) &^ 63
	c := countBlocks(p[:n], step)
	rest := countCodesGo(p[n:], step)
	return Codes{c.Low + rest.Low, c.High + rest.High, c.Both || rest.Both, c.ZeroWord || rest.ZeroWord}
}

// countCodesGo is CountCodes. Of two words the low bits fit into one, and so do
// the high bits: one population count a word.
func countCodesGo(p []byte, step int) Codes {
	var low, high int
	var both uint64
	zero := false
	for len(p) >= 32 {
		a, b := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:16])
		c, d := binary.LittleEndian.Uint64(p[16:24]), binary.LittleEndian.Uint64(p[24:32])
		lowAB, lowCD := a&lowBits|b&lowBits<<1, c&lowBits|d&lowBits<<1
		highAB, highCD := a>>1&lowBits|b&^lowBits, c>>1&lowBits|d&^lowBits
		low += bits.OnesCount64(lowAB) + bits.OnesCount64(lowCD)
		high += bits.OnesCount64(highAB) + bits.OnesCount64(highCD)
		both |= lowAB&highAB | lowCD&highCD
		if a == zeroCodes || step < 32 && c == zeroCodes || step < 16 && (b == zeroCodes || d == zeroCodes) {
			zero = true
		}
		p = p[32:]
	}
	for len(p) >= 8 {
		a := binary.LittleEndian.Uint64(p)
		low += bits.OnesCount64(a & lowBits)
		high += bits.OnesCount64(a &^ lowBits)
		both |= a & (a >> 1) & lowBits
		zero = zero || a == zeroCodes
		p = p[8:]
	}
	for _, c := range p {
		low += bits.OnesCount8(c & 0x55)
		high += bits.OnesCount8(c & 0xaa)
		both |= uint64(c & (c >> 1) & 0x55)
	}
	return Codes{int64(low), int64(high), both != 0, zero}
}

// Float says where the exponent bits of a floating type are, in all lanes of a
// word: Exponent has all of them, One the lowest of each lane, and Top is the
// place above each lane's highest, which is the sign's.
type Float struct{ Exponent, One, Top uint64 }

// Finite returns how many bytes from the start of p, a multiple of 32, hold no
// element whose exponent bits are all ones: at most 31 bytes less than there
// are before the first such element, or before the end.
func Finite(p []byte, f Float) int {
	n := finiteBlocks(p[:len(p)&^63], f)
	return n + finiteGo(p[n:], f)
}

// finiteGo is Finite. Where all exponent bits are ones, adding the lowest one
// carries into the sign's place, which was cleared.
func finiteGo(p []byte, f Float) int {
	rest := p
	for len(rest) >= 32 {
		a, b := binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:16])
		c, d := binary.LittleEndian.Uint64(rest[16:24]), binary.LittleEndian.Uint64(rest[24:32])
		if ((a&f.Exponent+f.One)|(b&f.Exponent+f.One)|(c&f.Exponent+f.One)|(d&f.Exponent+f.One))&f.Top != 0 {
			break
		}
		rest = rest[32:]
	}
	return len(p) - len(rest)
}

// Run is what Literal finds: so many bytes, and the elements in them that are
// not zero, and those of them with a sign.
type Run struct{ Bytes, Weights, Minus int }

// Literal returns how far from the start of p, in whole words, every element is
// zero of either sign, or of magnitude a. Elements have 16 bits or 32; magnitudes has
// all bits but the sign in all lanes, all has a in all of them.
func Literal(p []byte, magnitudes, all uint64) Run {
	var r Run
	if magnitudes == sixteens {
		r = literalBlocks(p[:len(p)&^63], uint16(all))
	}
	rest := literalGo(p[r.Bytes:], magnitudes, all)
	return Run{r.Bytes + rest.Bytes, r.Weights + rest.Weights, r.Minus + rest.Minus}
}

// sixteens has the magnitudes' bits of four elements of 16 bits.
const sixteens = 0x7fff7fff7fff7fff

// literalGo is Literal. Adding all ones below the sign's place carries into it
// from every lane that is not zero. Such bits of four words fit beside each
// other.
func literalGo(p []byte, magnitudes, all uint64) Run {
	var r Run
	rest := p
	for len(rest) >= 32 {
		w, x := binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:16])
		y, z := binary.LittleEndian.Uint64(rest[16:24]), binary.LittleEndian.Uint64(rest[24:32])
		wm, xm, ym, zm := w&magnitudes, x&magnitudes, y&magnitudes, z&magnitudes
		wn, xn, yn, zn := (wm+magnitudes)&^magnitudes, (xm+magnitudes)&^magnitudes, (ym+magnitudes)&^magnitudes, (zm+magnitudes)&^magnitudes
		if wn&((wm^all)+magnitudes)|xn&((xm^all)+magnitudes)|yn&((ym^all)+magnitudes)|zn&((zm^all)+magnitudes) != 0 {
			break
		}
		r.Weights += bits.OnesCount64(wn | xn>>1 | yn>>2 | zn>>3)
		r.Minus += bits.OnesCount64(w&wn | x&xn>>1 | y&yn>>2 | z&zn>>3)
		rest = rest[32:]
	}
	for len(rest) >= 8 {
		x := binary.LittleEndian.Uint64(rest)
		m := x & magnitudes
		nonZero := (m + magnitudes) &^ magnitudes
		if nonZero&((m^all)+magnitudes) != 0 {
			break
		}
		r.Weights += bits.OnesCount64(nonZero)
		r.Minus += bits.OnesCount64(x & nonZero)
		rest = rest[8:]
	}
	r.Bytes = len(p) - len(rest)
	return r
}
