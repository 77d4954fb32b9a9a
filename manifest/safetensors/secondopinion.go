package safetensors

import (
	"bytes"
	"fmt"

	"github.com/nlpodyssey/safetensors"
)

// Verdict is what a second, independent reader says about a header.
type Verdict uint8

// The verdicts. Only Refused speaks against a file.
const (
	NotAvailable Verdict = iota // the file's size could not be mapped here
	Accepted
	Refused
	CannotRead // the file is sound and has a dtype the second reader does not know
	TooLarge   // not asked: it would take seconds and gigabytes
)

// String returns the verdict in words.
func (v Verdict) String() string {
	switch v {
	case Accepted:
		return "accepted"
	case Refused:
		return "refused"
	case CannotRead:
		return "cannot read"
	case TooLarge:
		return "too large to ask"
	default:
		return "not available"
	}
}

// The second reader decodes into nested maps: about 6 us and 1.2 kB a tensor.
const (
	maxOpinionTensors = 100_000
	maxOpinionHeader  = 32 << 20 // bytes
)

// SecondOpinion asks github.com/nlpodyssey/safetensors about a file of
// fileSize bytes that begins with rawHeader, the 8+N bytes that ReadHeaderRaw
// returns. That reader wants the whole file in memory and looks at the header
// only, so it gets an address range of that size with the header in front and
// nothing behind; no data is read. The error is the second reader's reason for
// Refused, the system's for NotAvailable, and nil otherwise.
//
// It is the laxer reader: it lets duplicates and bad UTF-8 pass, so Accepted
// alone proves little. Whatever ReadHeader accepts it accepts too, if it knows
// the dtypes.
func SecondOpinion(rawHeader []byte, fileSize int64) (Verdict, error) {
	if fileSize < int64(len(rawHeader)) || len(rawHeader) < 8 {
		return Refused, fmt.Errorf("header of %d bytes in a file of %d", len(rawHeader), fileSize)
	}
	if len(rawHeader) > maxOpinionHeader {
		return TooLarge, nil
	}
	if h, err := ReadHeader(bytes.NewReader(rawHeader), fileSize); err == nil {
		if len(h.Tensors) > maxOpinionTensors {
			return TooLarge, nil
		}
		for _, t := range h.Tensors {
			if _, err := safetensors.ParseDType(t.DType.String()); err != nil {
				return CannotRead, nil
			}
		}
	}
	region, release, err := mapAnonymous(fileSize)
	if err != nil {
		return NotAvailable, fmt.Errorf("map %d bytes: %w", fileSize, err)
	}
	defer release()
	copy(region, rawHeader)
	if _, err := safetensors.Deserialize(region); err != nil {
		return Refused, err
	}
	return Accepted, nil
}
