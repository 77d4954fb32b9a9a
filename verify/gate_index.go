package verify

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/report"
	"slipway/verify/words"
)

func decideIndex(e *evidence) outcome {
	folders := e.indexFolders()
	if len(folders) == 0 {
		return outcome{report.Outcome{Status: report.NotApplicable, Notes: []string{"there is no shard and no index"}}}
	}
	if e.blocked != "" {
		return undecided(e.blocked)
	}
	var o outcome
	for _, folder := range folders {
		o.indexOf(e, folder)
	}
	return o
}

// indexFolders lists the folders with shards, then those with only an index.
func (e *evidence) indexFolders() []string {
	folders := append([]string(nil), e.sub.folders...)
	known := map[string]bool{}
	for _, folder := range folders {
		known[folder] = true
	}
	for _, f := range e.tree.Files {
		if folder := path.Dir(f.Path); path.Base(f.Path) == safetensors.IndexName && !known[folder] {
			known[folder] = true
			folders = append(folders, folder)
		}
	}
	return folders
}

func (o *outcome) indexOf(e *evidence, folder string) {
	shards := map[string]*safetensors.Header{}
	for _, shard := range e.sub.shards {
		if path.Dir(shard) == folder {
			shards[path.Base(shard)] = e.facts[shard].Header
		}
	}
	indexPath := path.Join(folder, safetensors.IndexName)
	for _, f := range e.tree.Files {
		if path.Dir(f.Path) == folder && f.Path != indexPath && strings.HasSuffix(f.Path, ".safetensors.index.json") {
			o.Warn(report.Finding{Path: f.Path, Problem: "is an index under a name that loaders do not look for", Want: safetensors.IndexName, Hint: "rename it, or remove it"})
		}
	}
	facts := e.facts[indexPath]
	if facts == nil {
		o.withoutIndex(e, folder, shards)
		return
	}
	if err := facts.Unreadable(); err != nil {
		o.Fail(report.Finding{Path: indexPath, Problem: err.Error(), Hint: manifest.Hint(err)})
		return
	}
	if facts.Small == nil { // a folder without shards: nothing was kept of its files
		o.Fail(report.Finding{Path: indexPath, Problem: "is an index with no shard beside it", Hint: getShard})
		return
	}
	index, err := safetensors.ReadIndex(facts.Small)
	if err != nil {
		f := unsound(indexPath, facts, err)
		if f.Hint == "" {
			f.Hint = writeIndex
		}
		o.Fail(f)
		return
	}
	o.leftovers(folder, shards, func(shard string) bool { return !slices.Contains(slices.Collect(maps.Values(index.WeightMap)), shard) })
	o.problems(folder, index.Check(shards))
	o.Note("%s: %d tensors in %d shards", indexPath, len(index.WeightMap), len(shards))
}

func (o *outcome) withoutIndex(e *evidence, folder string, shards map[string]*safetensors.Header) {
	o.leftovers(folder, shards, func(string) bool { return true })
	o.problems(folder, safetensors.CheckShards(shards))
	switch {
	case len(shards) < 2:
		o.Note("folder %s: one shard needs no index", folder)
	case e.sub.quantizationPath != "":
		o.Note("folder %s: %s says which shard holds what", folder, e.sub.quantizationPath)
	default:
		o.Fail(report.Finding{Path: path.Join(folder, safetensors.IndexName),
			Problem: fmt.Sprintf("is missing, and %d shards are there", len(shards)), Hint: "loaders find the shards of a sharded model by this file"})
	}
}

// leftovers takes from shards those that may go and that only repeat tensors of
// the others, as a whole file does that was left beside its own shards: one
// finding each, in place of one for each tensor.
func (o *outcome) leftovers(folder string, shards map[string]*safetensors.Header, mayGo func(shard string) bool) {
	names := slices.Sorted(maps.Keys(shards))
	slices.Reverse(names) // model.safetensors comes after model-00001-of-00002.safetensors
	for _, shard := range names {
		h := shards[shard]
		if h == nil || len(h.Tensors) == 0 || !mayGo(shard) {
			continue
		}
		repeats := !slices.ContainsFunc(h.Tensors, func(t safetensors.Tensor) bool {
			return !slices.ContainsFunc(names, func(other string) bool {
				if other == shard || shards[other] == nil {
					return false
				}
				_, there := shards[other].Lookup(t.Name)
				return there
			})
		})
		if repeats && (len(h.Tensors) > 1 || len(names) > 2) {
			o.Fail(report.Finding{Path: path.Join(folder, shard), Problem: fmt.Sprintf("repeats %s of the other shards", words.Plural(len(h.Tensors), "tensor")),
				Hint: "remove it: the other shards hold the model"})
			delete(shards, shard)
		}
	}
}

const writeIndex = "write the index again, or remove it where one shard holds all"

// indexRemedies say what to do about each kind of problem.
var indexRemedies = map[safetensors.ProblemKind]string{
	safetensors.MissingShard:    "copy all shards, or write the index again",
	safetensors.UnlistedShard:   "remove the shard, or write the index again",
	safetensors.WrongShard:      writeIndex,
	safetensors.MissingTensor:   "copy all shards of one export, or write the index again",
	safetensors.UnlistedTensor:  writeIndex,
	safetensors.DuplicateTensor: "keep one of them",
	safetensors.TotalSizeWrong:  writeIndex,
}

func (o *outcome) problems(folder string, problems []safetensors.Problem) {
	for _, p := range problems {
		f := report.Finding{Path: path.Join(folder, p.Shard), Tensor: p.Tensor, Problem: p.Detail, Hint: indexRemedies[p.Kind]}
		if p.Shard == "" {
			f.Path = path.Join(folder, safetensors.IndexName)
		}
		if p.Warning {
			o.Warn(f)
		} else {
			o.Fail(f)
		}
	}
}
