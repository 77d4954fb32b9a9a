package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// Limits of a header. MaxHeaderSize is the format's; the others keep data from
// hiding outside the tensors and are far above what published models use.
const (
	MaxHeaderSize = 100_000_000 // bytes of JSON
	MaxTensors    = 200_000
	MaxMetadata   = 1 << 20 // bytes of keys and values of __metadata__, decoded
	MaxPadding    = 1 << 20 // spaces after the JSON
	MaxRank       = 64      // dimensions of a tensor
)

// maxUnquoted is how many bytes of a header may lie between two quotation marks:
// the longest metadata, of which an escape takes six bytes for one, and padding.
const maxUnquoted = 6*MaxMetadata + MaxPadding

const metadataKey = "__metadata__"

// Tensor is one entry of a header. Begin and End are byte offsets within the
// data section.
type Tensor struct {
	Name       string
	DType      DType
	Shape      []int64 // empty for a scalar
	Begin, End int64
}

// Elements returns the product of the shape: 1 for a scalar, 0 for an empty
// tensor.
func (t Tensor) Elements() int64 {
	elements := int64(1)
	for _, dim := range t.Shape {
		elements *= dim
	}
	return elements
}

// Bytes returns the length of the tensor's data, End-Begin.
func (t Tensor) Bytes() int64 { return t.End - t.Begin }

// Header is the checked header of one file. It comes from ReadHeader and its
// relatives, is not changed afterwards, and is safe for concurrent use.
type Header struct {
	Tensors   []Tensor          // by offset; empty tensors first at their boundary, then by name
	Metadata  map[string]string // __metadata__, nil where there is none
	DataStart int64             // offset of the data section in the file, 8+N
	FileSize  int64             // bytes

	byName map[string]int32 // index in Tensors
}

// Lookup returns the tensor of that exact name.
func (h *Header) Lookup(name string) (Tensor, bool) {
	i, ok := h.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return h.Tensors[i], true
}

// ReadHeader reads and checks the header of a file of fileSize bytes that
// begins at r. It consumes the header and nothing after it, so r may be a
// stream whose data follows. Memory follows the bytes that arrive, not the
// length that the file claims. Violations of the format are *Error.
func ReadHeader(r io.Reader, fileSize int64) (*Header, error) {
	h, _, err := ReadHeaderRaw(r, fileSize)
	return h, err
}

// ReadHeaderAt is ReadHeader for a file that is open for random access.
func ReadHeaderAt(r io.ReaderAt, fileSize int64) (*Header, error) {
	return ReadHeader(io.NewSectionReader(r, 0, fileSize), fileSize)
}

// ReadHeaderRaw is ReadHeader and returns the 8+N header bytes too, which
// SecondOpinion takes. They are returned with every error that was found after
// the whole header was read; the Header does not refer to them.
func ReadHeaderRaw(r io.Reader, fileSize int64) (*Header, []byte, error) {
	raw, err := readRaw(r, fileSize)
	if err != nil {
		return nil, nil, err
	}
	h, err := parseHeader(raw, fileSize)
	return h, raw, err
}

// readRaw returns the length prefix and the JSON, 8+N bytes (rule S1). It ends
// early where what was read cannot be a header's (rule S2).
func readRaw(r io.Reader, fileSize int64) ([]byte, error) {
	if fileSize < 8 {
		return nil, fault("S1", "", "file of %d bytes is shorter than the 8-byte length prefix", fileSize)
	}
	var prefix [8]byte
	if n, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, shortRead(int64(n), 8, err)
	}
	claimed := binary.LittleEndian.Uint64(prefix[:])
	if claimed > MaxHeaderSize {
		return nil, fault("S1", "", "header length %d exceeds %d", claimed, MaxHeaderSize)
	}
	size := 8 + int64(claimed)
	if size > fileSize {
		return nil, fault("S1", "", "header length %d exceeds the file, which has %d bytes after the length prefix", claimed, fileSize-8)
	}
	raw := append(make([]byte, 0, min(size, 1<<20)), prefix[:]...)
	for int64(len(raw)) < size {
		if len(raw) == cap(raw) { // all bytes so far were really there: trust the claim a little more
			raw = append(make([]byte, 0, min(size, 4*int64(cap(raw)))), raw...)
		}
		n, err := io.ReadFull(r, raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		if err != nil {
			return nil, shortRead(int64(len(raw)), size, err)
		}
		if quoted := bytes.LastIndexByte(raw, '"') + 1; len(raw)-quoted > maxUnquoted {
			return nil, fault("S2", "", "more than %d bytes without a quotation mark follow byte %d", maxUnquoted, quoted)
		}
	}
	return raw, nil
}

func shortRead(got, want int64, cause error) error {
	if cause == io.EOF {
		cause = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("header ends after %d of %d bytes: %w", got, want, cause)
}

// parseHeader checks the 8+N bytes of raw (rules S2 to S8).
func parseHeader(raw []byte, fileSize int64) (*Header, error) {
	p, err := parseJSON(raw[8:])
	if err != nil {
		return nil, err
	}
	h := &Header{
		Tensors:   p.tensors,
		Metadata:  p.metadata,
		DataStart: int64(len(raw)),
		FileSize:  fileSize,
		byName:    p.byName,
	}
	h.sort()
	if err := h.checkOffsets(); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *Header) sort() {
	order := func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), cmp.Compare(a.Name, b.Name))
	}
	if slices.IsSortedFunc(h.Tensors, order) {
		return
	}
	slices.SortFunc(h.Tensors, order)
	for i, t := range h.Tensors {
		h.byName[t.Name] = int32(i)
	}
}

// checkOffsets holds the sorted tensors against the data section: no overlap,
// no hole, no tail (rule S5).
func (h *Header) checkOffsets() error {
	end := int64(0)
	for i, t := range h.Tensors {
		switch {
		case t.Begin < end:
			return fault("S5", t.Name, "offsets [%d,%d] overlap tensor %s, which ends at %d", t.Begin, t.End, quote(h.Tensors[i-1].Name), end)
		case t.Begin > end:
			return fault("S5", t.Name, "offsets [%d,%d] leave a hole of %d bytes before it", t.Begin, t.End, t.Begin-end)
		}
		end = t.End
	}
	data := h.FileSize - h.DataStart
	switch {
	case end < data:
		return fault("S5", "", "%d bytes follow the last tensor", data-end)
	case end > data:
		last := h.Tensors[len(h.Tensors)-1].Name
		return fault("S5", last, "data ends at %d, the file %d bytes earlier", end, end-data)
	}
	return nil
}
