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
	"slipway/verify/profiles"
	"slipway/verify/report"
	"slipway/verify/words"
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
			c.Fail(report.Finding{Path: tensor.at.File, Tensor: name, Problem: "has another shape than in the base", Want: fmt.Sprint(base.Shape), Got: fmt.Sprint(tensor.shape),
				Hint: "export it in the base's shape: rows are outputs, the last dimension inputs, without padding"})
		}
		if base.Role == manifest.RoleVision || base.Role == manifest.RoleMTP {
			c.besidesText(name, tensor, base.Role)
			c.unchanged(name, tensor, base)
		} else if c.adds() {
			c.unchanged(name, tensor, base)
		}
		if base.Role == manifest.RoleEmbedding || base.Role == manifest.RoleHead {
			c.noWider(name, tensor, base)
		}
	}
	c.keptTold()
	for _, role := range slices.Sorted(maps.Keys(absent)) {
		if !c.mayBeAbsent(role, present[role]) {
			c.missing(absent[role], shapes)
		}
	}
	c.outside(shapes)
}

// keptTold tells how many tensors were shown to be unchanged, and how many were
// not.
func (c *coverage) keptTold() {
	same, unknown := "vision and MTP tensors", "of vision and MTP stored"
	if c.adds() {
		same, unknown = "tensors of the base", "of the base"
	}
	if c.same > 0 {
		c.Note("%s: %d unchanged by their digests", same, c.same)
	}
	if c.unknown > 0 {
		c.Warn(report.Finding{Path: c.model.name(), Problem: fmt.Sprintf("%s %s, and unchanged cannot be shown: the contract has no digests of them", words.Are(int64(c.unknown), "tensor"), unknown),
			Hint: "`slipway weights contract DIR --digests` makes a contract of the base that has them (--contract)"})
	}
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
	if dtype := c.stored[tensor.at].DType.String(); dtype != base.DType {
		c.Fail(report.Finding{Path: tensor.at.File, Tensor: name, Problem: "has another type than in the base, where it must be unchanged", Want: base.DType, Got: dtype,
			Hint: "copy it from the pinned revision, bytes and type, or leave all of its kind out where the task allows that"})
		return
	}
	switch got := c.stats(tensor.at).Digest; {
	case base.SHA256 == "":
		c.unknown++
	case got.Hex() == base.SHA256:
		c.same++
	default:
		c.Fail(report.Finding{Path: tensor.at.File, Tensor: name, Problem: "differs from the base, where it must be unchanged", Want: base.SHA256, Got: got.Hex(),
			Hint: "copy it from the pinned revision, bytes and type, or leave all of its kind out where the task allows that"})
	}
}

// noWider refuses an embedding or head of a wider type than the base's: what is
// not counted could hold other numbers in the bits that the base does not have.
func (c *coverage) noWider(name string, tensor logical, base manifest.ContractTensor) {
	stored, there := c.stored[tensor.at]
	want, known := safetensors.ParseDType(base.DType)
	if there && known && stored.DType.Bits() > want.Bits() {
		c.Fail(report.Finding{Path: tensor.at.File, Tensor: name, Problem: "is stored in a wider type than the base's", Want: "at most that of " + base.DType, Got: stored.DType.String(),
			Hint: "store it in the base's type"})
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
			c.Fail(report.Finding{Path: tensor.at.File, Tensor: name, Problem: "is a head of another shape than the embedding", Want: fmt.Sprint(embedding), Got: fmt.Sprint(tensor.shape),
				Hint: "store one row for each token"})
		}
		c.noWider(name, tensor, c.base.Tensors[audit.EmbeddingName(c.base)])
	}
	if c.adds() {
		extra = c.added(extra)
	}
	f, level := report.Finding{Problem: "is not a tensor of the base", Hint: "remove it: the model has the base's tensors and no others"}, c.Fail
	if slices.ContainsFunc(c.options.Profile.Bases, func(b profiles.Base) bool { return b.Label == "vision" }) {
		f.Hint, level = "gate components judges what a vision submission adds", c.Warn
	}
	c.extra(extra, shapes, f, level)
}

// adds reports whether the task lets a submission add to a base that stays as it
// is.
func (c *coverage) adds() bool { return c.options.Profile.VisionMTP == profiles.Added }

// added tells of the tensors that a submission brings beside the base's, and
// returns those that would be the base's own: more layers, another head.
func (c *coverage) added(names []string) (own []string) {
	stem := func(name string) string { // "model.layers", "lm_head"
		parts := strings.SplitN(name, ".", 3)
		return strings.Join(parts[:max(1, len(parts)-1)], ".")
	}
	known := map[string]bool{}
	for name := range c.base.Tensors {
		known[stem(name)] = true
	}
	parts := map[string]int{}
	for _, name := range names {
		switch role := manifest.RoleOf(name); {
		case role == manifest.RoleVision:
			parts["vision"]++
		case role == manifest.RoleBackbone && !known[stem(name)] && !known[strings.Split(name, ".")[0]]:
			parts[stem(name)]++
		default:
			own = append(own, name)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		c.Note("%s added to the base: %s; whether that may be there, gate components asks", words.Plural(parts[part], "tensor"), manifest.Clip(part))
	}
	return own
}
