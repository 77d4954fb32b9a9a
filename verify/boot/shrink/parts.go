package shrink

import (
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/ternary"
)

// part is what a stored tensor holds of a logical one.
type part struct {
	kind    string // of the quantization manifest, or below
	logical string
	entry   manifest.Quantity // of the quantization manifest
}

// Kinds of parts beside the manifest's.
const (
	partCodes  = "codes"
	partScales = "scales"
	partBiases = "biases"
)

// units are what widths stay multiples of, in a text model and in a vision encoder:
// the least common multiples of their groups and blocks of scales.
type units struct{ text, vision int64 }

// readParts reads the quantization manifest: what each stored tensor that it names
// holds.
func (s *submission) readParts() (u units, err error) {
	s.parts, u = map[manifest.StoredTensor]part{}, units{8, 8} // eight codes are two bytes
	add := func(logical string, group int64) {
		if p, _ := placeOf(logical); p.vision {
			u.vision = multiple(u.vision, group)
		} else {
			u.text = multiple(u.text, group)
		}
	}
	for _, name := range s.quantization.Names() {
		entry := s.quantization.Tensors[name]
		kinds := []string{entry.Kind}
		if entry.Kind == manifest.KindPacked2Bit {
			kinds = []string{partCodes, partScales, partBiases}
			add(name, 16) // codes of a word
		}
		if last := len(entry.Shape) - 1; last >= 0 && entry.GroupSize > 0 && entry.GroupSize < entry.Shape[last] {
			add(name, entry.GroupSize)
		}
		for i, reference := range entry.Stored() {
			file, err := s.shardOf(reference)
			if err != nil {
				return u, err
			}
			s.parts[manifest.StoredTensor{File: file, Tensor: reference.Tensor}] = part{kinds[i], name, entry}
		}
	}
	for _, shard := range s.shards {
		for _, t := range shard.header.Tensors {
			if p := s.partOf(shard.path, t.Name); p.kind == scaleSuffix && s.model.block != nil {
				add(p.logical, multiple(s.model.block[0], s.model.block[1]))
			}
		}
	}
	const largest = 1 << 12
	if most := max(u.text, u.vision); most > largest {
		return u, unshrinkable("its groups of scales have %d as common multiple, more than %d", most, largest)
	}
	return u, nil
}

// multiple returns the least common multiple, at most 1<<30.
func multiple(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return min(a/x*min(b, 1<<30), 1<<30)
}

// partOf returns what a stored tensor holds. One that the manifest does not list
// is a whole tensor of its name, or the scales of one in block FP8.
func (s *submission) partOf(file, name string) part {
	if p, listed := s.parts[manifest.StoredTensor{File: file, Tensor: name}]; listed {
		return p
	}
	if base, isScale := strings.CutSuffix(name, scaleSuffix); isScale {
		return part{kind: scaleSuffix, logical: base}
	}
	return part{kind: manifest.KindFloat, logical: name}
}

// seed returns what the values of a stored tensor of that name are drawn by: its
// name, and for biases that of the scales, of which they are the negatives.
func (p part) seed(name string) string {
	if p.kind == partBiases {
		return p.entry.Scales.Tensor
	}
	return name
}

// stored returns the shape of the stored tensor that holds a part of a logical one
// of that shape.
func (s *submission) stored(p part, shape []int64) ([]int64, error) {
	switch p.kind {
	case partCodes, partScales, partBiases:
		layout, err := ternary.LayoutOf(narrowEntry(p.entry, shape))
		switch {
		case err != nil:
			return nil, unshrinkable("%w", err)
		case p.kind == partCodes:
			return layout.Codes.Shape, nil
		}
		return layout.Scales.Shape, nil // and those of the biases
	case scaleSuffix:
		if len(shape) != 2 || s.model.block == nil {
			return nil, unshrinkable("it is no scale of a matrix in block FP8, as quantization_config says")
		}
		up := func(n, block int64) int64 { return (n + block - 1) / block }
		return []int64{up(shape[0], s.model.block[0]), up(shape[1], s.model.block[1])}, nil
	}
	return shape, nil
}

// narrowEntry returns an entry of the quantization manifest for another shape. A
// group of a whole row stays one.
func narrowEntry(entry manifest.Quantity, shape []int64) manifest.Quantity {
	if last := len(entry.Shape) - 1; last >= 0 && entry.GroupSize >= entry.Shape[last] && len(shape) == len(entry.Shape) {
		entry.GroupSize = shape[last]
	}
	entry.Shape = shape
	return entry
}

// countLayers decides how many layers of the text model and of the vision encoder
// a twin keeps.
func (s *submission) countLayers() {
	names := map[bool]map[int64][]string{false: {}, true: {}}
	for _, shard := range s.shards {
		for _, t := range shard.header.Tensors {
			p, ok := placeOf(s.partOf(shard.path, t.Name).logical)
			if ok && p.layer >= 0 && !p.prediction {
				names[p.vision][p.layer] = append(names[p.vision][p.layer], p.formula)
			}
		}
	}
	m := s.model
	kinds := kindsOf(names[false])
	if list, given := m.textField("layer_types").([]any); given {
		for i, kind := range list {
			kinds[int64(i)] += fmt.Sprint(kind)
		}
	}
	m.keptLayers = kept(m.text["num_hidden_layers"], kinds)
	if m.vision == nil {
		return
	}
	kinds = kindsOf(names[true])
	if list, given := m.section("vision_config")["fullatt_block_indexes"].([]any); given {
		for _, index := range list {
			kinds[whole(index)] += "full"
		}
	}
	m.keptBlocks = kept(m.vision["depth"], kinds)
}

// narrow returns a logical tensor's shape in the real model and in a twin; nil in
// a twin that does not have it.
func (m *model) narrow(name string, to twinDimensions) (real, twin []int64, err error) {
	p, ok := placeOf(name)
	from, small, layers := m.text, to.text, "num_hidden_layers"
	if p.vision {
		from, small, layers = m.vision, to.vision, "depth"
	}
	switch {
	case !ok:
		return nil, nil, manifest.WithHint(unshrinkable("nothing tells its shape from config.json: no known architecture has a tensor of that name"),
			"twins have the tensors of Llama, Maple, Mistral, Qwen2, Qwen2.5-VL, Qwen3, Qwen3 with experts and Qwen3.5 under their published names: rename it, leave it out, or start the real model on a machine where it fits")
	case from == nil:
		return nil, nil, manifest.WithHint(unshrinkable("vision_config does not give the encoder's dimensions"),
			"write them into config.json: "+strings.Join(visionNeeded, ", "))
	case !p.prediction && p.layer >= from[layers]:
		return nil, nil, unshrinkable("it is of layer %d, %s is %d", p.layer, layers, from[layers])
	case p.expert >= from["num_experts"] && p.expert >= 0:
		return nil, nil, unshrinkable("it is of expert %d, num_experts is %d", p.expert, from["num_experts"])
	}
	if real, err = from.shape(p.formula); err != nil {
		return nil, nil, err
	}
	if !p.prediction && p.layer >= small[layers] || p.expert >= 0 && p.expert >= small["num_experts"] {
		return real, nil, nil
	}
	twin, err = small.shape(p.formula)
	return real, twin, err
}

// narrowTensor returns a stored tensor as the twin has it and what fills it; nil
// for one that the twin has not.
func (s *submission) narrowTensor(file string, t safetensors.Tensor, to twinDimensions) (safetensors.Tensor, fill, error) {
	p := s.partOf(file, t.Name)
	real, twin, err := s.model.narrow(p.logical, to)
	if err != nil {
		return t, nil, err
	}
	want, err := s.stored(p, real)
	switch {
	case err != nil:
		return t, nil, err
	case p.entry.Kind != "" && !slices.Equal(p.entry.Shape, real):
		return t, nil, unshrinkable("the quantization manifest gives it shape %v, config.json %v", p.entry.Shape, real)
	case !slices.Equal(t.Shape, want):
		return t, nil, unshrinkable("it has shape %v, config.json gives %v", t.Shape, want)
	case twin == nil:
		return t, nil, nil
	}
	if t.Shape, err = s.stored(p, twin); err != nil {
		return t, nil, err
	}
	fill, err := fillOf(p, t.DType, s.model.hybrid())
	return t, fill, err
}

// narrowManifest returns the quantization manifest of a twin.
func (s *submission) narrowManifest(to twinDimensions) (manifest.Quantization, error) {
	out := s.quantization
	out.Tensors = map[string]manifest.Quantity{}
	for name, entry := range s.quantization.Tensors {
		_, twin, err := s.model.narrow(name, to)
		switch {
		case err != nil:
			return out, fmt.Errorf("%s: tensor %q: %w", s.manifestPath, manifest.Clip(name), err)
		case twin != nil:
			out.Tensors[name] = narrowEntry(entry, twin)
		}
	}
	return out, nil
}
