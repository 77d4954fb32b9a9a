package audit

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/scan"
	"slipway/verify/ternary"
	"slipway/verify/ternary/ternarytest"
)

// kept cuts the sampled bytes out of a tensor's.
func kept(data []byte, ranges []scan.Range) (parts [][]byte) {
	for _, r := range ranges {
		parts = append(parts, data[r.Begin:r.End])
	}
	return parts
}

// The signs that are sampled of codes are those of the weights at the same
// places of the dense tensor, in every format.
func TestSampledSignsAreThoseOfTheWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, e := range []manifest.Quantity{
		{Kind: manifest.KindPacked2Bit, GroupSize: 64, Shape: []int64{3, 128}},
		{Kind: manifest.KindPacked2Bit, GroupSize: 64, Shape: []int64{1024, 1024}},
		{Kind: manifest.KindPacked2Bit, Format: manifest.FormatMLXRowAlpha, Shape: []int64{2, 300, 1024}},
		{Kind: manifest.KindPacked2Bit, Format: manifest.FormatBitNetU8, Shape: []int64{5, 30}},
		{Kind: manifest.KindPacked2Bit, Format: manifest.FormatBitNetU8, Shape: []int64{2049, 640}},
		{Kind: manifest.KindPacked2Bit, Format: manifest.FormatCompressedTensors, GroupSize: 20, Shape: []int64{1024, 1020}},
		{Kind: manifest.KindPacked2Bit, Format: ternarytest.TQ1, GroupSize: 256, Shape: []int64{1024, 1024}},
		{Kind: manifest.KindPacked2Bit, Format: ternarytest.I2S, Shape: []int64{1024, 1024}},
	} {
		l, err := ternary.LayoutOf(e)
		if err != nil {
			t.Fatal(err)
		}
		trits := make([]int8, l.Elements())
		dense := make([]byte, 2*len(trits))
		for i := range trits {
			trits[i] = int8(r.IntN(3) - 1)
			binary.LittleEndian.PutUint16(dense[2*i:], []uint16{0xbc00, 0x8000, 0x3c00}[trits[i]+1])
		}
		codes, err := l.EncodeCodes(trits)
		if err != nil {
			t.Fatal(err)
		}
		a := signsOfCodes(&l, kept(codes, CodeSamples(&l)), allWeights)
		tensor := safetensors.Tensor{DType: safetensors.F16, Shape: e.Shape}
		b := signsOfValues(tensor, kept(dense, ValueSamples(tensor)), allWeights)
		if len(a) == 0 || len(a[0]) == 0 {
			t.Fatalf("%s %v: nothing is sampled", e.Format, e.Shape)
		}
		for first, got := range a {
			if want := trits[first : first+int64(len(got))]; !slices.Equal(got, want) || !slices.Equal(b[first], want) {
				t.Errorf("%s %v, weight %d: codes give %v, values %v, want %v", e.Format, e.Shape, first, got, b[first], want)
			}
		}
		if like := compareSigns(a, b); like.weights == 0 || like.agree != like.weights || like.differ != 0 {
			t.Errorf("%s %v: compared %+v", e.Format, e.Shape, like)
		}
	}
}
