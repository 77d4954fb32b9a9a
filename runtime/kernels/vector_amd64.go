//go:build amd64 && !purego

package kernels

import "golang.org/x/sys/cpu"

// AVX2 versions of the inner loops, bitwise equal to the Go ones: the same
// lanes, products and sums rounded separately.

var hasAVX2 = cpu.X86.HasAVX2

// The counts n of elements are multiples of 8, of 16 for decodePackedAVX2.

//go:noescape
func tileProductAVX2(tile, x *float32, stride, count, n int, scales, lanes *float32)

//go:noescape
func dotAVX2(x, y *float32, n int, lanes *[8]float32)

//go:noescape
func addScaledAVX2(y, x *float32, n int, a float32)

//go:noescape
func exponentialsAVX2(x *float32, n int, offset float32)

//go:noescape
func siluAVX2(dst, src *float32, n int)

//go:noescape
func decodeBF16AVX2(dst *float32, src *byte, n int)

//go:noescape
func decodeE4M3AVX2(dst *float32, src *byte, n int)

//go:noescape
func decodePackedAVX2(dst *float32, src *byte, n int)

//go:noescape
func packedProductAVX2(codes *byte, stride int, x *float32, n int, scales, lanes *float32)

// packedProduct adds scale * (codes x) to the lanes of four outputs for one
// row, without a tile; false means that it has not.
func packedProduct(codes []byte, stride int, x []float32, n int, scales *[tileRows]float32, lanes []float32) bool {
	if !hasAVX2 || n == 0 || n%16 != 0 {
		return false
	}
	_, _, _ = codes[3*stride+n/4-1], x[n-1], lanes[tileRows*8-1]
	packedProductAVX2(&codes[0], stride, &x[0], n, &scales[0], &lanes[0])
	return true
}

func tileProduct(tile *[tileRows * blockColumns]float32, x []float32, stride, count, n int, scales *[tileRows]float32, lanes []float32) {
	if !hasAVX2 || count == 0 || n == 0 {
		tileProductGo(tile, x, stride, count, n, scales, lanes)
		return
	}
	_, _ = x[(count-1)*stride+n-1], lanes[count*tileRows*8-1]
	tileProductAVX2(&tile[0], &x[0], stride, count, n, &scales[0], &lanes[0])
}

func dot(x, y []float32) float32 {
	n := len(x) &^ 7
	if !hasAVX2 || n == 0 {
		return dotGo(x, y)
	}
	y = y[:len(x)]
	var lanes [8]float32
	dotAVX2(&x[0], &y[0], n, &lanes)
	for i := n; i < len(x); i++ {
		lanes[i&7] += float32(x[i] * y[i])
	}
	return sumLanes(&lanes)
}

func addScaled(y []float32, a float32, x []float32) {
	x = x[:len(y)]
	if n := len(y) &^ 7; hasAVX2 && n > 0 {
		addScaledAVX2(&y[0], &x[0], n, a)
		y, x = y[n:], x[n:]
	}
	addScaledGo(y, a, x)
}

func exponentials(x []float32, offset float32) {
	if n := len(x) &^ 7; hasAVX2 && n > 0 {
		exponentialsAVX2(&x[0], n, offset)
		x = x[n:]
	}
	exponentialsGo(x, offset)
}

func silu(dst, src []float32) {
	src = src[:len(dst)]
	if n := len(dst) &^ 7; hasAVX2 && n > 0 {
		siluAVX2(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	siluGo(dst, src)
}

func decodeBF16(dst []float32, src []byte) {
	if n := len(dst) &^ 7; hasAVX2 && n > 0 {
		_ = src[2*n-1]
		decodeBF16AVX2(&dst[0], &src[0], n)
		dst, src = dst[n:], src[2*n:]
	}
	decodeBF16Go(dst, src)
}

func decodeE4M3(dst []float32, src []byte) {
	if n := len(dst) &^ 7; hasAVX2 && n > 0 {
		_ = src[n-1]
		decodeE4M3AVX2(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	decodeE4M3Go(dst, src)
}

func decodePacked(dst []float32, src []byte) {
	if n := len(dst) &^ 15; hasAVX2 && n > 0 {
		_ = src[n/4-1]
		decodePackedAVX2(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n/4:]
	}
	decodePackedGo(dst, src)
}
