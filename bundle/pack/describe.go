package pack

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// describe writes the documents that say which tensor lies where.
func (a *arrangement) describe() error {
	declared, err := a.checkpoint.declarations()
	if err != nil {
		return err
	}
	if a.options.Ternary {
		a.describePacked(declared)
		return nil
	}
	if a.checkpoint.Quantization != nil {
		a.moveQuantization()
	}
	if len(a.Shards) > 1 || a.checkpoint.Index != nil {
		return a.writeIndex()
	}
	return nil
}

// describePacked makes the quantization manifest of a packed checkpoint: one
// entry a tensor.
func (a *arrangement) describePacked(declared map[string]declaration) {
	q := &manifest.Quantization{Format: packedText, Tensors: map[string]manifest.Quantity{}}
	if before := a.checkpoint.Quantization; before != nil {
		q.BaseModel, q.BaseRevision = before.BaseModel, before.BaseRevision
	}
	for _, h := range a.stored() {
		d, known := declared[h.Name]
		if !known {
			d = declaration{h.Name, manifest.Quantity{Kind: manifest.KindFloat, Shape: h.Shape, Tensor: h.Name}}
		}
		if found, ok := a.survey.Ternary[h.Name]; ok {
			d.entry = manifest.Quantity{Kind: manifest.KindPacked2Bit, Shape: h.Shape, ScaleDType: h.DType.String(), GroupSize: found.Unit.Group,
				Codes:  &manifest.StoredTensor{File: a.at[h.Name+codesEnding], Tensor: h.Name + codesEnding},
				Scales: &manifest.StoredTensor{File: a.at[h.Name+scalesEnding], Tensor: h.Name + scalesEnding}}
			if found.Unit.Kind != manifest.UnitGroup {
				d.entry.Unit = found.Unit.Kind
			}
		} else {
			d.entry.File = a.at[h.Name]
		}
		if d.entry.Shape == nil { // a scalar's
			d.entry.Shape = []int64{}
		}
		q.Tensors[d.logical] = d.entry
	}
	a.Quantization = q
}

// moveQuantization points the entries of a quantization manifest to the files
// that hold their tensors now; the entry of a dropped head goes.
func (a *arrangement) moveQuantization() {
	q := *a.checkpoint.Quantization
	q.Tensors = maps.Clone(q.Tensors)
	move := func(s *manifest.StoredTensor) *manifest.StoredTensor {
		if s == nil {
			return nil
		}
		return &manifest.StoredTensor{File: a.at[s.Tensor], Tensor: s.Tensor}
	}
	for name, e := range q.Tensors {
		if e.Kind != manifest.KindPacked2Bit {
			if a.survey.Dropped[e.Tensor] != "" {
				delete(q.Tensors, name)
				continue
			}
			e.File = a.at[e.Tensor]
		}
		e.Codes, e.Scales, e.Biases = move(e.Codes), move(e.Scales), move(e.Biases)
		q.Tensors[name] = e
	}
	a.Quantization = &q
}

// QuantizationBelow returns the quantization manifest with the shards in a
// folder, a slash path relative to where the manifest stands.
func (o *Output) QuantizationBelow(folder string) manifest.Quantization {
	q := *o.Quantization
	q.Tensors = maps.Clone(q.Tensors)
	for name, e := range q.Tensors {
		if e.File != "" {
			e.File = path.Join(folder, e.File)
		}
		for _, part := range []**manifest.StoredTensor{&e.Codes, &e.Scales, &e.Biases} {
			if *part != nil {
				*part = &manifest.StoredTensor{File: path.Join(folder, (*part).File), Tensor: (*part).Tensor}
			}
		}
		q.Tensors[name] = e
	}
	return q
}

// writeIndex makes the index of the shards; what else the checkpoint's own said
// of itself stays.
func (a *arrangement) writeIndex() error {
	var total int64
	for _, h := range a.stored() {
		total += h.Bytes()
	}
	metadata := map[string]json.RawMessage{}
	if a.checkpoint.Index != nil {
		maps.Copy(metadata, a.checkpoint.Index.Metadata)
	}
	metadata["total_size"] = json.RawMessage(fmt.Sprint(total))
	data, err := manifest.EncodeLines(struct {
		Metadata  map[string]json.RawMessage `json:"metadata"`
		WeightMap map[string]string          `json:"weight_map"`
	}{metadata, a.at})
	if err != nil {
		return fmt.Errorf("write %s: %w", safetensors.IndexName, err)
	}
	a.Index = data
	return nil
}
