package verify

import (
	"fmt"
	"path"
	"strings"

	"slipway/manifest/safetensors"
)

func decideIndex(e *evidence) outcome {
	folders := e.indexFolders()
	if len(folders) == 0 {
		return outcome{status: NotApplicable, notes: []string{"there is no shard and no index"}}
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
			shards[path.Base(shard)] = e.facts[shard].header
		}
	}
	indexPath := path.Join(folder, safetensors.IndexName)
	for _, f := range e.tree.Files {
		if path.Dir(f.Path) == folder && f.Path != indexPath && strings.HasSuffix(f.Path, ".safetensors.index.json") {
			o.warn(Finding{Path: f.Path, Problem: "is an index under a name that loaders do not look for", Want: safetensors.IndexName})
		}
	}
	facts := e.facts[indexPath]
	if facts == nil {
		o.withoutIndex(e, folder, shards)
		return
	}
	if err := facts.unreadable(); err != nil {
		o.fail(Finding{Path: indexPath, Problem: err.Error()})
		return
	}
	if facts.small == nil { // a folder without shards: nothing was kept of its files
		o.fail(Finding{Path: indexPath, Problem: "is an index with no shard beside it"})
		return
	}
	index, err := safetensors.ReadIndex(facts.small)
	if err != nil {
		o.fail(Finding{Path: indexPath, Problem: err.Error(), Hint: "write the index again"})
		return
	}
	o.problems(folder, index.Check(shards))
	o.note("%s: %d tensors in %d shards", indexPath, len(index.WeightMap), len(shards))
}

func (o *outcome) withoutIndex(e *evidence, folder string, shards map[string]*safetensors.Header) {
	o.problems(folder, safetensors.CheckShards(shards))
	switch {
	case len(shards) < 2:
		o.note("folder %s: one shard needs no index", folder)
	case e.sub.quantizationPath != "":
		o.note("folder %s: %s says which shard holds what", folder, e.sub.quantizationPath)
	default:
		o.fail(Finding{Path: path.Join(folder, safetensors.IndexName),
			Problem: fmt.Sprintf("is missing, and %d shards are there", len(shards)), Hint: "loaders find the shards of a sharded model by this file"})
	}
}

func (o *outcome) problems(folder string, problems []safetensors.Problem) {
	for _, p := range problems {
		f := Finding{Path: path.Join(folder, p.Shard), Tensor: p.Tensor, Problem: p.Detail}
		if p.Shard == "" {
			f.Path = path.Join(folder, safetensors.IndexName)
		}
		if p.Warning {
			o.warn(f)
		} else {
			o.fail(f)
		}
	}
}
