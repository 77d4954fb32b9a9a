package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
)

// Colors that plain images are made of.
var (
	Red  = color.RGBA{R: 255, A: 255}
	Blue = color.RGBA{B: 255, A: 255}
)

// smallSide is the side of a small plain image in pixels: no patch of a vision
// encoder is larger.
const smallSide = 64

// Small is a plain square as a PNG of a few hundred bytes.
func Small(of color.RGBA) Picture { return plain(of, smallSide, png.BestCompression) }

// Large is a plain square as a PNG whose base64 has about as many bytes as is
// asked for: its pixels are stored as they are, three bytes each.
func Large(of color.RGBA, base64Bytes int) Picture {
	pixels := float64(base64Bytes) / 4 * 3 / 3
	return plain(of, max(smallSide, int(math.Sqrt(pixels))), png.NoCompression)
}

func plain(of color.RGBA, side int, level png.CompressionLevel) Picture {
	square := image.NewRGBA(image.Rect(0, 0, side, side))
	draw.Draw(square, square.Bounds(), image.NewUniform(of), image.Point{}, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: level}
	if err := encoder.Encode(&out, square); err != nil {
		panic(err) // writing to memory never fails, and the size is sound
	}
	return Picture{Name: fmt.Sprintf("a plain square of %d x %d pixels", side, side), Data: out.Bytes(), Made: true}
}
