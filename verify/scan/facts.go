package scan

import (
	"errors"
	"math"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// File is all that reading a file once leaves behind. Gates look at these and
// never at the file.
type File struct {
	Err     error           // reading or integrity; the other fields are then void
	Digest  manifest.Digest //
	Size    int64           // bytes read
	Head    []byte          // the first bytes, at most HeadBytes
	Ranges  [256]int64      // how often each byte value occurs; only where Options.Dense asks
	Encoded int64           // characters in long runs of hexadecimal digits, or of base64; likewise
	Small   []byte          // the whole content, only of files that Whole read

	Header     *safetensors.Header // nil with HeaderErr, or where the file is no shard
	HeaderErr  *safetensors.Error  // a violation of the format, or nil
	Opinion    safetensors.Verdict // a second reader's
	OpinionErr error               // its reason
	Unknown    []safetensors.DType // the types that it does not know, with CannotRead
	Tensors    map[string]*Tensor  // by name; nil without Header

	Overlong string // why Small is empty although it is wanted
}

// Unreadable says why a small file's content is not there, or is nil.
func (f *File) Unreadable() error {
	switch {
	case f.Err != nil:
		return f.Err
	case f.Overlong != "":
		return errors.New(f.Overlong)
	}
	return nil
}

// HeadBytes is enough for every signature that gates know.
const HeadBytes = 64

// Tensor is what one pass over a stored tensor's bytes leaves behind.
type Tensor struct {
	Digest         manifest.Digest // of all bytes; zero unless asked for
	Prefix         manifest.Digest // of the first prefixBytes
	NonFinite      int64           // NaN or infinite elements
	FirstNonFinite int64           // element index, valid when NonFinite > 0
	Pair           manifest.Digest // of values that are to be the negatives of another tensor's; zero unless asked for
	Kept           [][]byte        // the bytes of Questions.Keep
	Signs          [][]uint64      // of each of Questions.Signs: SignWindow bits a row, set where an element is negative

	Asymmetric int64 // the largest of Questions.Literal of which every unit is {-b, 0, +a}; 0: none, or it was not asked

	Codes   *Codes // nil unless asked for, like the next three
	Scales  *Scales
	Literal *Literal
	Halves  *Halves // nil too for types of 16 bits and less
}

// prefixBytes is how much of a tensor is compared to tell copies: two tensors
// of one shape and one set of statistics that begin alike are called equal.
const prefixBytes = 16 << 10

// Codes counts two-bit codes.
type Codes struct {
	Histogram   [4]int64 // of -1, 0, +1 and codes that stand for nothing; padding is not counted
	FirstBad    int64    // the weight of the first code in the file that stands for nothing, valid when there is one
	BadPads     int64    // codes of the padding that are not the padding's code
	FirstBadPad int64    // byte of the codes, valid when BadPads > 0
	ZeroUnits   UnitSet  // scale units whose codes all mean zero
}

// Scales describes a scale tensor.
type Scales struct {
	Count, Negative, Subnormal, NonFinite int64
	FirstNonFinite                        int64
	Min, Max                              float64 // of the finite ones; Min > Max without any
	ZeroUnits                             UnitSet // units whose scale is zero
}

// AllEqual reports whether more than one scale is there and all are the same.
func (s *Scales) AllEqual() bool {
	return s.Count > 1 && s.NonFinite == 0 && s.Min == s.Max
}

func newScales() *Scales {
	return &Scales{Min: math.Inf(1), Max: math.Inf(-1), ZeroUnits: UnitSet{}}
}

// Literal says whether every unit of a float tensor is {-a, 0, +a}, for units of
// several sizes.
type Literal struct {
	Unit   int64   // the largest size asked about of which every unit is ternary, in elements; 0: none
	Tested int64   // the smallest size asked about, which Units and BadUnits count
	Units  int64   //
	Zeros  int64   // of both signs
	Minus  int64   // negative elements that are not zero
	Count  int64   // elements
	Min    float64 // the least and the largest magnitude of good units; both 0 without any
	Max    float64

	BadUnits      int64
	FirstBad      int64  // element index, valid when BadUnits > 0
	First, Second uint64 // magnitudes' bits at FirstBad: the unit's and the other one
	Near          bool   // the magnitudes of every bad unit are within 2^-7 of each other
}

// UnitSet is a set of scale unit indexes. Its memory follows the places where
// units are: a page of 4096 units exists once one of them is in the set.
type UnitSet map[int64]*[64]uint64

func (s UnitSet) add(unit int64) {
	page := s[unit>>12]
	if page == nil {
		page = new([64]uint64)
		s[unit>>12] = page
	}
	page[unit>>6&63] |= 1 << (unit & 63)
}

func (s UnitSet) has(unit int64) bool {
	page := s[unit>>12]
	return page != nil && page[unit>>6&63]>>(unit&63)&1 == 1
}

// MissingFrom returns how many units of s are not in other, and the least.
func (s UnitSet) MissingFrom(other UnitSet) (count, first int64) {
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

// Size returns how many units are in the set.
func (s UnitSet) Size() int64 {
	n, _ := s.MissingFrom(nil)
	return n
}
