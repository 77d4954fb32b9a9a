//go:build !amd64 || purego

package kernels

func dot(x, y []float32) float32 { return dotGo(x, y) }

func addScaled(y []float32, a float32, x []float32) { addScaledGo(y, a, x) }

func exponentials(x []float32, offset float32) { exponentialsGo(x, offset) }

func silu(dst, src []float32) { siluGo(dst, src) }

func decodeBF16(dst []float32, src []byte) { decodeBF16Go(dst, src) }

func decodeE4M3(dst []float32, src []byte) { decodeE4M3Go(dst, src) }

func decodePacked(dst []float32, src []byte) { decodePackedGo(dst, src) }

func tileProduct(tile *[tileRows * blockColumns]float32, x []float32, stride, count, n int, scales *[tileRows]float32, lanes []float32) {
	tileProductGo(tile, x, stride, count, n, scales, lanes)
}

func packedProduct([]byte, int, []float32, int, *[tileRows]float32, []float32) bool { return false }
