// Package packtest makes checkpoints for tests of packing.
package packtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// Dense writes the packed checkpoint of the folder from densely into the folder
// to: one shard, model.safetensors, in which packed tensors are F16, every value
// exact. Configuration and tokenizer are copied. Packed tensors must be of kind
// packed_2bit with F16 scales in groups. The decoder is the plainest there is: it
// shares nothing with what it tests.
func Dense(from, to string) error {
	data, err := os.ReadFile(filepath.Join(from, manifest.QuantizationPath))
	if err != nil {
		return err
	}
	q, err := manifest.DecodeQuantization(data)
	if err != nil {
		return err
	}
	var tensors []safetensors.Tensor
	var values bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(q.Tensors)) {
		e := q.Tensors[name]
		t, data, err := dense(from, name, e)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		tensors = append(tensors, t)
		values.Write(data)
	}
	header, err := safetensors.EncodeHeader(tensors, map[string]string{"format": "pt"})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, "model.safetensors"), append(header, values.Bytes()...), 0o644); err != nil {
		return err
	}
	for _, name := range []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func dense(folder, name string, e manifest.Quantity) (safetensors.Tensor, []byte, error) {
	if e.Kind != manifest.KindPacked2Bit {
		t, data, err := Read(folder, manifest.StoredTensor{File: e.File, Tensor: e.Tensor})
		t.Name = name
		return t, data, err
	}
	_, codes, err := Read(folder, *e.Codes)
	if err != nil {
		return safetensors.Tensor{}, nil, err
	}
	_, scales, err := Read(folder, *e.Scales)
	if err != nil {
		return safetensors.Tensor{}, nil, err
	}
	t := safetensors.Tensor{Name: name, DType: safetensors.F16, Shape: e.Shape}
	var values []byte
	for i := range t.Elements() {
		v := binary.LittleEndian.Uint16(scales[2*(i/e.GroupSize):])
		switch codes[i/4] >> (2 * (i % 4)) & 3 {
		case 0:
			v |= 0x8000 // minus
		case 1:
			v = 0
		}
		values = binary.LittleEndian.AppendUint16(values, v)
	}
	return t, values, nil
}

// Read returns a stored tensor and its bytes.
func Read(folder string, s manifest.StoredTensor) (safetensors.Tensor, []byte, error) {
	data, err := os.ReadFile(filepath.Join(folder, s.File))
	if err != nil {
		return safetensors.Tensor{}, nil, err
	}
	h, err := safetensors.ReadHeader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return safetensors.Tensor{}, nil, err
	}
	t, ok := h.Lookup(s.Tensor)
	if !ok {
		return t, nil, fmt.Errorf("%s has no tensor %q", s.File, s.Tensor)
	}
	return t, data[h.DataStart+t.Begin : h.DataStart+t.End], nil
}
