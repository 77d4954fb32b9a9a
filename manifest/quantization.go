package manifest

import (
	"fmt"
	"maps"
	"slices"
)

// QuantizationPath is where the quantization manifest stands in a bundle.
const QuantizationPath = "quantization_manifest.json"

// The kinds of a quantization manifest's entries.
const (
	KindPacked2Bit = "packed_2bit" // ternary codes with scales
	KindLiteral    = "literal"     // floating-point values that are exactly ternary
	KindFloat      = "float"       // full precision
)

// Quantization is quantization_manifest.json: for each logical tensor of the
// model, how and where it is stored.
type Quantization struct {
	BaseModel    *string             `json:"base_model"`
	BaseRevision *string             `json:"base_revision"`
	Format       string              `json:"format,omitempty"`
	Tensors      map[string]Quantity `json:"tensors"`
}

// Quantity is one entry: a logical tensor of a kind and a shape (out, in, ...)
// and the stored tensors that hold it. File and Tensor locate a float or
// literal tensor; Codes and Scales locate a packed one, GroupSize inputs to a
// scale.
type Quantity struct {
	Codes     *StoredTensor `json:"codes,omitempty"`
	File      string        `json:"file,omitempty"`
	GroupSize int64         `json:"group_size,omitempty"`
	Kind      string        `json:"kind"`
	Scales    *StoredTensor `json:"scales,omitempty"`
	Shape     []int64       `json:"shape"`
	Tensor    string        `json:"tensor,omitempty"`
}

// StoredTensor names a tensor of a safetensors file.
type StoredTensor struct {
	File   string `json:"file"`
	Tensor string `json:"tensor"`
}

// Names returns the logical tensors' names in byte order.
func (q Quantization) Names() []string { return slices.Sorted(maps.Keys(q.Tensors)) }

// Encode writes the canonical bytes.
func (q Quantization) Encode() ([]byte, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	return EncodeLines(q)
}

// DecodeQuantization reads a quantization manifest, strictly.
func DecodeQuantization(data []byte) (Quantization, error) {
	var q Quantization
	if err := DecodeStrict(data, &q); err != nil {
		return Quantization{}, err
	}
	return q, q.check()
}

func (q Quantization) check() error {
	if len(q.Tensors) == 0 {
		return fmt.Errorf("tensors is empty")
	}
	for _, name := range q.Names() {
		if err := q.Tensors[name].check(); err != nil {
			return fmt.Errorf("tensor %q: %w", Clip(name), err)
		}
	}
	return nil
}

func (e Quantity) check() error {
	for _, dimension := range e.Shape {
		if dimension < 0 {
			return fmt.Errorf("shape %v has a negative dimension", e.Shape)
		}
	}
	switch e.Kind {
	case KindPacked2Bit:
		switch {
		case e.Codes == nil || e.Scales == nil:
			return fmt.Errorf("kind %s needs codes and scales", e.Kind)
		case e.File != "" || e.Tensor != "":
			return fmt.Errorf("kind %s takes codes and scales, not file and tensor", e.Kind)
		case e.GroupSize <= 0:
			return fmt.Errorf("group_size %d is not positive", e.GroupSize)
		case len(e.Shape) == 0:
			return fmt.Errorf("kind %s needs a shape", e.Kind)
		}
		if err := e.Codes.check(); err != nil {
			return fmt.Errorf("codes: %w", err)
		}
		if err := e.Scales.check(); err != nil {
			return fmt.Errorf("scales: %w", err)
		}
	case KindFloat, KindLiteral:
		switch {
		case e.Codes != nil || e.Scales != nil:
			return fmt.Errorf("kind %s takes file and tensor, not codes and scales", e.Kind)
		case e.Kind == KindFloat && e.GroupSize != 0:
			return fmt.Errorf("kind %s takes no group_size", e.Kind)
		}
		return StoredTensor{e.File, e.Tensor}.check()
	default:
		return fmt.Errorf("kind %q is not %s, %s or %s", Clip(e.Kind), KindPacked2Bit, KindLiteral, KindFloat)
	}
	return nil
}

func (s StoredTensor) check() error {
	if s.Tensor == "" {
		return fmt.Errorf("tensor is empty")
	}
	return CheckPath(s.File)
}

// Stored lists the stored tensors that an entry refers to.
func (e Quantity) Stored() []StoredTensor {
	if e.Kind == KindPacked2Bit {
		return []StoredTensor{*e.Codes, *e.Scales}
	}
	return []StoredTensor{{e.File, e.Tensor}}
}
