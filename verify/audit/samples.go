package audit

import (
	"slipway/manifest/safetensors"
	"slipway/verify/scan"
	"slipway/verify/ternary"
)

// Of every tensor that is declared ternary, and of those that could be a copy
// of one, the signs of a few weights are kept, so that tensors can be compared
// without reading them twice: sampleLength weights of each sampleEvery.
const (
	sampleEvery  = 1 << 18
	sampleLength = 256
)

// chunks calls with the first weight and the number of weights of each sample.
func chunks(elements int64, take func(first, count int64)) {
	for first := int64(0); first < elements; first += sampleEvery {
		take(first, min(sampleLength, elements-first))
	}
}

// CodeSamples lists the bytes of the codes that the samples lie in: of those
// samples that lie close together, and after the one before.
func CodeSamples(l *ternary.Layout) (ranges []scan.Range) {
	before := int64(0)
	chunks(l.Elements(), func(first, count int64) {
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
	chunks(t.Elements(), func(first, count int64) {
		ranges = append(ranges, scan.Range{Begin: first * size, End: (first + count) * size})
	})
	return ranges
}

// signs are -1, 0 or +1 for sampled weights: by the first weight of a sample.
type signs map[int64][]int8

// signsOfCodes reads the samples that were kept of codes.
func signsOfCodes(l *ternary.Layout, kept [][]byte) signs {
	s := signs{}
	ranges := CodeSamples(l)
	if len(kept) != len(ranges) {
		return s
	}
	next := 0
	chunks(l.Elements(), func(first, count int64) {
		if begin, end := l.Span(first, count); next == len(ranges) || ranges[next] != (scan.Range{Begin: begin, End: end}) {
			return
		}
		for i := range count {
			at, shift := l.Slot(first + i)
			s[first] = append(s[first], int8(kept[next][at-ranges[next].Begin]>>shift&3)-1)
		}
		next++
	})
	return s
}

// signsOfValues reads the samples that were kept of a floating-point tensor.
func signsOfValues(t safetensors.Tensor, kept [][]byte) signs {
	s := signs{}
	if len(kept) != len(ValueSamples(t)) {
		return s
	}
	sign, next := uint64(1)<<(t.DType.Bits()-1), 0
	chunks(t.Elements(), func(first, count int64) {
		for i := range count {
			b := ternary.Bits(t.DType, kept[next], i)
			trit := int8(1)
			switch {
			case b&^sign == 0:
				trit = 0
			case b&sign != 0:
				trit = -1
			}
			s[first] = append(s[first], trit)
		}
		next++
	})
	return s
}

// meanOfValues returns the mean magnitude of the sampled weights at which
// another tensor is not zero.
func meanOfValues(t safetensors.Tensor, kept [][]byte, where signs) float64 {
	sum, n, next := 0.0, 0, 0
	chunks(t.Elements(), func(first, count int64) {
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
}

func compareSigns(a, b signs) (c alikeness) {
	for first, trits := range a {
		other := b[first]
		if len(other) != len(trits) {
			continue
		}
		for i, trit := range trits {
			if trit != other[i] {
				c.differ++
			}
			if trit != 0 {
				c.weights++
				if trit == other[i] {
					c.agree++
				}
			}
		}
	}
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
