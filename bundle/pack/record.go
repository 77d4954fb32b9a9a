package pack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path"
	"unicode/utf8"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// RecordPath is the file beside packed weights that tells Undo what they were.
const RecordPath = "pack.json"

// record is pack.json. What it does not hold is in the packed files: every
// value is.
type record struct {
	Schema  int               `json:"schema"`  // 1
	Files   []File            `json:"files"`   // the packed shards, with their digests
	Shards  []originalShard   `json:"shards"`  // what they were made of, by name
	Dropped map[string]string `json:"dropped"` // head left out, to the embedding that it repeats

	// Documents are the files that the packed folder has otherwise or not at all.
	Documents map[string]string `json:"documents"`

	NegativeZeros int64 `json:"negative_zeros"` // values that come back as +0
}

// File is a shard that was written.
type File struct {
	Name   string          `json:"name"`
	Size   int64           `json:"size"` // bytes
	Digest manifest.Digest `json:"digest"`
}

// originalShard is a shard before it was packed.
type originalShard struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`   // bytes
	Header string `json:"header"` // its JSON, white space and padding included
}

func newRecord(c *Checkpoint, s *Survey, files []File) (*record, error) {
	r := &record{Schema: 1, Files: files, Shards: []originalShard{}, Dropped: s.Dropped, Documents: map[string]string{}}
	for _, source := range c.Sources {
		r.Shards = append(r.Shards, originalShard{source.Name(), source.Header.FileSize, string(source.raw[8:])})
	}
	for name, data := range c.documents {
		if !utf8.Valid(data) {
			return nil, fmt.Errorf("%s is not valid UTF-8", path.Join(c.Folder, name))
		}
		r.Documents[name] = string(data)
	}
	for _, found := range s.Ternary {
		r.NegativeZeros += found.NegativeZeros
	}
	return r, nil
}

// decodeRecord reads pack.json, strictly.
func decodeRecord(data []byte) (*record, error) {
	var r record
	if err := manifest.DecodeStrict(data, &r); err != nil {
		return nil, err
	}
	if r.Schema != 1 {
		return nil, fmt.Errorf("schema %d is not 1", r.Schema)
	}
	if len(r.Shards) == 0 {
		return nil, fmt.Errorf("shards is empty")
	}
	for _, s := range r.Shards {
		if err := checkName(s.Name); err != nil {
			return nil, err
		}
		if path.Ext(s.Name) != shardEnding {
			return nil, fmt.Errorf("shard %q is no %s file", manifest.Clip(s.Name), shardEnding)
		}
	}
	for name := range r.Documents {
		if name != safetensors.IndexName && name != manifest.QuantizationPath && name != RecordPath {
			return nil, fmt.Errorf("document %q is none that packing replaces", manifest.Clip(name))
		}
	}
	return &r, nil
}

// checkName demands one element of a path.
func checkName(name string) error {
	if err := manifest.CheckPath(name); err != nil {
		return err
	}
	if path.Base(name) != name {
		return fmt.Errorf("%q is in a folder", manifest.Clip(name))
	}
	return nil
}

// header returns the original header, checked.
func (s originalShard) header() (*safetensors.Header, []byte, error) {
	raw := binary.LittleEndian.AppendUint64(nil, uint64(len(s.Header)))
	raw = append(raw, s.Header...)
	h, err := safetensors.ReadHeader(bytes.NewReader(raw), s.Size)
	if err != nil {
		return nil, nil, fmt.Errorf("header of %s: %w", s.Name, err)
	}
	return h, raw, nil
}
