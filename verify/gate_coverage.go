package verify

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
)

func decideCoverage(e *evidence) outcome {
	var o outcome
	switch {
	case len(e.sub.shards) == 0:
		o.fail(Finding{Problem: "there is no .safetensors file"})
		return o
	case e.blocked != "":
		return undecided(e.blocked)
	case e.sub.quantizationErr != nil:
		o.fail(Finding{Path: e.sub.quantizationPath, Problem: e.sub.quantizationErr.Error()})
		return o
	}
	c := coverage{evidence: e}
	if e.sub.quantization != nil {
		c.references()
		c.entries()
	} else {
		c.plain()
	}
	c.names()
	c.tiedHead()
	return c.outcome
}

// coverage compares the model's logical tensors with what the base has, and
// the stored tensors with what refers to them: nothing may be missing, and
// nothing may be there twice or without a part to play.
type coverage struct {
	*evidence
	outcome
	tensors map[string]logical

	same, unknown int // vision and MTP tensors with the base's digest, and without a known one
}

// logical is a tensor of the model as the submission presents it.
type logical struct {
	shape []int64
	kind  string                // of its entry; "" in a plain checkpoint
	at    manifest.StoredTensor // of its codes, if packed
}

// references checks that every reference meets a stored tensor, and that every
// stored tensor is referred to once.
func (c *coverage) references() {
	c.findings = append(c.findings, c.sub.unresolved...)
	for key, uses := range c.sub.uses {
		if _, ok := c.stored[key]; !ok {
			for _, use := range uses {
				c.fail(Finding{Path: key.File, Tensor: use.entry, Problem: "refers to a stored tensor that is not in the shard", Want: key.Tensor})
			}
		}
		if len(uses) > 1 && !c.mayShare(uses) {
			var names []string
			for _, use := range uses {
				names = append(names, use.entry+" "+string(use.as))
			}
			slices.Sort(names)
			c.fail(Finding{Path: key.File, Tensor: key.Tensor, Problem: "serves more than one entry", Got: strings.Join(names, ", ")})
		}
	}
	for key, tensor := range c.stored {
		if len(c.sub.uses[key]) > 0 {
			continue
		}
		f := Finding{Path: key.File, Tensor: key.Tensor, Problem: "no entry of the quantization manifest refers to it", Got: describe(tensor),
			Hint: "remove it, or list what it is; it counts as stored"}
		if c.rules().Counting == CountStrict {
			c.fail(f)
		} else {
			c.warn(f)
		}
	}
}

// mayShare reports whether the uses are those of an embedding and the head
// that is tied to it.
func (c *coverage) mayShare(uses []usage) bool {
	roles := map[manifest.Role]int{}
	for _, use := range uses {
		if use.as != asValues {
			return false
		}
		roles[roleOf(c.base, use.entry)]++
	}
	return len(uses) == 2 && roles[manifest.RoleEmbedding] == 1 && roles[manifest.RoleHead] == 1
}

func (c *coverage) entries() {
	c.tensors = map[string]logical{}
	for name, entry := range c.sub.quantization.Tensors {
		at := manifest.StoredTensor{File: entry.File, Tensor: entry.Tensor}
		if entry.Codes != nil {
			at = *entry.Codes
		}
		c.tensors[name] = logical{entry.Shape, entry.Kind, at}
	}
}

// scaleSuffix marks the block scales beside an FP8 weight.
const scaleSuffix = "_scale_inv"

// plain takes stored tensors for the model's own. Block scales belong to their
// weight. Values must be finite; packed forms have gate ternary for that.
func (c *coverage) plain() {
	c.tensors = map[string]logical{}
	for key, tensor := range c.stored {
		facts := c.stats(key)
		if facts.nonFinite > 0 {
			c.fail(Finding{Path: key.File, Tensor: key.Tensor,
				Problem: fmt.Sprintf("%d elements are NaN or infinite, the first at element %d", facts.nonFinite, facts.firstNonFinite)})
		}
		if other, twice := c.tensors[key.Tensor]; twice && path.Dir(other.at.File) != path.Dir(key.File) {
			c.fail(Finding{Tensor: key.Tensor, Problem: "is stored in several folders"}) // within one, gate index says so
		}
		c.tensors[key.Tensor] = logical{tensor.Shape, "", key}
	}
	c.blockScales()
	for name, tensor := range c.tensors {
		weight, isScale := strings.CutSuffix(name, scaleSuffix)
		if owner, ok := c.tensors[weight]; isScale && ok && c.stored[owner.at].DType.Bits() == 8 {
			c.blockScale(name, tensor, owner)
		}
	}
}

// blockScales checks that every FP8 weight of a block-scaled model has scales.
func (c *coverage) blockScales() {
	if c.sub.config == nil || c.sub.config.QuantBlock == nil {
		return
	}
	for name, tensor := range c.tensors {
		dtype := c.stored[tensor.at].DType
		_, scaled := c.tensors[name+scaleSuffix]
		if (dtype == safetensors.F8E4M3 || dtype == safetensors.F8E5M2) && !scaled {
			c.fail(Finding{Path: tensor.at.File, Tensor: name, Problem: "is FP8 without its block scales", Want: name + scaleSuffix})
		}
	}
}

// blockScale checks [ceil(N/a), ceil(K/b)] block scales of an FP8 weight and
// takes them off the list where no contract names them.
func (c *coverage) blockScale(name string, scale, weight logical) {
	if c.base != nil {
		if _, named := c.base.Tensors[name]; named {
			return
		}
	}
	if config := c.sub.config; config != nil && len(config.QuantBlock) == len(weight.shape) {
		want := make([]int64, len(weight.shape))
		for i, block := range config.QuantBlock {
			want[i] = (weight.shape[i] + max(block, 1) - 1) / max(block, 1)
		}
		if !slices.Equal(want, scale.shape) {
			c.fail(Finding{Path: scale.at.File, Tensor: name, Problem: "does not have one scale for each block", Want: fmt.Sprint(want), Got: fmt.Sprint(scale.shape)})
		}
	}
	delete(c.tensors, name) // the caller ranges over the map, which allows it
}

// names compares the model's tensors with the base's, or with what its own
// config.json implies.
func (c *coverage) names() {
	if c.base != nil {
		c.againstContract()
		return
	}
	if c.sub.config == nil {
		c.note("no contract and no readable config.json: only references were checked")
		return
	}
	prefix := textPrefix(slices.Collect(maps.Keys(c.tensors)))
	expected, known, err := expectedTensors(c.sub.config, prefix)
	switch {
	case err != nil:
		c.note("%s: %v; only references were checked", c.sub.configPath, err)
		return
	case !known:
		c.note("architecture %q is not one whose tensors are known here: only references were checked", clip(c.sub.config.Architecture))
		return
	}
	c.note("no contract: the tensors are those that the submission's own %s implies (self-declared)", c.sub.configPath)
	names := map[string]bool{}
	for _, t := range expected {
		names[t.Name] = true
		if _, there := c.tensors[t.Name]; !there && roleByName(t.Name) != manifest.RoleHead { // gate config compares the tie flag
			c.fail(Finding{Tensor: t.Name, Problem: "is missing", Want: fmt.Sprint(t.Shape)})
		}
	}
	for name, tensor := range c.tensors {
		role := roleByName(name)
		switch {
		case names[name], role == manifest.RoleHead:
		case role == manifest.RoleVision || role == manifest.RoleMTP:
			c.besidesText(name, tensor, role)
		default:
			c.fail(Finding{Path: tensor.at.File, Tensor: name, Problem: "is not a tensor of the model that config.json describes", Got: fmt.Sprint(tensor.shape)})
		}
	}
}

// besidesText checks a vision or MTP tensor: allowed by the profile, and kept
// in floating point.
func (c *coverage) besidesText(name string, tensor logical, role manifest.Role) {
	if c.options.Profile.VisionMTP == profiles.Forbidden {
		c.fail(Finding{Path: tensor.at.File, Tensor: name, Problem: fmt.Sprintf("%s tensors are not allowed", role)})
	}
	if tensor.kind != "" && tensor.kind != manifest.KindFloat {
		c.fail(Finding{Path: tensor.at.File, Tensor: name, Problem: fmt.Sprintf("%s tensors stay unchanged", role), Want: manifest.KindFloat, Got: tensor.kind})
	}
}

func (c *coverage) againstContract() {
	present, absent := map[manifest.Role]int{}, map[manifest.Role][]string{}
	for _, name := range c.base.Names() {
		base := c.base.Tensors[name]
		tensor, there := c.tensors[name]
		if !there {
			absent[base.Role] = append(absent[base.Role], name)
			continue
		}
		present[base.Role]++
		if !slices.Equal(base.Shape, tensor.shape) {
			c.fail(Finding{Path: tensor.at.File, Tensor: name, Problem: "has another shape than in the base", Want: fmt.Sprint(base.Shape), Got: fmt.Sprint(tensor.shape)})
		}
		if base.Role == manifest.RoleVision || base.Role == manifest.RoleMTP {
			c.besidesText(name, tensor, base.Role)
			c.unchanged(name, tensor, base)
		}
	}
	if c.same+c.unknown > 0 {
		c.note("vision and MTP tensors: %d unchanged by their digests, %d whose digest in the base is not known", c.same, c.unknown)
	}
	for role, names := range absent {
		if c.mayBeAbsent(role, present[role]) {
			continue
		}
		for _, name := range names {
			c.fail(Finding{Tensor: name, Problem: "is missing", Want: fmt.Sprint(c.base.Tensors[name].Shape)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.tensors)) {
		if _, known := c.base.Tensors[name]; !known {
			c.outside(name, c.tensors[name])
		}
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
	switch got := c.stats(tensor.at).digest; {
	case base.SHA256 == "":
		c.unknown++
	case got.Hex() == base.SHA256:
		c.same++
	default:
		c.fail(Finding{Path: tensor.at.File, Tensor: name, Problem: "differs from the base, where it must be unchanged", Want: base.SHA256, Got: got.Hex()})
	}
}

// outside judges a name that the contract does not have.
func (c *coverage) outside(name string, tensor logical) {
	f := Finding{Path: tensor.at.File, Tensor: name, Problem: "is not a tensor of the base", Got: fmt.Sprint(tensor.shape)}
	if isAddedHead(c.base, name) {
		embedding := c.base.Tensors[embeddingName(c.base)].Shape
		if !slices.Equal(embedding, tensor.shape) {
			f.Problem, f.Want = "is a head of another shape than the embedding", fmt.Sprint(embedding)
			c.fail(f)
		}
		return
	}
	if slices.ContainsFunc(c.options.Profile.Bases, func(b profiles.Base) bool { return b.Label == "vision" }) {
		f.Hint = "gate components judges what a vision submission adds"
		c.warn(f)
		return
	}
	c.fail(f)
}

// tiedHead compares a stored head with the embedding where config.json says
// that the embedding serves as head: loaders then ignore the stored one.
func (c *coverage) tiedHead() {
	if c.sub.config == nil || !c.sub.config.Tied {
		return
	}
	var head, embedding *logical
	for name, tensor := range c.tensors {
		switch roleByName(name) {
		case manifest.RoleHead:
			head = &tensor
		case manifest.RoleEmbedding:
			embedding = &tensor
		}
	}
	if head == nil || embedding == nil || head.at == embedding.at {
		return
	}
	stored, there := c.stored[head.at]
	if _, also := c.stored[embedding.at]; !there || !also {
		return
	}
	digest := c.stats(head.at).digest
	f := Finding{Path: head.at.File, Tensor: "lm_head.weight", Hint: "drop it, or set tie_word_embeddings to false"}
	if !digest.IsZero() && digest == c.stats(embedding.at).digest {
		f.Problem = fmt.Sprintf("is a copy of the embedding that config.json says is the head: %d bytes for nothing", stored.Bytes())
		c.warn(f)
		return
	}
	f.Problem = "differs from the embedding that config.json says is the head"
	c.fail(f)
}
