//go:build amd64 && !purego

package vector

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2

// The numbers n of bytes are multiples of 64, and not 0.

// countCodesAVX2 returns in zero a bit for every byte of 32 at whose place a
// word of zero codes was seen.
//
//go:noescape
func countCodesAVX2(p *byte, n int) (low, high int, both bool, zero uint32)

//go:noescape
func finiteAVX2(p *byte, n int, f *Float) int

// literalAVX2 returns the numbers of bytes, of elements that are zero, and of
// those that are negative and not zero. n is at most literalBytes: each of
// sixteen lanes counts in 15 bits.
//
//go:noescape
func literalAVX2(p *byte, n int, a uint16) (bytes, zeros, minus int)

// countBlocks counts whole blocks of 64 bytes.
func countBlocks(p []byte, step int) Codes {
	if !hasAVX2 || len(p) == 0 {
		return countCodesGo(p, step)
	}
	low, high, both, zero := countCodesAVX2(&p[0], len(p))
	switch step {
	case 8:
	case 16:
		zero &= 0x00ff00ff
	default:
		zero &= 0x000000ff
	}
	return Codes{int64(low), int64(high), both, zero != 0}
}

// finiteBlocks is Finite in blocks of 64 bytes, or 0.
func finiteBlocks(p []byte, f Float) int {
	if !hasAVX2 || len(p) == 0 {
		return 0
	}
	return finiteAVX2(&p[0], len(p), &f)
}

// literalBytes is how much literalAVX2 takes at most.
const literalBytes = 512 << 10

// literalBlocks is Literal in blocks of 64 bytes, or nothing.
func literalBlocks(p []byte, a uint16) Run {
	var r Run
	for hasAVX2 && len(p) > 0 {
		part := p[:min(len(p), literalBytes)]
		n, zeros, minus := literalAVX2(&part[0], len(part), a)
		r.Bytes += n
		r.Weights += n/2 - zeros
		r.Minus += minus
		if n < len(part) {
			break
		}
		p = p[n:]
	}
	return r
}
