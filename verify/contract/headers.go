package contract

import (
	"bytes"
	"io"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// readHeader reads the header of a shard of size bytes. A file that ends where
// its header does is a header alone: alone says so, and FileSize is that of the
// file it was cut from.
func readHeader(source io.Reader, size int64) (header *safetensors.Header, alone bool, err error) {
	header, raw, err := safetensors.ReadHeaderRaw(source, size)
	if err == nil || int64(len(raw)) != size {
		return header, false, err
	}
	whole, fault := safetensors.ReadHeader(bytes.NewReader(raw), size+dataEnd(raw[8:]))
	if fault != nil {
		return nil, false, err
	}
	return whole, true, nil
}

// dataEnd returns where the tensors that a header's JSON lists end, relative to
// the header. Whether they may is the strict reader's to say.
func dataEnd(text []byte) (end int64) {
	var tensors map[string]struct {
		Offsets []int64 `json:"data_offsets"`
	}
	if manifest.DecodeLoose(bytes.TrimRight(text, " "), &tensors) != nil {
		return 0
	}
	const most = 1 << 60
	for _, t := range tensors {
		for _, at := range t.Offsets {
			end = max(end, min(at, most))
		}
	}
	return end
}
