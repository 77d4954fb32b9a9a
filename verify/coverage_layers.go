package verify

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"slipway/manifest/safetensors"
	"slipway/verify/report"
	"slipway/verify/words"
)

// missing reports tensors that are not there: those of a shard that is not
// there by shard, those of whole layers by range, and the others one by one.
func (c *coverage) missing(names []string, wanted map[string][]int64) {
	c.lists.Missing = append(c.lists.Missing, names...)
	lost := c.lostWith()
	inShard := map[string]int{}
	names = slices.DeleteFunc(names, func(name string) bool {
		shard := lost[name]
		if shard != "" {
			inShard[shard]++
		}
		return shard != ""
	})
	for shard, n := range inShard {
		c.Fail(report.Finding{Path: shard, Problem: fmt.Sprintf("is not there, and %s in it", words.Are(int64(n), "tensor of the model")), Hint: getShard})
	}
	whole := layersOf(wanted)
	single, ranges := byLayer(names, func(l layer, n int) bool { return n == whole[l] })
	for _, r := range ranges {
		c.Fail(report.Finding{Tensor: r.stack, Problem: fmt.Sprintf("%s missing (%s)", r.layers(), words.Plural(r.tensors, "tensor")), Hint: "export all layers, and copy all shards"})
	}
	for _, name := range single {
		c.Fail(report.Finding{Tensor: name, Problem: "is missing", Want: fmt.Sprint(wanted[name]), Hint: "export it too: the model has all tensors of its base"})
	}
}

const getShard = "copy all shards of the model"

// lostWith returns the tensors that an index places in shards that are not
// there, with the shard.
func (c *coverage) lostWith() map[string]string {
	lost := map[string]string{}
	for _, folder := range c.model.folders {
		f := c.facts[path.Join(folder, safetensors.IndexName)]
		if f == nil || f.Small == nil {
			continue
		}
		index, err := safetensors.ReadIndex(f.Small)
		if err != nil {
			continue // gate index says so
		}
		for name, base := range index.WeightMap {
			if shard := path.Join(folder, base); c.facts[shard] == nil {
				lost[name] = shard
			}
		}
	}
	return lost
}

// extra reports tensors that the model should not have: f says what is wrong
// with one of them. Layers of which the model has no tensor at all come by
// range.
func (c *coverage) extra(names []string, wanted map[string][]int64, f report.Finding, tell func(report.Finding)) {
	known := layersOf(wanted)
	single, ranges := byLayer(names, func(l layer, n int) bool { return n > 1 && known[l] == 0 && known[layer{l.stack, 0}] > 0 })
	for _, r := range ranges {
		tell(report.Finding{Tensor: r.stack, Problem: fmt.Sprintf("%s more than the model has (%s)", r.layers(), words.Plural(r.tensors, "tensor")), Hint: f.Hint})
	}
	for _, name := range single {
		one := f
		one.Path, one.Tensor, one.Got = c.tensors[name].at.File, name, fmt.Sprint(c.tensors[name].shape)
		tell(one)
	}
}

// layer is one of a stack: of "model.layers.3.mlp.up_proj.weight" the fourth
// of "model.layers".
type layer struct {
	stack string
	n     int
}

// layerOf returns the outermost layer that a tensor's name tells.
func layerOf(name string) (layer, bool) {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if n, err := strconv.Atoi(part); err == nil && n >= 0 && i > 0 {
			return layer{strings.Join(parts[:i], "."), n}, true
		}
	}
	return layer{}, false
}

// layersOf counts the tensors of each layer.
func layersOf(tensors map[string][]int64) map[layer]int {
	counts := map[layer]int{}
	for name := range tensors {
		if l, ok := layerOf(name); ok {
			counts[l]++
		}
	}
	return counts
}

// layerRange is layers from to to of a stack, both included.
type layerRange struct {
	layer
	to, tensors int
}

func (r layerRange) layers() string {
	if r.n == r.to {
		return fmt.Sprintf("layer %d is", r.n)
	}
	return fmt.Sprintf("layers %d to %d are", r.n, r.to)
}

// byLayer takes from names those of layers for which whole holds, given how
// many of a layer's tensors are among names, and joins neighbouring layers.
func byLayer(names []string, whole func(l layer, n int) bool) (single []string, ranges []layerRange) {
	names = slices.Clone(names)
	slices.SortFunc(names, report.CompareNatural)
	counts := map[layer]int{}
	for _, name := range names {
		if l, ok := layerOf(name); ok {
			counts[l]++
		}
	}
	taken := map[layer]bool{}
	for _, name := range names {
		l, ok := layerOf(name)
		switch {
		case !ok || !whole(l, counts[l]):
			single = append(single, name)
		case taken[l]:
		default:
			taken[l] = true
			if last := len(ranges) - 1; last >= 0 && ranges[last].stack == l.stack && ranges[last].to == l.n-1 {
				ranges[last].to, ranges[last].tensors = l.n, ranges[last].tensors+counts[l]
			} else {
				ranges = append(ranges, layerRange{l, l.n, counts[l]})
			}
		}
	}
	return single, ranges
}
