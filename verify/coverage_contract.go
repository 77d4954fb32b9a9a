package verify

import (
	"fmt"
	"maps"
	"slices"

	"slipway/manifest"
	"slipway/verify/audit"
	"slipway/verify/modelconfig"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// againstContract compares the tensors with those of the pinned base.
func (c *coverage) againstContract() {
	if modelconfig.TextPrefix(c.base.Names()) == modelconfig.ShortPrefix {
		if got := modelconfig.TextPrefix(slices.Collect(maps.Keys(c.tensors))); got != modelconfig.ShortPrefix {
			c.wrongPrefix(modelconfig.ShortPrefix, got, "the base")
			return
		}
	}
	present, absent := map[manifest.Role]int{}, map[manifest.Role][]string{}
	shapes := map[string][]int64{}
	for _, name := range c.base.Names() {
		base := c.base.Tensors[name]
		shapes[name] = base.Shape
		tensor, there := c.tensors[name]
		if !there {
			absent[base.Role] = append(absent[base.Role], name)
			continue
		}
		present[base.Role]++
		if !slices.Equal(base.Shape, tensor.shape) {
			c.fail(report.Finding{Path: tensor.at.File, Tensor: name, Problem: "has another shape than in the base", Want: fmt.Sprint(base.Shape), Got: fmt.Sprint(tensor.shape),
				Hint: "export it in the base's shape: rows are outputs, the last dimension inputs, without padding"})
		}
		if base.Role == manifest.RoleVision || base.Role == manifest.RoleMTP {
			c.besidesText(name, tensor, base.Role)
			c.unchanged(name, tensor, base)
		}
	}
	if c.same+c.unknown > 0 {
		c.note("vision and MTP tensors: %d unchanged by their digests, %d whose digest in the base is not known", c.same, c.unknown)
	}
	for _, role := range slices.Sorted(maps.Keys(absent)) {
		if !c.mayBeAbsent(role, present[role]) {
			c.missing(absent[role], shapes)
		}
	}
	c.outside(shapes)
}

// mayBeAbsent reports whether a role's tensors may all be left out.
func (c *coverage) mayBeAbsent(role manifest.Role, present int) bool {
	switch role {
	case manifest.RoleVision, manifest.RoleMTP:
		return present == 0 && c.options.Profile.VisionMTP != profiles.Needed
	case manifest.RoleHead:
		return c.base.TiedHead
	}
	return false
}

// unchanged compares a tensor's bytes with the base's, where they are known.
func (c *coverage) unchanged(name string, tensor logical, base manifest.ContractTensor) {
	if _, ok := c.stored[tensor.at]; !ok {
		return
	}
	switch got := c.stats(tensor.at).Digest; {
	case base.SHA256 == "":
		c.unknown++
	case got.Hex() == base.SHA256:
		c.same++
	default:
		c.fail(report.Finding{Path: tensor.at.File, Tensor: name, Problem: "differs from the base, where it must be unchanged", Want: base.SHA256, Got: got.Hex(),
			Hint: "copy it from the pinned revision, bytes and type, or leave all of its kind out where the task allows that"})
	}
}

// outside judges the names that the contract does not have.
func (c *coverage) outside(shapes map[string][]int64) {
	var extra []string
	for name, tensor := range c.tensors {
		if _, known := c.base.Tensors[name]; known {
			continue
		}
		if !audit.IsAddedHead(c.base, name) {
			extra = append(extra, name)
			continue
		}
		if embedding := shapes[audit.EmbeddingName(c.base)]; !slices.Equal(embedding, tensor.shape) {
			c.fail(report.Finding{Path: tensor.at.File, Tensor: name, Problem: "is a head of another shape than the embedding", Want: fmt.Sprint(embedding), Got: fmt.Sprint(tensor.shape),
				Hint: "store one row for each token"})
		}
	}
	f, level := report.Finding{Problem: "is not a tensor of the base", Hint: "remove it: the model has the base's tensors and no others"}, c.fail
	if slices.ContainsFunc(c.options.Profile.Bases, func(b profiles.Base) bool { return b.Label == "vision" }) {
		f.Hint, level = "gate components judges what a vision submission adds", c.warn
	}
	c.extra(extra, shapes, f, level)
}
