package scan

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"slipway/manifest/safetensors"
)

// The first signs of every row are kept, whatever the pieces are that the bytes
// come in; zeros of either sign have none.
func TestSignsOfRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for dtype, size := range map[safetensors.DType]int{safetensors.I8: 1, safetensors.BF16: 2, safetensors.F32: 4, safetensors.F64: 8} {
		const row, rows = 300, 5
		data := make([]byte, row*rows*size)
		for i := range row * rows {
			element := data[i*size:][:size]
			switch r.IntN(4) {
			case 0:
				element[size-1] = 0x80 // minus zero
			case 1: // zero
			default:
				for j := range element {
					element[j] = byte(r.Uint32())
				}
			}
		}
		want := make([]uint64, rows*SignWindow/64)
		for i := range rows {
			for j := range SignWindow {
				element := make([]byte, 8)
				copy(element[8-size:], data[(i*row+j)*size:][:size])
				if v := binary.LittleEndian.Uint64(element); v>>63 == 1 && v<<1 != 0 {
					want[(i*SignWindow+j)/64] |= 1 << (j % 64)
				}
			}
		}
		for _, piece := range []int{1, 7, 512, len(data)} {
			o, facts := observeSigns(dtype, Rows{row, rows}), &Tensor{}
			for p := range slices.Chunk(data, piece) {
				o.write(p)
			}
			if o.finish(facts); !slices.Equal(facts.Signs[0], want) {
				t.Errorf("%s in pieces of %d bytes: %x, want %x", dtype, piece, facts.Signs[0], want)
			}
		}
	}
}

// BenchmarkSigns keeps the first signs of rows of 2560 16-bit elements.
func BenchmarkSigns(b *testing.B) {
	block := make([]byte, blockBytes)
	for i := range block {
		block[i] = byte(i * 7)
	}
	b.SetBytes(blockBytes)
	o := observeSigns(safetensors.BF16, Rows{2560, 64})
	for b.Loop() {
		o.write(block)
		o.signs = o.signs[:0]
	}
}
