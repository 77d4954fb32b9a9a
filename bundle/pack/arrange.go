package pack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// Output is what a checkpoint becomes.
type Output struct {
	Shards       []*Shard
	Quantization *manifest.Quantization // nil: none
	Index        []byte                 // of model.safetensors.index.json; nil: none
	Notes        []string
}

// packedText describes the packing in a quantization manifest.
const packedText = "packed_2bit: U8, four codes a byte, lowest bits first along the input axis; value = (code - 1) * scale"

// The endings of a packed tensor's two stored ones.
const (
	codesEnding  = ".codes"
	scalesEnding = ".scales"
)

// Arrange decides which tensor goes into which file. It reads nothing: equal
// arguments give equal results. Where nothing is to be done the shards are those
// of the checkpoint, unchanged.
func Arrange(c *Checkpoint, s *Survey, options Options) (*Output, error) {
	a := &arrangement{checkpoint: c, survey: s, options: options, at: map[string]string{}}
	var err error
	switch {
	case options.Ternary:
		err = a.ternary()
	case a.tooLarge():
		err = a.plain()
	default:
		err = a.keep()
	}
	if err != nil {
		return nil, err
	}
	if err := a.describe(); err != nil {
		return nil, err
	}
	a.Notes = append(a.Notes, s.Notes...)
	return &a.Output, nil
}

type arrangement struct {
	Output
	checkpoint *Checkpoint
	survey     *Survey
	options    Options
	at         map[string]string // the file of each stored tensor of the output
}

// item is what may not be torn apart: a tensor, or codes with their scales.
type item struct {
	name     string
	sections []section
}

func (i item) bytes() int64 {
	var n int64
	for _, s := range i.sections {
		size, _ := sizeOf(s.tensor) // a type and shape that a header had
		n += size
	}
	return n
}

func sizeOf(t safetensors.Tensor) (int64, error) {
	placed, err := safetensors.Layout([]safetensors.Tensor{t})
	if err != nil {
		return 0, err
	}
	return placed[0].Bytes(), nil
}

// weight is at least the bytes that an item adds to a file, header included.
func (i item) weight() (int64, error) {
	n := i.bytes()
	for _, s := range i.sections {
		header, err := safetensors.EncodeHeader([]safetensors.Tensor{s.tensor}, nil)
		if err != nil {
			return 0, err
		}
		const offsets = 40 // digits of two offsets in a large file
		n += int64(len(header)) + offsets
	}
	return n, nil
}

func copyOf(h held) section { return section{tensor: h.Tensor, form: copied, from: h.place()} }

// ternary arranges packed tensors and the others in files of their own.
func (a *arrangement) ternary() error {
	var packed, others []item
	taken := map[string]bool{}
	for _, h := range a.stored() {
		found, ok := a.survey.Ternary[h.Name]
		if !ok {
			others = append(others, item{h.Name, []section{copyOf(h)}})
			taken[h.Name] = true
			continue
		}
		packed = append(packed, item{h.Name, packedSections(h, found.Unit)})
	}
	for _, i := range packed {
		for _, s := range i.sections {
			if taken[s.tensor.Name] {
				return fmt.Errorf("tensor %q is stored already, and is the name of a part of %q", s.tensor.Name, i.name)
			}
		}
	}
	// Codes whose bytes would leave what follows unaligned come last.
	slices.SortStableFunc(packed, func(a, b item) int { return cmp.Compare(odd(a), odd(b)) })
	sortPlain(others)
	if err := a.cut(packed, nil, func(i, _ int) string { return fmt.Sprintf("ternary-%05d.safetensors", i) }); err != nil {
		return err
	}
	return a.cut(others, a.checkpoint.metadata(), func(i, _ int) string { return fmt.Sprintf("float-%05d.safetensors", i) })
}

// stored lists the tensors that are not dropped, by name.
func (a *arrangement) stored() []held {
	return slices.DeleteFunc(a.checkpoint.tensors(), func(h held) bool { return a.survey.Dropped[h.Name] != "" })
}

func odd(i item) int {
	if i.bytes()%8 != 0 {
		return 1
	}
	return 0
}

// sortPlain orders tensors as the format's own writer does: the widest types
// first, so that all are aligned, then by name.
func sortPlain(items []item) {
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(-cmp.Compare(a.sections[0].tensor.DType.Bits(), b.sections[0].tensor.DType.Bits()), strings.Compare(a.name, b.name))
	})
}

// packedSections are scales and codes: the scales come first, so that whoever
// reads the file from start to end knows them when the codes come.
func packedSections(h held, unit Unit) []section {
	f, _ := floatsOf(h.DType)
	m := matrixOf(h.Tensor)
	base := section{from: h.place(), floats: f, matrix: m, unit: unit}
	s, c := base, base
	last := len(h.Shape) - 1
	s.form, s.tensor = scales, safetensors.Tensor{Name: h.Name + scalesEnding, DType: h.DType, Shape: slices.Clone(h.Shape)}
	s.tensor.Shape[last] = m.inputs / min(m.inputs, unit.size(m))
	if unit.Kind == manifest.UnitTensor {
		s.tensor.Shape = []int64{1}
	}
	c.form, c.tensor = codes, safetensors.Tensor{Name: h.Name + codesEnding, DType: safetensors.U8, Shape: slices.Clone(h.Shape)}
	c.tensor.Shape[last] = m.inputs / 4
	return []section{s, c}
}

func (a *arrangement) tooLarge() bool {
	return a.options.MaxShard > 0 && slices.ContainsFunc(a.checkpoint.Sources, func(s *Source) bool { return s.Header.FileSize > a.options.MaxShard })
}

// plain cuts all tensors anew.
func (a *arrangement) plain() error {
	var items []item
	for _, h := range a.stored() {
		items = append(items, item{h.Name, []section{copyOf(h)}})
	}
	sortPlain(items)
	return a.cut(items, a.checkpoint.metadata(), func(i, of int) string {
		if of == 1 {
			return "model.safetensors"
		}
		return fmt.Sprintf("model-%05d-of-%05d.safetensors", i, of)
	})
}

// keep leaves shards as they are, but for a head that is dropped: an unchanged
// file can be proved to be the base's.
func (a *arrangement) keep() error {
	for _, source := range a.checkpoint.Sources {
		var sections []section
		for _, t := range source.Header.Tensors {
			if a.survey.Dropped[t.Name] == "" {
				sections = append(sections, copyOf(held{t, source}))
			}
		}
		shard := &Shard{Name: source.Name(), Size: source.Header.FileSize, Unchanged: source}
		switch {
		case len(sections) == 0 && len(source.Header.Tensors) > 0:
			continue
		case len(sections) < len(source.Header.Tensors):
			var err error
			if shard, err = newShard(source.Name(), sections, source.Header.Metadata); err != nil {
				return err
			}
		}
		a.add(shard, sections)
	}
	return nil
}

func (a *arrangement) add(shard *Shard, sections []section) {
	a.Shards = append(a.Shards, shard)
	for _, s := range sections {
		a.at[s.tensor.Name] = shard.Name
	}
}

// cut puts items into files in order, as many into each as fit.
func (a *arrangement) cut(items []item, metadata map[string]string, name func(i, of int) string) error {
	empty, err := safetensors.EncodeHeader(nil, metadata)
	if err != nil {
		return err
	}
	var files [][]section
	room := int64(-1)
	for _, i := range items {
		weight, err := i.weight()
		if err != nil {
			return err
		}
		if files == nil || a.options.MaxShard > 0 && weight > room {
			files = append(files, nil)
			room = a.options.MaxShard - int64(len(empty))
			if a.options.MaxShard > 0 && weight > room {
				a.Notes = append(a.Notes, fmt.Sprintf("%s has a shard of its own: its %d bytes are more than max_shard allows", i.name, i.bytes()))
			}
		}
		files[len(files)-1] = append(files[len(files)-1], i.sections...)
		room -= weight
	}
	for i, sections := range files {
		shard, err := newShard(name(i+1, len(files)), sections, metadata)
		if err != nil {
			return err
		}
		a.add(shard, sections)
	}
	return nil
}

// metadata is what the headers of all shards that have any say alike.
func (c *Checkpoint) metadata() map[string]string {
	merged, differing := map[string]string{}, map[string]bool{}
	for _, s := range c.Sources {
		for key, value := range s.Header.Metadata {
			if before, known := merged[key]; known && before != value {
				differing[key] = true
			}
			merged[key] = value
		}
	}
	for key := range differing {
		delete(merged, key)
	}
	return merged
}
