package safetensors

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ProblemKind says in which way an index and its shards disagree.
type ProblemKind string

// The kinds of Problem.
const (
	MissingShard    ProblemKind = "missing shard"    // the index names a shard that is not there
	UnlistedShard   ProblemKind = "unlisted shard"   // a shard is there that the index does not name
	WrongShard      ProblemKind = "wrong shard"      // a tensor lies in another shard than the index says
	MissingTensor   ProblemKind = "missing tensor"   // a tensor is in no shard
	UnlistedTensor  ProblemKind = "unlisted tensor"  // a shard holds a tensor that the index does not name
	DuplicateTensor ProblemKind = "duplicate tensor" // several shards hold a tensor
	TotalSizeWrong  ProblemKind = "wrong total_size" // metadata.total_size fits neither convention
)

// Problem is one disagreement between shards, or between them and their index.
type Problem struct {
	Kind    ProblemKind
	Shard   string // "" where the problem is not one shard's
	Tensor  string // "" where the problem is not one tensor's
	Detail  string // a sentence that names both
	Warning bool   // worth a look, nothing is lost or ambiguous
}

// String returns the detail.
func (p Problem) String() string { return p.Detail }

// Check holds the index against the headers of all shards present, by base
// name, and returns every disagreement, sorted by kind, shard and tensor. The
// tensors of a missing or unlisted shard are not listed one by one unless they
// are elsewhere too. A nil header stands for a shard that is present and could
// not be read: nothing is said about its tensors.
func (ix *Index) Check(shards map[string]*Header) []Problem {
	named := make(map[string]bool)
	for _, shard := range ix.WeightMap {
		named[shard] = true
	}
	holders := holdersOf(shards)
	problems := duplicates(holders)
	problems = append(problems, ix.checkWeights(shards, holders)...)
	complete := true
	for shard := range named {
		h, present := shards[shard]
		complete = complete && h != nil
		if !present {
			problems = append(problems, Problem{Kind: MissingShard, Shard: shard,
				Detail: fmt.Sprintf("the index names shard %s, which is not there", quote(shard))})
		}
	}
	for shard, h := range shards {
		if !named[shard] {
			problems = append(problems, Problem{Kind: UnlistedShard, Shard: shard,
				Detail: fmt.Sprintf("shard %s is not in the index", quote(shard))})
		} else if h != nil {
			problems = append(problems, ix.unlistedTensors(shard, h)...)
		}
	}
	if complete {
		problems = append(problems, ix.checkTotal(shards, named)...)
	}
	sortProblems(problems)
	return problems
}

// CheckShards returns the tensors that lie in more than one shard: all that
// can go wrong between shards that have no index. Nil headers are as in Check.
func CheckShards(shards map[string]*Header) []Problem {
	problems := duplicates(holdersOf(shards))
	sortProblems(problems)
	return problems
}

// holdersOf returns for each tensor the shards that hold it, sorted.
func holdersOf(shards map[string]*Header) map[string][]string {
	holders := make(map[string][]string)
	for shard, h := range shards {
		if h == nil {
			continue
		}
		for _, t := range h.Tensors {
			holders[t.Name] = append(holders[t.Name], shard)
		}
	}
	for _, list := range holders {
		slices.Sort(list)
	}
	return holders
}

func duplicates(holders map[string][]string) []Problem {
	var problems []Problem
	for name, list := range holders {
		if len(list) > 1 {
			problems = append(problems, Problem{Kind: DuplicateTensor, Tensor: name,
				Detail: fmt.Sprintf("tensor %s is in several shards: %s", quote(name), quoteAll(list))})
		}
	}
	return problems
}

// checkWeights looks up every tensor of the index.
func (ix *Index) checkWeights(shards map[string]*Header, holders map[string][]string) []Problem {
	var problems []Problem
	for name, shard := range ix.WeightMap {
		list := holders[name]
		switch {
		case slices.Contains(list, shard):
		case len(list) > 0:
			problems = append(problems, Problem{Kind: WrongShard, Shard: shard, Tensor: name,
				Detail: fmt.Sprintf("tensor %s is in %s, the index says %s", quote(name), quoteAll(list), quote(shard))})
		case shards[shard] != nil:
			problems = append(problems, Problem{Kind: MissingTensor, Shard: shard, Tensor: name,
				Detail: fmt.Sprintf("tensor %s is in no shard, the index says %s", quote(name), quote(shard))})
		}
	}
	return problems
}

func (ix *Index) unlistedTensors(shard string, h *Header) []Problem {
	var problems []Problem
	for _, t := range h.Tensors {
		if _, listed := ix.WeightMap[t.Name]; !listed {
			problems = append(problems, Problem{Kind: UnlistedTensor, Shard: shard, Tensor: t.Name,
				Detail: fmt.Sprintf("tensor %s in shard %s is not in the index", quote(t.Name), quote(shard))})
		}
	}
	return problems
}

// checkTotal compares metadata.total_size with both sums that writers use:
// bytes of tensors, and bytes of files.
func (ix *Index) checkTotal(shards map[string]*Header, named map[string]bool) []Problem {
	if ix.TotalSize == nil {
		return nil
	}
	tensors, files := *ix.TotalSize, *ix.TotalSize
	for shard := range named {
		// Subtracting stops at the first overdraw, so that no sum can overflow.
		h := shards[shard]
		if tensors >= 0 {
			tensors -= h.FileSize - h.DataStart
		}
		if files >= 0 {
			files -= h.FileSize
		}
	}
	if tensors == 0 || files == 0 {
		return nil
	}
	return []Problem{{Kind: TotalSizeWrong, Warning: true,
		Detail: fmt.Sprintf("metadata.total_size is %d, neither the bytes of the tensors nor those of the shards", *ix.TotalSize)}}
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quote(name)
	}
	return strings.Join(quoted, ", ")
}

func sortProblems(problems []Problem) {
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Tensor, b.Tensor))
	})
}
