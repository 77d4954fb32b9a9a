package verify

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/modelconfig"
	"slipway/verify/profiles"
	"slipway/verify/report"
	"slipway/verify/words"
)

func decideCoverage(e *evidence) outcome {
	var o outcome
	switch {
	case len(e.sub.shards) == 0:
		o.Fail(report.Finding{Problem: "there is no .safetensors file, and so no tensor of the base", Hint: "see gate files"})
		return o
	case e.blocked != "":
		return undecided(e.blocked)
	case e.sub.quantizationErr != nil:
		return undecided(e.sub.quantizationPath + " could not be read: see gate declared")
	}
	if e.base != nil && !e.sub.models[0].quantized {
		all := merged(e.sub.models) // the contract is that of all bases together
		o.seconds(e)
		o.cover(&coverage{evidence: e, model: &all, base: e.base})
		return o
	}
	for i := range e.sub.models {
		m := &e.sub.models[i]
		c := &coverage{evidence: e, model: m}
		if i == 0 {
			c.base = e.base
		} else if e.isSecond(m) {
			continue
		} else {
			o.Note("%s: another model, judged by that file (self-declared)", m.name())
		}
		o.cover(c)
	}
	o.seconds(e)
	return o
}

// cover adds what judging one model gave.
func (o *outcome) cover(c *coverage) {
	c.tensors = c.logical(c.model)
	if c.model.quantized {
		c.references()
	} else {
		c.plain()
	}
	c.names()
	c.heads()
	o.Findings, o.Notes = append(o.Findings, c.Findings...), append(o.Notes, c.Notes...)
}

// seconds refuses the models that the task does not take beside the first.
func (o *outcome) seconds(e *evidence) {
	for i := range e.sub.models {
		if m := &e.sub.models[i]; e.isSecond(m) {
			o.Fail(report.Finding{Path: m.name(), Problem: fmt.Sprintf("is a second model: %s beside the model that is submitted", words.Plural(len(e.storedOf(m)), "tensor")),
				Hint: fmt.Sprintf("remove the folder %s, or list its tensors in the quantization manifest", m.folders[0])})
		}
	}
}

// coverage compares a model's logical tensors with what the base has, and the
// stored tensors with what refers to them: nothing may be missing, and nothing
// may be there twice or without a part to play.
type coverage struct {
	*evidence
	outcome
	model   *model
	base    *manifest.Contract // of this model; nil: its own config.json counts
	tensors map[string]logical

	same, unknown int // tensors that have to be unchanged with the base's digest, and without a known one
}

// scaleSuffix marks the block scales beside an FP8 weight.
const scaleSuffix = "_scale_inv"

// plain takes stored tensors for the model's own. Block scales belong to their
// weight. Values must be finite; packed forms have gate ternary for that.
func (c *coverage) plain() {
	for _, key := range c.storedOf(c.model) {
		facts := c.stats(key)
		if facts.NonFinite > 0 {
			c.Fail(report.Finding{Path: key.File, Tensor: key.Tensor, Hint: "export it again, and look for the step that made them",
				Problem: fmt.Sprintf("%s NaN or infinite, the first at element %d", words.Are(facts.NonFinite, "element"), facts.FirstNonFinite)})
		}
		if other := c.tensors[key.Tensor].at.File; path.Dir(other) != path.Dir(key.File) { // within one folder, gate index says so
			c.Fail(report.Finding{Path: key.File, Tensor: key.Tensor, Problem: "is stored in several folders", Got: other, Hint: "remove one"})
		}
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
	if c.model.config == nil || c.model.config.QuantBlock == nil {
		return
	}
	for name, tensor := range c.tensors {
		dtype := c.stored[tensor.at].DType
		_, scaled := c.tensors[name+scaleSuffix]
		if (dtype == safetensors.F8E4M3 || dtype == safetensors.F8E5M2) && !scaled {
			c.Fail(report.Finding{Path: tensor.at.File, Tensor: name, Problem: "is FP8 without its block scales", Want: name + scaleSuffix,
				Hint: "store the scales beside it, or the weight in BF16"})
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
	if config := c.model.config; config != nil && len(config.QuantBlock) == len(weight.shape) {
		want := make([]int64, len(weight.shape))
		for i, block := range config.QuantBlock {
			want[i] = (weight.shape[i] + max(block, 1) - 1) / max(block, 1)
		}
		if !slices.Equal(want, scale.shape) {
			c.Fail(report.Finding{Path: scale.at.File, Tensor: name, Problem: "does not have one scale for each block", Want: fmt.Sprint(want), Got: fmt.Sprint(scale.shape),
				Hint: fmt.Sprintf("config.json's weight_block_size is %v: quantize with it, or correct it", config.QuantBlock)})
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
	config, p := c.model.config, c.model.configPath
	if config == nil {
		c.Note("no contract and no readable config.json: only references were checked")
		return
	}
	prefix := modelconfig.TextPrefix(slices.Collect(maps.Keys(c.tensors)))
	expected, known, err := modelconfig.Tensors(config, prefix)
	switch {
	case err != nil:
		c.Note("%s: %v; only references were checked", p, err)
		return
	case !known:
		c.Note("%s: architecture %q is not one whose tensors are known here: only references were checked", p, manifest.Clip(config.Architecture))
		return
	}
	c.Note("no contract: the tensors are those that the submission's own %s implies (self-declared)", p)
	if !modelconfig.PrefixAllowed(config.Architecture, prefix) {
		c.wrongPrefix(modelconfig.ShortPrefix, prefix, config.Architecture)
	}
	c.againstExpected(expected)
}

// wrongPrefix says once what is wrong with all names of the text model; the
// tensors are then compared under the names that they have.
func (c *coverage) wrongPrefix(want, got, owner string) {
	n := 0
	for name := range c.tensors {
		if strings.HasPrefix(name, got) {
			n++
		}
	}
	c.Fail(report.Finding{Path: c.model.name(), Problem: fmt.Sprintf("the names of %s begin otherwise than those of %s", words.Plural(n, "tensor"), owner),
		Want: want, Got: got, Hint: "rename the tensors, or loaders do not find them"})
}

// againstExpected compares the tensors with those that config.json implies.
func (c *coverage) againstExpected(expected []modelconfig.Tensor) {
	wanted := map[string][]int64{}
	var missing []string
	for _, t := range expected {
		wanted[t.Name] = t.Shape
		got, there := c.tensors[t.Name]
		switch {
		case there && !slices.Equal(got.shape, t.Shape):
			c.Fail(c.otherShape(t, got))
		case !there && manifest.RoleOf(t.Name) != manifest.RoleHead: // gate config compares the tie flag
			missing = append(missing, t.Name)
		}
	}
	c.missing(missing, wanted)
	var extra []string
	for name, tensor := range c.tensors {
		_, known := wanted[name]
		role := manifest.RoleOf(name)
		switch {
		case known, role == manifest.RoleHead:
		case role == manifest.RoleVision || role == manifest.RoleMTP:
			c.besidesText(name, tensor, role)
		default:
			extra = append(extra, name)
		}
	}
	c.extra(extra, wanted, report.Finding{Problem: "is not a tensor of the model that config.json describes",
		Hint: "remove it, or write the config of the model that is stored"}, c.Fail)
}

// besidesText checks a vision or MTP tensor: allowed by the profile, and kept
// in floating point.
func (c *coverage) besidesText(name string, tensor logical, role manifest.Role) {
	if c.options.Profile.VisionMTP == profiles.Forbidden {
		c.Fail(report.Finding{Path: tensor.at.File, Tensor: name, Problem: fmt.Sprintf("%s tensors are not allowed", role), Hint: "leave them out"})
	}
	if tensor.kind != "" && tensor.kind != manifest.KindFloat {
		c.Fail(report.Finding{Path: tensor.at.File, Tensor: name, Problem: fmt.Sprintf("%s tensors stay unchanged", role), Want: manifest.KindFloat, Got: tensor.kind,
			Hint: "store it as in the base, or leave all of them out where the task allows that"})
	}
}

// heads checks the output heads: a model has one. Where config.json says that
// the embedding serves as head, loaders ignore a stored one.
func (c *coverage) heads() {
	var heads, embeddings []string
	for _, name := range slices.Sorted(maps.Keys(c.tensors)) {
		switch manifest.RoleOf(name) {
		case manifest.RoleHead:
			heads = append(heads, name)
		case manifest.RoleEmbedding:
			embeddings = append(embeddings, name)
		}
	}
	for i, name := range heads {
		if i > 0 && !c.ofBase(name) {
			c.Fail(report.Finding{Path: c.tensors[name].at.File, Tensor: name, Problem: "is a second head", Got: heads[0],
				Hint: "keep the one that the server uses: two could hold two models' answers"})
		}
		if len(embeddings) > 0 {
			c.tiedHead(name, c.tensors[name], c.tensors[embeddings[0]])
		}
	}
}

// ofBase reports whether the contract names a tensor.
func (c *coverage) ofBase(name string) bool {
	if c.base == nil {
		return false
	}
	_, named := c.base.Tensors[name]
	return named
}

// tiedHead compares a stored head with the embedding that it is tied to.
func (c *coverage) tiedHead(name string, head, embedding logical) {
	if c.model.config == nil || !c.model.config.Tied || head.at == embedding.at {
		return
	}
	stored, there := c.stored[head.at]
	if _, also := c.stored[embedding.at]; !there || !also {
		return
	}
	digest, other := c.stats(head.at).Digest, c.stats(embedding.at).Digest
	if digest.IsZero() || other.IsZero() {
		return // shards without manifest or index, which gate index refuses
	}
	f := report.Finding{Path: head.at.File, Tensor: name, Hint: "drop it, or set tie_word_embeddings to false"}
	if digest == other {
		f.Problem = fmt.Sprintf("is a copy of the embedding that config.json says is the head: %s bytes for nothing", words.Grouped(stored.Bytes()))
		c.Warn(f)
		return
	}
	f.Problem = "differs from the embedding that config.json says is the head"
	c.Fail(f)
}
