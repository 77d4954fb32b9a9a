package verify

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/scan"
	"slipway/verify/ternary"
)

// submission is what the small files say about the large ones. It is derived
// from the listing and the small files' bytes alone, before any shard is read.
type submission struct {
	shards  []string // paths of the safetensors files, sorted
	folders []string // the folders that hold them, sorted; "." is the root
	models  []model  // the first is the one that the quantization manifest describes, where there is one

	quantizationPath string // "" where there is none
	quantization     *manifest.Quantization
	quantizationErr  error
	spare            []Finding                         // quantization manifests beside the one that counts
	absent           map[string]int                    // files that the manifest names and that are not there -> entries that need them
	unresolved       []Finding                         // file names that do not stand for one file
	uses             map[manifest.StoredTensor][]usage // who refers to a stored tensor

	indexed      []string               // tensors that an index lists
	unpaired     map[string]*unpaired   // by entry, its first bias that is not the negative of its scale
	baseSamples  map[string]baseSample  // by entry, some of the base's own weights; nil where the base is not at hand
	vocabularies map[string]*vocabulary // by path, of every tokenizer.json that was read
	texts        map[string][]byte      // by path, of what gates read as text
}

// capacity is what a stored tensor serves an entry as.
type capacity string

const (
	asCodes  capacity = "codes"
	asScales capacity = "scales"
	asBiases capacity = "biases"
	asValues capacity = "values"
)

// usage is one reference from an entry of the quantization manifest.
type usage struct {
	entry string
	as    capacity
}

// listShards finds the safetensors files and their folders.
func listShards(files []content.TreeFile) (shards, folders []string) {
	for _, f := range files {
		if scan.IsShard(f.Path) {
			shards = append(shards, f.Path)
			folders = append(folders, path.Dir(f.Path))
		}
	}
	slices.Sort(shards)
	slices.Sort(folders)
	return shards, slices.Compact(folders)
}

// readSubmission decodes the small files; names is how the task spells the
// quantization manifest's fields.
func readSubmission(files []content.TreeFile, facts map[string]*scan.File, names manifest.FieldNames) *submission {
	s := &submission{uses: map[manifest.StoredTensor][]usage{}, absent: map[string]int{}}
	s.shards, s.folders = listShards(files)
	// The manifest stands at the root or beside the shards.
	for _, folder := range append([]string{"."}, s.folders...) {
		p := path.Join(folder, manifest.QuantizationPath)
		switch {
		case facts[p] == nil || p == s.quantizationPath:
		case s.quantizationPath == "":
			s.quantizationPath = p
		default:
			s.spare = append(s.spare, Finding{Level: Error, Path: p, Problem: "is a second quantization manifest", Got: s.quantizationPath,
				Hint: "keep the one that describes the weights, and remove the other"})
		}
	}
	if f := facts[s.quantizationPath]; f != nil {
		if s.quantizationErr = f.Unreadable(); s.quantizationErr == nil {
			s.readQuantization(f.Small, names)
		}
	}
	s.divide(facts)
	for _, folder := range s.folders {
		if f := facts[path.Join(folder, safetensors.IndexName)]; f != nil && f.Small != nil {
			if index, err := safetensors.ReadIndex(f.Small); err == nil { // else gate index says why not
				s.indexed = slices.AppendSeq(s.indexed, maps.Keys(index.WeightMap))
			}
		}
	}
	return s
}

func (s *submission) readQuantization(data []byte, names manifest.FieldNames) {
	q, err := manifest.DecodeQuantizationAs(data, names)
	if err != nil {
		s.quantizationErr = err
		return
	}
	resolved := map[string]string{}
	for _, name := range q.Names() {
		entry := q.Tensors[name]
		for _, reference := range references(&entry) {
			target, known := resolved[*reference.file]
			if !known {
				target = s.resolve(*reference.file)
				resolved[*reference.file] = target
			}
			if target == "" {
				s.absent[*reference.file]++
				continue
			}
			*reference.file = target
			stored := manifest.StoredTensor{File: target, Tensor: reference.tensor}
			s.uses[stored] = append(s.uses[stored], usage{name, reference.as})
		}
		q.Tensors[name] = entry
	}
	s.quantization = &q
}

type reference struct {
	file   *string
	tensor string
	as     capacity
}

// references lists the stored tensors that an entry names. It gives the entry
// stored tensors of its own, so that a caller may set the files.
func references(e *manifest.Quantity) []reference {
	if e.Codes == nil {
		return []reference{{&e.File, e.Tensor, asValues}}
	}
	codes, scales := *e.Codes, *e.Scales
	e.Codes, e.Scales = &codes, &scales
	list := []reference{{&codes.File, codes.Tensor, asCodes}, {&scales.File, scales.Tensor, asScales}}
	if e.Biases != nil {
		biases := *e.Biases
		e.Biases = &biases
		list = append(list, reference{&biases.File, biases.Tensor, asBiases})
	}
	return list
}

// resolve finds the shard that a file of the quantization manifest names: from
// the submission's root or from a folder that holds shards. It returns "" and
// records why where there is not exactly one.
func (s *submission) resolve(file string) string {
	var found []string
	for _, folder := range append([]string{"."}, s.folders...) {
		if p := path.Join(folder, file); slices.Contains(s.shards, p) && !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 1:
		return found[0]
	case 0: // absent has it
	default:
		s.unresolved = append(s.unresolved, Finding{
			Level: Error, Path: file, Problem: "the quantization manifest's file name stands for several files",
			Got: strings.Join(found, ", "), Hint: "write the path from the submission's root",
		})
	}
	return ""
}

// layoutOf returns the geometry of a packed entry.
func layoutOf(e manifest.Quantity) (ternary.Layout, error) {
	format, known := ternary.Lookup(e.FormatID())
	if !known { // the manifest's reader and the decoders have the same list
		return ternary.Layout{}, fmt.Errorf("format %q is not one that is read here", manifest.Clip(e.FormatID()))
	}
	return format.Geometry(e)
}

// literalSizes lists how many weights of a literal entry may share a magnitude,
// each a multiple of the next: what the entry says, or, where it does not say,
// all that are looked for. It is nil where the entry's unit does not fit.
func literalSizes(e manifest.Quantity) []int64 {
	total, ok := ternary.Product(e.Shape)
	row := rowOf(e)
	if !ok || total == 0 {
		return nil
	}
	switch e.ScaleUnit() {
	case manifest.UnitTensor:
		return []int64{total}
	case manifest.UnitRow:
		return []int64{row}
	case manifest.UnitGroup:
		if row%e.GroupSize != 0 {
			return nil
		}
		return []int64{e.GroupSize}
	}
	sizes := []int64{total, row}
	for _, group := range []int64{256, 128, 64, 32} {
		if row%group == 0 {
			sizes = append(sizes, group)
		}
	}
	return slices.Compact(sizes)
}

// rowOf is how many weights a row of a tensor has.
func rowOf(e manifest.Quantity) int64 {
	if len(e.Shape) == 0 {
		return 1
	}
	return e.Shape[len(e.Shape)-1]
}

// storesHead reports whether the submission's manifest or an index lists an
// output head.
func (s *submission) storesHead() bool {
	isHead := func(name string) bool { return roleByName(name) == manifest.RoleHead }
	if s.quantization != nil && slices.ContainsFunc(s.quantization.Names(), isHead) {
		return true
	}
	return slices.ContainsFunc(s.indexed, isHead)
}

// roleByName tells a tensor's part where no contract does.
func roleByName(name string) manifest.Role { return manifest.RoleOf(name) }
