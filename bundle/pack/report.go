package pack

import (
	"maps"
	"slices"
)

// Report says what packing did. Lists are sorted by name.
type Report struct {
	Packed        []PackedTensor  `json:"packed"`
	Kept          []KeptTensor    `json:"kept"`
	Dropped       []DroppedTensor `json:"dropped"`
	NegativeZeros int64           `json:"negative_zeros"` // values whose sign was lost
	BytesBefore   int64           `json:"bytes_before"`   // of shards
	BytesAfter    int64           `json:"bytes_after"`
	Files         []File          `json:"files"`              // the shards written
	LeftOut       []string        `json:"left_out,omitempty"` // files, and folders with a slash, that were not copied
	Notes         []string        `json:"notes,omitempty"`
}

// PackedTensor is a tensor that was packed.
type PackedTensor struct {
	Name string `json:"name"`
	Unit
	ScaleDType    string `json:"scale_dtype"`
	Elements      int64  `json:"elements"`
	NegativeZeros int64  `json:"negative_zeros"`
}

// KeptTensor is a tensor that stayed as it was, byte for byte, and why.
type KeptTensor struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// DroppedTensor is a tensor that repeats another.
type DroppedTensor struct {
	Name   string `json:"name"`
	SameAs string `json:"same_as"`
	Bytes  int64  `json:"bytes"` // saved
}

func newReport(c *Checkpoint, s *Survey, out *Output, files []File) *Report {
	r := &Report{Packed: []PackedTensor{}, Kept: []KeptTensor{}, Dropped: []DroppedTensor{}, Files: files,
		Notes: append(slices.Clone(c.Warnings), out.Notes...)}
	for _, h := range c.tensors() {
		if found, ok := s.Ternary[h.Name]; ok {
			r.Packed = append(r.Packed, PackedTensor{h.Name, found.Unit, h.DType.String(), h.Elements(), found.NegativeZeros})
			r.NegativeZeros += found.NegativeZeros
		}
		if same, ok := s.Dropped[h.Name]; ok {
			r.Dropped = append(r.Dropped, DroppedTensor{h.Name, same, h.Bytes()})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Kept)) {
		r.Kept = append(r.Kept, KeptTensor{name, s.Kept[name]})
	}
	for _, source := range c.Sources {
		r.BytesBefore += source.Header.FileSize
	}
	for _, f := range files {
		r.BytesAfter += f.Size
	}
	return r
}
