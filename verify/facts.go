package verify

import (
	"math"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// fileFacts is all that reading a file once leaves behind. Gates look at these
// and never at the file.
type fileFacts struct {
	err    error           // reading or integrity; the other fields are then void
	digest manifest.Digest //
	size   int64           // bytes read
	head   []byte          // the first bytes, at most headBytes
	ranges [256]int64      // how often each byte value occurs; only where countsBytes
	small  []byte          // the whole content, only where keepsWhole

	header     *safetensors.Header // nil with headerErr, or where the file is none
	headerErr  error               // a violation of the format
	opinion    safetensors.Verdict
	opinionErr error
	tensors    map[string]*tensorFacts
	vocabulary *vocabularyFacts // tokenizer.json only
	overlong   string           // why small is empty although it is wanted
}

// headBytes is enough for every signature that gate files knows.
const headBytes = 16

// tensorFacts is what one pass over a stored tensor's bytes leaves behind.
type tensorFacts struct {
	digest         manifest.Digest // of all bytes; zero unless asked for
	prefix         manifest.Digest // of the first prefixBytes
	nonFinite      int64           // NaN or infinite elements
	firstNonFinite int64           // element index, valid when nonFinite > 0
	codes          *codeFacts
	scales         *scaleFacts
	literal        *literalFacts
}

// prefixBytes is how much of a tensor is compared to tell copies: two tensors
// of one shape and one set of statistics that begin alike are called equal.
const prefixBytes = 16 << 10

// codeFacts counts two-bit codes.
type codeFacts struct {
	histogram [4]int64
	firstBad  int64   // element index of the first code 3, valid when there is one
	zeroUnits unitSet // scale units whose codes all mean zero
}

// scaleFacts describes a scale tensor.
type scaleFacts struct {
	count, negative, subnormal, nonFinite int64
	firstNonFinite                        int64
	min, max                              float64 // of the finite ones
	zeroUnits                             unitSet // units whose scale is zero
}

// allEqual reports whether more than one scale is there and all are the same.
func (s *scaleFacts) allEqual() bool {
	return s.count > 1 && s.nonFinite == 0 && s.min == s.max
}

func newScaleFacts() *scaleFacts {
	return &scaleFacts{min: math.Inf(1), max: math.Inf(-1), zeroUnits: unitSet{}}
}

// literalFacts says whether every unit of a float tensor is {-a, 0, +a}.
type literalFacts struct {
	unit     int64 // elements
	units    int64
	zeros    int64
	badUnits int64
	firstBad int64 // element index, valid when badUnits > 0
	first    uint64
	second   uint64 // magnitudes' bits at firstBad: the unit's and the other one
}

// unitSet is a set of scale unit indexes. Its memory follows the places where
// units are: a page of 4096 units exists once one of them is in the set.
type unitSet map[int64]*[64]uint64

func (s unitSet) add(unit int64) {
	page := s[unit>>12]
	if page == nil {
		page = new([64]uint64)
		s[unit>>12] = page
	}
	page[unit>>6&63] |= 1 << (unit & 63)
}

func (s unitSet) has(unit int64) bool {
	page := s[unit>>12]
	return page != nil && page[unit>>6&63]>>(unit&63)&1 == 1
}

// missingFrom returns how many units of s are not in other, and the least.
func (s unitSet) missingFrom(other unitSet) (count, first int64) {
	first = math.MaxInt64
	for index, page := range s {
		for word, bits := range page {
			if o := other[index]; o != nil {
				bits &^= o[word]
			}
			for bit := int64(0); bits != 0; bit, bits = bit+1, bits>>1 {
				if bits&1 == 1 {
					count++
					first = min(first, index<<12+int64(word)<<6+bit)
				}
			}
		}
	}
	return count, first
}

func (s unitSet) size() int64 {
	n, _ := s.missingFrom(nil)
	return n
}
