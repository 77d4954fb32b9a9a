package verify

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/scan"
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
	vocabularies map[string]*vocabulary // by path, of every tokenizer.json that was read
}

// capacity is what a stored tensor serves an entry as.
type capacity string

const (
	asCodes  capacity = "codes"
	asScales capacity = "scales"
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

// readSubmission decodes the small files.
func readSubmission(files []content.TreeFile, facts map[string]*scan.File) *submission {
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
			s.readQuantization(f.Small)
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

func (s *submission) readQuantization(data []byte) {
	q, err := manifest.DecodeQuantization(data)
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
// codes and scales of its own, so that a caller may set the files.
func references(e *manifest.Quantity) []reference {
	if e.Codes == nil {
		return []reference{{&e.File, e.Tensor, asValues}}
	}
	codes, scales := *e.Codes, *e.Scales
	e.Codes, e.Scales = &codes, &scales
	return []reference{{&codes.File, codes.Tensor, asCodes}, {&scales.File, scales.Tensor, asScales}}
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

// packing is the geometry of a packed entry: rows of inputs weights each.
type packing struct {
	rows, inputs int64
	codes        []int64 // wanted shape of the codes
	scales       []int64 // wanted shape of the scales
}

// packingOf returns the geometry of a packed_2bit entry: codes U8 [..., K/4],
// four a byte, lowest bits first along K; scales [..., K/g]. There is no
// padding: K is a multiple of 4 and of g, and g of 4.
func packingOf(e manifest.Quantity) (packing, error) {
	if len(e.Shape) < 2 {
		return packing{}, fmt.Errorf("shape %v has fewer than two dimensions", e.Shape)
	}
	if _, ok := product(e.Shape); !ok {
		return packing{}, fmt.Errorf("shape %v is out of range", e.Shape)
	}
	last := len(e.Shape) - 1
	k, g := e.Shape[last], e.GroupSize
	rows, _ := product(e.Shape[:last])
	switch {
	case k == 0 || rows == 0:
		return packing{}, fmt.Errorf("shape %v is empty", e.Shape)
	case k%4 != 0:
		return packing{}, fmt.Errorf("%d inputs are not a multiple of the 4 codes of a byte", k)
	case g%4 != 0:
		return packing{}, fmt.Errorf("group_size %d is not a multiple of the 4 codes of a byte", g)
	case k%g != 0:
		return packing{}, fmt.Errorf("%d inputs are not a multiple of group_size %d", k, g)
	}
	p := packing{rows: rows, inputs: k, codes: slices.Clone(e.Shape), scales: slices.Clone(e.Shape)}
	p.codes[last], p.scales[last] = k/4, k/g
	return p, nil
}

// product multiplies a shape; ok is false above 2^50, far more than any model.
func product(shape []int64) (n int64, ok bool) {
	n = 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > (1<<50)/d {
			return math.MaxInt64, false
		}
		n *= d
	}
	return n, true
}

// literalUnit is how many weights of a literal entry share a magnitude: its
// group, or else a row.
func literalUnit(e manifest.Quantity) int64 {
	if e.GroupSize > 0 {
		return e.GroupSize
	}
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
func roleByName(name string) manifest.Role {
	switch name {
	case "model.embed_tokens.weight", "model.language_model.embed_tokens.weight", "language_model.model.embed_tokens.weight":
		return manifest.RoleEmbedding
	case "lm_head.weight", "language_model.lm_head.weight":
		return manifest.RoleHead
	}
	for prefix, role := range map[string]manifest.Role{
		"model.visual.": manifest.RoleVision, "visual.": manifest.RoleVision, "mtp.": manifest.RoleMTP,
	} {
		if strings.HasPrefix(name, prefix) {
			return role
		}
	}
	return manifest.RoleBackbone
}
