package shrink

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// plan is a twin before its values exist.
type plan struct {
	to           dimensions
	shards       []twinShard
	quantization manifest.Quantization
	bytes        int64 // of the shards, headers included
}

type twinShard struct {
	path    string
	header  []byte
	tensors []safetensors.Tensor // laid out
	fills   []fill               // of each
}

// part is what a stored tensor holds of a logical one.
type part struct {
	kind    string // of the quantization manifest, or below
	logical string
	shape   []int64 // of the logical tensor
	group   int64   // inputs to a scale
}

// Kinds of parts beside the manifest's.
const (
	partCodes  = "codes"
	partScales = "scales"
)

// shrink plans the widest twin within the limit.
func (s *submission) shrink(limit int64) (*plan, error) {
	parts, unit, err := s.parts()
	if err != nil {
		return nil, err
	}
	smallest := int64(0)
	for width := int64(widest); width >= narrowest; width /= 2 {
		to := s.model.dimensions.narrowed(width, unit)
		p, err := s.plan(to, parts)
		if err != nil {
			return nil, err
		}
		if p.bytes <= limit {
			return p, nil
		}
		smallest = p.bytes
	}
	return nil, unshrinkable("the smallest twin has %d bytes of weights, more than %d", smallest, limit)
}

// parts reads the quantization manifest: what each stored tensor that it names
// holds, and the least common multiple of all groups.
func (s *submission) parts() (map[manifest.StoredTensor]part, int64, error) {
	parts, unit := map[manifest.StoredTensor]part{}, int64(8) // eight codes are two bytes
	if s.model.block != nil {
		unit = multiple(multiple(unit, s.model.block[0]), s.model.block[1])
	}
	add := func(reference manifest.StoredTensor, p part) error {
		file, err := s.shardOf(reference)
		parts[manifest.StoredTensor{File: file, Tensor: reference.Tensor}] = p
		return err
	}
	for _, name := range s.quantization.Names() {
		entry := s.quantization.Tensors[name]
		p := part{entry.Kind, name, entry.Shape, entry.GroupSize}
		if entry.Kind != manifest.KindPacked2Bit {
			if err := add(entry.Stored()[0], p); err != nil {
				return nil, 0, err
			}
			continue
		}
		if len(entry.Shape) != 2 {
			return nil, 0, unshrinkable("tensor %q is %s of shape %v, no matrix", manifest.Clip(name), entry.Kind, entry.Shape)
		}
		if entry.GroupSize < entry.Shape[1] {
			unit = multiple(unit, entry.GroupSize)
		}
		codes, scales := p, p
		codes.kind, scales.kind = partCodes, partScales
		if err := errors.Join(add(*entry.Codes, codes), add(*entry.Scales, scales)); err != nil {
			return nil, 0, err
		}
	}
	const largest = 1 << 12
	if unit > largest {
		return nil, 0, unshrinkable("its groups of scales have %d as common multiple, more than %d", unit, largest)
	}
	return parts, unit, nil
}

// multiple returns the least common multiple, at most 1<<30.
func multiple(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return min(a/x*min(b, 1<<30), 1<<30)
}

func (s *submission) plan(to dimensions, parts map[manifest.StoredTensor]part) (*plan, error) {
	p := &plan{to: to}
	for _, real := range s.shards {
		twin := twinShard{path: real.path}
		for _, tensor := range real.header.Tensors {
			small, fill, err := s.narrow(real.path, tensor, to, parts)
			if err != nil {
				return nil, fmt.Errorf("%s: tensor %q: %w", real.path, manifest.Clip(tensor.Name), err)
			}
			if fill != nil {
				twin.tensors, twin.fills = append(twin.tensors, small), append(twin.fills, fill)
			}
		}
		var err error
		if twin.tensors, err = safetensors.Layout(twin.tensors); err != nil {
			return nil, fmt.Errorf("%s: %w", real.path, err)
		}
		if twin.header, err = safetensors.EncodeHeader(twin.tensors, real.header.Metadata); err != nil {
			return nil, fmt.Errorf("%s: %w", real.path, err)
		}
		p.bytes += int64(len(twin.header))
		for _, tensor := range twin.tensors {
			p.bytes += tensor.Bytes()
		}
		p.shards = append(p.shards, twin)
	}
	p.quantization = s.narrowManifest(to)
	return p, nil
}

// narrow returns a stored tensor as the twin has it and what fills it; nil for
// one of a layer that the twin has not.
func (s *submission) narrow(file string, t safetensors.Tensor, to dimensions, parts map[manifest.StoredTensor]part) (safetensors.Tensor, fill, error) {
	from := s.model.dimensions
	p, listed := parts[manifest.StoredTensor{File: file, Tensor: t.Name}]
	if !listed {
		p = part{kind: manifest.KindFloat, logical: t.Name, shape: t.Shape}
		if base, scale := strings.CutSuffix(t.Name, scaleSuffix); scale {
			p = part{kind: scaleSuffix, logical: base, shape: from.shape(base)}
		}
	}
	if visual, ok := visualName(p.logical); ok {
		return narrowVisual(t, visual, to)
	}
	real := from.shape(p.logical)
	if real == nil {
		return t, nil, unshrinkable("the architecture has no such tensor")
	}
	if !slices.Equal(p.shape, real) || !slices.Equal(t.Shape, s.stored(p, real)) {
		return t, nil, unshrinkable("it has shape %v, config.json gives %v", t.Shape, s.stored(p, real))
	}
	small := to.shape(p.logical)
	if small == nil {
		return t, nil, nil
	}
	t.Shape = s.stored(p, small)
	fill, err := fillOf(p, t.DType, from.hybrid)
	return t, fill, err
}

// stored returns the shape of a stored tensor that holds a part of a logical one
// of that shape.
func (s *submission) stored(p part, shape []int64) []int64 {
	up := func(n, group int64) int64 { return (n + group - 1) / group }
	switch {
	case p.kind == partCodes:
		return []int64{shape[0], shape[1] / 4}
	case p.kind == partScales && p.group >= p.shape[1]: // one a row
		return []int64{shape[0], 1}
	case p.kind == partScales:
		return []int64{shape[0], up(shape[1], p.group)}
	case p.kind == scaleSuffix && len(shape) == 2 && s.model.block != nil:
		return []int64{up(shape[0], s.model.block[0]), up(shape[1], s.model.block[1])}
	}
	return shape
}

// visualName returns the part of a vision encoder's tensor name behind "visual.".
func visualName(name string) (string, bool) {
	return strings.CutPrefix(strings.TrimPrefix(name, "model."), "visual.")
}

// narrowVisual keeps a vision encoder as it is, but for its depth and the width
// of what it hands to the text model.
func narrowVisual(t safetensors.Tensor, name string, to dimensions) (safetensors.Tensor, fill, error) {
	var block int
	if n, err := fmt.Sscanf(name, "blocks.%d.", &block); n == 1 && err == nil && block >= visionBlocks {
		return t, nil, nil
	}
	if (name == "merger.linear_fc2.weight" || name == "merger.linear_fc2.bias") && len(t.Shape) > 0 {
		t.Shape = slices.Clone(t.Shape)
		t.Shape[0] = to.hidden
	}
	fill, err := fillOf(part{kind: manifest.KindFloat, logical: t.Name}, t.DType, false)
	return t, fill, err
}

// narrowManifest returns the quantization manifest of a twin.
func (s *submission) narrowManifest(to dimensions) manifest.Quantization {
	out := s.quantization
	out.Tensors = map[string]manifest.Quantity{}
	for name, entry := range s.quantization.Tensors {
		if visual, ok := visualName(name); ok {
			t, fill, err := narrowVisual(safetensors.Tensor{Name: name, Shape: entry.Shape, DType: safetensors.BF16}, visual, to)
			if err == nil && fill != nil {
				entry.Shape = t.Shape
				out.Tensors[name] = entry
			}
			continue
		}
		small := to.shape(name)
		if small == nil {
			continue
		}
		if entry.Kind == manifest.KindPacked2Bit && entry.GroupSize >= entry.Shape[1] {
			entry.GroupSize = small[1]
		}
		entry.Shape = small
		out.Tensors[name] = entry
	}
	return out
}

// indexOf returns the index of a twin's shards in the folder of the given path.
func (p *plan) indexOf(indexPath string, real *safetensors.Index) any {
	weights, total := map[string]string{}, int64(0)
	for _, s := range p.shards {
		for _, t := range s.tensors {
			if real.WeightMap[t.Name] == path.Base(s.path) && path.Dir(s.path) == path.Dir(indexPath) {
				weights[t.Name] = path.Base(s.path)
				total += t.Bytes()
			}
		}
	}
	metadata := map[string]any{"total_size": total}
	for key, value := range real.Metadata {
		metadata[key] = value
	}
	return map[string]any{"metadata": metadata, "weight_map": weights}
}
