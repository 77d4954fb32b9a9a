package audit

import (
	"math"

	"slipway/manifest/safetensors"
	"slipway/verify/scan"
	"slipway/verify/ternary"
)

// Of every tensor that is declared ternary, and of those that could be a copy
// of one, the signs of a few weights are kept, so that tensors can be compared
// without reading them twice: sampleLength weights from the start of a row, once in
// sampleEvery weights, or eight times in a tensor that would have fewer than four.
const (
	sampleEvery  = 1 << 18
	sampleLength = scan.SignWindow
)

// chunks calls with the first weight and the number of weights of each sample of
// a tensor with rows of so many weights. No two samples share a weight.
func chunks(elements, row int64, take func(first, count int64)) {
	every := max(int64(sampleEvery), row)
	if elements < 4*sampleEvery {
		every = max(elements/8, 2*sampleLength, row)
	}
	for first := int64(0); first < elements; first += every {
		begin := first - first%max(row, 1)
		take(begin, min(sampleLength, elements-begin))
	}
}

// CodeSamples lists the bytes of the codes that the samples lie in: of those
// samples that lie close together, and after the one before.
func CodeSamples(l *ternary.Layout) (ranges []scan.Range) {
	before := int64(0)
	chunks(l.Elements(), l.Inputs, func(first, count int64) {
		if begin, end := l.Span(first, count); begin >= before && end-begin <= count {
			ranges = append(ranges, scan.Range{Begin: begin, End: end})
			before = end
		}
	})
	return ranges
}

// ValueSamples lists the bytes of the samples of a floating-point tensor.
func ValueSamples(t safetensors.Tensor) (ranges []scan.Range) {
	if !ternary.HoldsValues(t.DType) {
		return nil
	}
	size := int64(t.DType.Bits() / 8)
	chunks(t.Elements(), lastOf(t), func(first, count int64) {
		ranges = append(ranges, scan.Range{Begin: first * size, End: (first + count) * size})
	})
	return ranges
}

// signs are -1, 0 or +1 for sampled weights: by the first weight of a sample.
type signs map[int64][]int8

// allWeights asks signsOfCodes and signsOfValues for every sample.
const allWeights = math.MaxInt64

// signsOfCodes reads the samples that were kept of codes, of the first so many
// weights.
func signsOfCodes(l *ternary.Layout, kept [][]byte, weights int64) signs {
	s := signs{}
	ranges := CodeSamples(l)
	if len(kept) != len(ranges) {
		return s
	}
	next := 0
	chunks(l.Elements(), l.Inputs, func(first, count int64) {
		if begin, end := l.Span(first, count); first >= weights || next == len(ranges) || ranges[next] != (scan.Range{Begin: begin, End: end}) {
			return
		}
		trits := make([]int8, count)
		for i := range trits {
			trits[i] = int8(l.Read(kept[next], ranges[next].Begin, first+int64(i))) - 1
		}
		s[first] = trits
		next++
	})
	return s
}

// signsOfValues reads the samples that were kept of a floating-point tensor,
// of the first so many weights.
func signsOfValues(t safetensors.Tensor, kept [][]byte, weights int64) signs {
	s := signs{}
	if len(kept) != len(ValueSamples(t)) {
		return s
	}
	sign, next := uint64(1)<<(t.DType.Bits()-1), 0
	chunks(t.Elements(), lastOf(t), func(first, count int64) {
		if first >= weights {
			return
		}
		trits := make([]int8, count)
		for i := range trits {
			switch b := ternary.Bits(t.DType, kept[next], int64(i)); {
			case b&^sign == 0:
			case b&sign != 0:
				trits[i] = -1
			default:
				trits[i] = 1
			}
		}
		s[first] = trits
		next++
	})
	return s
}

// meanOfValues returns the mean magnitude of the sampled weights at which
// another tensor is not zero.
func meanOfValues(t safetensors.Tensor, kept [][]byte, where signs) float64 {
	sum, n, next := 0.0, 0, 0
	chunks(t.Elements(), lastOf(t), func(first, count int64) {
		if trits := where[first]; next < len(kept) && int64(len(trits)) == count {
			for i := range count {
				if trits[i] != 0 {
					v := ternary.Value(t.DType, ternary.Bits(t.DType, kept[next], i))
					sum, n = sum+max(v, -v), n+1
				}
			}
		}
		next++
	})
	return sum / float64(max(n, 1))
}

// alikeness is how the sampled signs of two tensors compare.
type alikeness struct {
	weights int // at which the first is not zero
	agree   int // of those, where the second has the same sign
	differ  int // of all, where one is zero and the other is not, or the signs differ

	known    int // of the weights, where the second is not zero
	negative int // of the weights, where the second is negative
	zeros    int // at which the first is zero
	signed   int // of those, where the second is negative
}

// masked reports whether the second has a sign bit where the first is zero, and
// hardly elsewhere: so do the bits of full-precision weights, combined by
// exclusive or with those of their ternary form, which have the same signs.
func (a alikeness) masked() bool {
	return a.weights >= enoughSigns && a.zeros >= enoughSigns/2 && 20*a.negative <= a.weights && 4*a.signed >= a.zeros
}

func compareSigns(a, b signs) (c alikeness) {
	var n [4][4]int // of pairs: of zero, +1, a code that is none, and -1
	total := 0
	for first, trits := range a {
		other := b[first]
		if len(other) != len(trits) {
			continue
		}
		for i, trit := range trits {
			n[trit&3][other[i]&3]++ // random signs are not to be foreseen: no branch
		}
		total += len(trits)
	}
	const plus, minus = 1, 3
	c.zeros = n[0][0] + n[0][1] + n[0][2] + n[0][3]
	c.weights = total - c.zeros
	c.agree = n[plus][plus] + n[minus][minus]
	c.differ = total - c.agree - n[0][0]
	c.known = c.weights - n[plus][0] - n[2][0] - n[minus][0]
	c.negative = n[plus][minus] + n[2][minus] + n[minus][minus]
	c.signed = n[0][minus]
	return c
}

// enoughSigns is how many weights it takes to tell: of so many random signs, 64
// and more of a hundred agree once in a thousand cases, 75 never.
const enoughSigns = 100

// BaseSample is what was kept of a tensor of the base.
type BaseSample struct {
	Tensor safetensors.Tensor
	Kept   [][]byte
}
