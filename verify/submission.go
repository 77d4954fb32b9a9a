package verify

import (
	"maps"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/audit"
	"slipway/verify/modelconfig"
	"slipway/verify/report"
	"slipway/verify/scan"
	"slipway/verify/script"
	"slipway/verify/wheel"
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
	spare            []report.Finding                      // quantization manifests beside the one that counts
	absent           map[string]int                        // files that the manifest names and that are not there -> entries that need them
	unresolved       []report.Finding                      // file names that do not stand for one file
	uses             map[manifest.StoredTensor][]audit.Use // who refers to a stored tensor

	indexed      []string                           // tensors that an index lists
	unpaired     map[string]*audit.Unpaired         // by entry, its first bias that is not the negative of its scale
	baseSamples  map[string]audit.BaseSample        // by entry, some of the base's own weights; nil where the base is not at hand
	baseDigest   manifest.Digest                    // of the set of the base's files; zero where the base was not read
	vocabularies map[string]*modelconfig.Vocabulary // by path, of every tokenizer.json that was read
	texts        map[string][]byte                  // by path, of what gates read as text
	wheels       map[string]*wheel.Facts            // by path, of every wheel that begins as one
	runtime      *vendored                          // nil where none is vendored
	started      []script.Wheel                     // source of what a shell script could start of a wheel
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
	s := &submission{uses: map[manifest.StoredTensor][]audit.Use{}, absent: map[string]int{}}
	s.shards, s.folders = listShards(files)
	// The manifest stands at the root or beside the shards.
	for _, folder := range append([]string{"."}, s.folders...) {
		p := path.Join(folder, manifest.QuantizationPath)
		switch {
		case facts[p] == nil || p == s.quantizationPath:
		case s.quantizationPath == "":
			s.quantizationPath = p
		default:
			s.spare = append(s.spare, report.Finding{Level: report.Error, Path: p, Problem: "is a second quantization manifest", Got: s.quantizationPath,
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
		for _, reference := range audit.References(&entry) {
			target, known := resolved[*reference.File]
			if !known {
				target = s.resolve(*reference.File)
				resolved[*reference.File] = target
			}
			if target == "" {
				s.absent[*reference.File]++
				continue
			}
			*reference.File = target
			stored := manifest.StoredTensor{File: target, Tensor: reference.Tensor}
			s.uses[stored] = append(s.uses[stored], audit.Use{Entry: name, As: reference.As})
		}
		q.Tensors[name] = entry
	}
	s.quantization = &q
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
		s.unresolved = append(s.unresolved, report.Finding{
			Level: report.Error, Path: file, Problem: "the quantization manifest's file name stands for several files",
			Got: strings.Join(found, ", "), Hint: "write the path from the submission's root",
		})
	}
	return ""
}

// storesHead reports whether the submission's manifest or an index lists an
// output head.
func (s *submission) storesHead() bool {
	isHead := func(name string) bool { return manifest.RoleOf(name) == manifest.RoleHead }
	if s.quantization != nil && slices.ContainsFunc(s.quantization.Names(), isHead) {
		return true
	}
	return slices.ContainsFunc(s.indexed, isHead)
}
