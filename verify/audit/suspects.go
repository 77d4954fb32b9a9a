package audit

import (
	"cmp"
	"maps"
	"slices"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/scan"
	"slipway/verify/ternary"
)

// Suspects says where a tensor that is declared ternary could lie in another
// one: whole and in the same order, as some rows of a larger one, transposed,
// or, its beginning, as the beginning of a part of it.
type Suspects struct {
	sizes   map[int64][]int64 // elements of the ternary tensors -> the rows that they have
	inputs  map[int64]int64   // inputs of a ternary tensor -> what divides the rows of all that have so many
	lengths []int64           // the keys of inputs, in order
}

// NewSuspects collects the shapes of the ternary tensors.
func NewSuspects(q manifest.Quantization) *Suspects {
	s := &Suspects{sizes: map[int64][]int64{}, inputs: map[int64]int64{}}
	for _, entry := range q.Tensors {
		if n, ok := ternary.Product(entry.Shape); ok && n > 0 && entry.Kind != manifest.KindFloat {
			row := rowOf(entry)
			if !slices.Contains(s.sizes[n], row) {
				s.sizes[n] = append(s.sizes[n], row)
				slices.Sort(s.sizes[n]) // entries come in no order
			}
			s.inputs[row] = gcd(s.inputs[row], n/row)
		}
	}
	s.lengths = slices.Sorted(maps.Keys(s.inputs))
	return s
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// maxPlaces bounds at how many rows of one tensor another one is looked for.
const maxPlaces = 4096

// places lists the elements of a tensor at which a ternary tensor with as many
// inputs could begin, were tensors joined along their outputs; the first
// element of all is always one.
func (s *Suspects) places(t safetensors.Tensor) []int64 {
	places := []int64{0}
	step := s.inputs[lastOf(t)]
	if step == 0 {
		return places
	}
	rows := t.Elements() / lastOf(t)
	for rows/step > maxPlaces {
		step *= 2
	}
	for row := step; row < rows; row += step {
		places = append(places, row*lastOf(t))
	}
	return places
}

// columns reports whether the first column of a tensor could be the first row
// of a ternary one: of a transposed tensor, or of several joined.
func (s *Suspects) columns(t safetensors.Tensor) bool {
	if len(t.Shape) < 2 || lastOf(t) == 0 {
		return false
	}
	return s.inputs[t.Elements()/lastOf(t)] > 0
}

func lastOf(t safetensors.Tensor) int64 {
	if len(t.Shape) == 0 {
		return 1
	}
	return t.Shape[len(t.Shape)-1]
}

// Samples lists the bytes to keep of a tensor of values. Of one that is itself
// declared ternary only those are that other tensors are compared with.
func (s *Suspects) Samples(t safetensors.Tensor, declared bool) []scan.Range {
	n := t.Elements()
	if !hasSigns(t.DType) || n < enoughSigns || len(s.sizes) == 0 {
		return nil
	}
	var ranges []scan.Range // of elements
	take := func(first, count int64) { ranges = append(ranges, scan.Range{Begin: first, End: first + count}) }
	if declared {
		chunks(n, lastOf(t), take)
	} else {
		for _, row := range s.sizes[n] {
			chunks(n, row, take)
		}
		for _, place := range s.places(t) {
			take(place, min(sampleLength, n-place))
		}
		if last := lastOf(t); s.columns(t) {
			for row := range min(sampleLength, n/last) {
				take(row*last, 1)
			}
		}
	}
	size := int64(t.DType.Bits() / 8)
	ranges = joined(ranges)
	for i := range ranges {
		ranges[i].Begin, ranges[i].End = ranges[i].Begin*size, ranges[i].End*size
	}
	return ranges
}

// joined sorts ranges and joins those that touch.
func joined(ranges []scan.Range) []scan.Range {
	slices.SortFunc(ranges, func(a, b scan.Range) int { return cmp.Compare(a.Begin, b.Begin) })
	var out []scan.Range
	for _, r := range ranges {
		if last := len(out) - 1; last >= 0 && r.Begin <= out[last].End {
			out[last].End = max(out[last].End, r.End)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// hasSigns reports whether the highest bit of a type's elements is their sign,
// or could be that of numbers which are stored as integers of their size.
func hasSigns(d safetensors.DType) bool {
	switch d {
	case safetensors.BF16, safetensors.F16, safetensors.F32, safetensors.F64, safetensors.F8E4M3, safetensors.F8E5M2,
		safetensors.I8, safetensors.U8, safetensors.I16, safetensors.U16, safetensors.I32, safetensors.U32, safetensors.I64, safetensors.U64:
		return true
	}
	return false
}

// samples are the bytes that were kept of a tensor.
type samples struct {
	dtype  safetensors.DType
	ranges []scan.Range
	kept   [][]byte
}

// samplesOf returns what was kept of a tensor; nothing where it is not what was
// asked for.
func (s *Suspects) samplesOf(t safetensors.Tensor, kept [][]byte, declared bool) samples {
	ranges := s.Samples(t, declared)
	if len(ranges) != len(kept) {
		return samples{}
	}
	return samples{t.DType, ranges, kept}
}

// run returns the signs of elements from first on, each step apart; nil where
// one of them was not kept.
func (s samples) run(first, step, count int64) []int8 {
	if len(s.ranges) == 0 {
		return nil
	}
	size := int64(s.dtype.Bits() / 8)
	trits := make([]int8, 0, count)
	i := 0
	for n := range count {
		at := (first + n*step) * size
		if n == 0 || at >= s.ranges[i].End {
			i, _ = slices.BinarySearchFunc(s.ranges, at, func(r scan.Range, at int64) int { return cmp.Compare(r.End, at+1) })
		}
		if i == len(s.ranges) || at < s.ranges[i].Begin {
			return nil
		}
		trits = append(trits, signOf(s.kept[i][at-s.ranges[i].Begin:][:size]))
	}
	return trits
}

// signs returns those that chunks gives of so many elements, for rows of each of
// the lengths.
func (s samples) signs(elements int64, rows []int64) signs {
	out := signs{}
	for _, row := range rows {
		chunks(elements, row, func(first, count int64) {
			if trits := s.run(first, 1, count); trits != nil {
				out[first] = trits
			}
		})
	}
	return out
}

// signOf reads the sign of a little-endian element: 0 where all other bits are.
func signOf(element []byte) int8 {
	last := len(element) - 1
	rest := element[last] &^ 0x80
	for _, b := range element[:last] {
		rest |= b
	}
	switch {
	case rest == 0:
		return 0
	case element[last]&0x80 != 0:
		return -1
	}
	return 1
}
