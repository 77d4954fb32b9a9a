package vector

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// fill makes n bytes of the words that the loops are to tell apart.
func fill(r *rand.Rand, n int, words []uint64) []byte {
	data := make([]byte, 0, n+8)
	for len(data) < n {
		data = binary.LittleEndian.AppendUint64(data, words[r.IntN(len(words))])
	}
	return data[:n]
}

// byCode is CountCodes, code by code; ZeroWord is that of a step.
func byCode(p []byte, step int) Codes {
	var c Codes
	for _, b := range p {
		for ; b != 0; b >>= 2 {
			c.Low += int64(b & 1)
			c.High += int64(b >> 1 & 1)
			c.Both = c.Both || b&3 == 3
		}
	}
	for at := 0; at+8 <= len(p); at += step {
		c.ZeroWord = c.ZeroWord || bytes.Equal(p[at:at+8], bytes.Repeat([]byte{0x55}, 8))
	}
	return c
}

func TestCountCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	zeros, bad := 0, 0
	for range 3000 {
		words := []uint64{0x0102_9a84_5621_0495, 0x5555_5555_5555_5554, 0xaaaa_aaaa_aaaa_aaaa, 0, 0x5555_5555_5555_5555, 0x0300_0000_0000_0000}
		p := fill(r, r.IntN(400), words[:4+max(0, r.IntN(5)-2)])
		step := []int{8, 16, 32}[r.IntN(3)]
		want := byCode(p, step)
		for name, count := range map[string]func([]byte, int) Codes{"as chosen": CountCodes, "in Go": countCodesGo} {
			got := count(p, step)
			if got.Low != want.Low || got.High != want.High || got.Both != want.Both || want.ZeroWord && !got.ZeroWord {
				t.Fatalf("%s: %x, step %d: %+v, want %+v", name, p, step, got, want)
			}
			// What is not at the step may be seen too, but not what is not there.
			if every := byCode(p, 8); got.ZeroWord && !every.ZeroWord {
				t.Fatalf("%s: %x: a word of zeros that is not there", name, p)
			}
		}
		if want.ZeroWord {
			zeros++
		}
		if want.Both {
			bad++
		}
	}
	if zeros < 100 || bad < 100 {
		t.Errorf("only %d with words of zeros and %d with bad codes", zeros, bad)
	}
}

func TestFinite(t *testing.T) {
	for _, f := range []struct {
		lane     int
		exponent uint64
	}{{8, 0x7c}, {8, 0x7f}, {16, 0x7f80}, {16, 0x7c00}, {32, 0x7f80_0000}, {64, 0x7ff0_0000_0000_0000}} {
		var float Float
		for at := 0; at < 64; at += f.lane {
			float.Exponent |= f.exponent << at
			float.One |= f.exponent & -f.exponent << at
			float.Top |= 1 << (f.lane - 1) << at
		}
		finite := ^float.One // all bits but the lowest of each exponent
		for n := range 300 {
			clean := bytes.Repeat(binary.LittleEndian.AppendUint64(nil, finite), n/8+1)[:n]
			if got := Finite(clean, float); got != n&^31 {
				t.Fatalf("%d bits: %d of %d finite bytes", f.lane, got, n)
			}
		}
		for at := range 300 * 8 / f.lane {
			data := bytes.Repeat(binary.LittleEndian.AppendUint64(nil, finite), 38)[:300]
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], f.exponent)
			size := f.lane / 8
			copy(data[at*size:], word[:size])
			want := min(at*size, 288) &^ 31
			for name, got := range map[string]int{"as chosen": Finite(data, float), "in Go": finiteGo(data, float)} {
				if got != want {
					t.Fatalf("%s, %d bits: %d bytes before the element at %d, want %d", name, f.lane, got, at*size, want)
				}
			}
		}
	}
}

// byElement is Literal, element by element.
func byElement(p []byte, bits int, a uint64) Run {
	var r Run
	for ; r.Bytes+8 <= len(p); r.Bytes += 8 {
		x, weights, minus := binary.LittleEndian.Uint64(p[r.Bytes:]), 0, 0
		for at := 0; at < 64; at += bits {
			v := x >> at & (1<<bits - 1)
			switch m := v & (1<<(bits-1) - 1); {
			case m == 0:
			case m != a:
				return r
			case m != v:
				minus++
				weights++
			default:
				weights++
			}
		}
		r.Weights += weights
		r.Minus += minus
	}
	return r
}

func TestLiteral(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 3000 {
		bits, a, lanes := 16, uint64(0x3c05), uint64(0x0001_0001_0001_0001)
		if r.IntN(2) == 0 {
			bits, a, lanes = 32, 0x3f80_0001, 0x0000_0001_0000_0001
		}
		sign := uint64(1) << (bits - 1)
		words := []uint64{0, lanes * sign, lanes * a, lanes * (a | sign), a, a | sign, sign, a << (64 - bits)}
		p := fill(r, r.IntN(900), words)
		if len(p) > 0 && r.IntN(3) > 0 {
			p[r.IntN(len(p))] ^= 1 << r.IntN(8)
		}
		if r.IntN(4) == 0 {
			a = 0 // then zeros alone are taken
		}
		want := byElement(p, bits, a)
		for name, got := range map[string]Run{"as chosen": Literal(p, lanes*(sign-1), lanes*a), "in Go": literalGo(p, lanes*(sign-1), lanes*a)} {
			if got != want {
				t.Fatalf("%s, %d bits, %x: %+v, want %+v", name, bits, p, got, want)
			}
		}
	}
}

// A run may be longer than a lane of 16 bits counts.
func TestLongLiteral(t *testing.T) {
	p := bytes.Repeat([]byte{0x05, 0xbc}, 5<<19+5)
	want := Run{5<<20 + 8, 5<<19 + 4, 5<<19 + 4}
	if got := Literal(p, sixteens, 0x3c05_3c05_3c05_3c05); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	clear(p)
	if got := Literal(p, sixteens, 0); got != (Run{Bytes: want.Bytes}) {
		t.Errorf("zeros: %+v", got)
	}
}

func Benchmark(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	codes := fill(r, 64<<10, []uint64{0x0102_9a84_5621_0495, 0x5555_5555_5555_5554, 0xaaaa_aaaa_aaaa_aaaa})
	literal := fill(r, 64<<10, []uint64{0x3c05_0000_bc05_8000, 0xbc05_3c05_3c05_0000})
	float := Float{0x7f80_7f80_7f80_7f80, 0x0080_0080_0080_0080, 0x8000_8000_8000_8000}
	all := uint64(0x3c05_3c05_3c05_3c05)
	for _, c := range []struct {
		name string
		loop func()
	}{
		{"codes", func() { CountCodes(codes, 32) }},
		{"codes in Go", func() { countCodesGo(codes, 32) }},
		{"finite", func() { Finite(literal, float) }},
		{"finite in Go", func() { finiteGo(literal, float) }},
		{"literal", func() { Literal(literal, sixteens, all) }},
		{"literal in Go", func() { literalGo(literal, sixteens, all) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(64 << 10)
			for b.Loop() {
				c.loop()
			}
		})
	}
}
