package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/audit"
	"slipway/verify/modelconfig"
	"slipway/verify/report"
	"slipway/verify/words"
)

// references checks that every reference meets a stored tensor, and that every
// stored tensor is referred to once.
func (c *coverage) references() {
	c.Findings = append(c.Findings, c.sub.unresolved...)
	for file, n := range c.sub.absent {
		if !slices.ContainsFunc(c.sub.unresolved, func(f report.Finding) bool { return f.Path == file }) {
			c.Fail(c.absentShard(file, n))
		}
	}
	for key, uses := range c.sub.uses {
		if _, ok := c.stored[key]; !ok {
			for _, use := range uses {
				c.Fail(report.Finding{Path: key.File, Tensor: use.Entry, Problem: "refers to a stored tensor that is not in the shard", Want: key.Tensor,
					Hint: "write shards and quantization manifest in one export"})
			}
		}
		if len(uses) > 1 && !c.mayShare(uses) {
			var names []string
			for _, use := range uses {
				names = append(names, use.Entry+" "+string(use.As))
			}
			slices.Sort(names)
			c.lists.Double = append(c.lists.Double, report.StoredRef{File: key.File, Tensor: key.Tensor, Uses: names})
			c.Fail(report.Finding{Path: key.File, Tensor: key.Tensor, Problem: "serves more than one entry", Got: strings.Join(names, ", "),
				Hint: "store each tensor's own bytes"})
		}
	}
	c.unreferenced()
}

// absentShard is the one finding for all that a missing shard holds. A link or
// a shard under a forbidden path is not there either: gate paths names it.
func (c *coverage) absentShard(file string, n int) report.Finding {
	f := report.Finding{Path: file, Problem: fmt.Sprintf("the quantization manifest names this shard, which is not there; %s in it", words.Are(int64(n), "stored tensor")),
		Hint: "copy it too; file names count from the submission's root or from the folder of the shards"}
	for _, fault := range c.tree.Faults {
		if fault.Path == file || strings.HasSuffix(fault.Path, "/"+file) {
			f.Path, f.Hint = fault.Path, "gate paths says what is there in its place"
		}
	}
	return f
}

// unreferenced reports the stored tensors that no entry refers to: a shard of
// which nothing is referred to once, and the others one by one. What stands for
// a tensor that is declared ternary is an error whatever the rules count.
func (c *coverage) unreferenced() {
	ternary := map[string][][]int64{} // shapes: two names may be plainly one
	for name, entry := range c.sub.quantization.Tensors {
		if entry.Kind != manifest.KindFloat {
			ternary[plainName(name)] = append(ternary[plainName(name)], entry.Shape)
		}
	}
	spare, used := map[string][]safetensors.Tensor{}, map[string]bool{}
	for _, key := range c.storedOf(c.model) {
		if len(c.sub.uses[key]) > 0 {
			used[key.File] = true
		} else {
			spare[key.File] = append(spare[key.File], c.stored[key])
			c.lists.Unreferenced = append(c.lists.Unreferenced, report.StoredRef{File: key.File, Tensor: key.Tensor})
		}
	}
	for _, file := range slices.Sorted(maps.Keys(spare)) {
		var copies, others []safetensors.Tensor
		for _, t := range spare[file] {
			sameShape := func(shape []int64) bool { return slices.Equal(shape, t.Shape) }
			if audit.IsFloating(t.DType) && slices.ContainsFunc(ternary[plainName(t.Name)], sameShape) {
				copies = append(copies, t)
			} else {
				others = append(others, t)
			}
		}
		whole := !used[file]
		c.summarise(file, copies, whole, c.Fail, report.Finding{
			Problem: "is a floating-point copy of a tensor that the quantization manifest declares ternary",
			Hint:    "remove it: a server could load it in place of the ternary one"})
		tell := c.Warn
		if c.rules().ForbidsUnreferenced() {
			tell = c.Fail
		}
		c.summarise(file, others, whole, tell, report.Finding{
			Problem: "no entry of the quantization manifest refers to it", Hint: "remove it, or list what it is; it counts as stored"})
	}
}

// summarise reports tensors of one shard, in one finding where nothing of the
// shard is referred to.
func (c *coverage) summarise(file string, tensors []safetensors.Tensor, whole bool, tell func(report.Finding), f report.Finding) {
	f.Path = file
	if whole && len(tensors) > 1 {
		f.Problem = fmt.Sprintf("of %s: %s", words.Plural(len(tensors), "tensor"), f.Problem)
		f.Got = fmt.Sprintf("%s to %s", tensors[0].Name, tensors[len(tensors)-1].Name)
		tell(f)
		return
	}
	for _, t := range tensors {
		one := f
		one.Tensor, one.Got = t.Name, audit.Describe(t)
		tell(one)
	}
}

// plainName is what names of one tensor have in common: its name without the
// multimodal prefix and without the suffix of weights.
func plainName(name string) string {
	if rest, long := strings.CutPrefix(name, modelconfig.LongPrefix); long {
		name = modelconfig.ShortPrefix + rest
	}
	return strings.TrimSuffix(name, ".weight")
}

// mayShare reports whether the uses are those of an embedding and the head
// that is tied to it.
func (c *coverage) mayShare(uses []audit.Use) bool {
	roles := map[manifest.Role]int{}
	for _, use := range uses {
		if use.As != audit.AsValues {
			return false
		}
		roles[audit.RoleOf(c.base, use.Entry)]++
	}
	return len(uses) == 2 && roles[manifest.RoleEmbedding] == 1 && roles[manifest.RoleHead] == 1
}
