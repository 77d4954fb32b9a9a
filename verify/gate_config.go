package verify

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"slipway/manifest"
	"slipway/verify/modelconfig"
	"slipway/verify/report"
	"slipway/verify/scan"
)

func decideConfig(e *evidence) outcome {
	if len(e.sub.shards) == 0 {
		return outcome{report.Outcome{Status: report.NotApplicable, Notes: []string{"there is no .safetensors file"}}}
	}
	var o outcome
	for i := range e.sub.models {
		c := configCheck{evidence: e, model: &e.sub.models[i]}
		c.check()
		o.Findings, o.Notes = append(o.Findings, c.Findings...), append(o.Notes, c.Notes...)
	}
	reason := e.blocked
	if e.sub.quantizationErr != nil && reason == "" {
		reason = e.sub.quantizationPath + " could not be read: see gate declared"
	}
	if reason != "" { // shapes were not compared: undecided unless an error was found
		end := undecided(reason)
		o.Status, o.Notes = end.Status, append(end.Notes, o.Notes...)
	}
	return o
}

// configCheck checks what lies beside the shards of one model.
type configCheck struct {
	*evidence
	outcome
	model  *model
	config *modelconfig.Config
}

func (c *configCheck) check() {
	if c.model.configPath == "" {
		c.Fail(report.Finding{Path: path.Join(c.model.folders[0], configName), Problem: "is missing",
			Hint: "copy it from the base model: servers take the model's dimensions from it"})
		return
	}
	c.otherConfigs()
	if c.model.configErr != nil {
		c.unsound(c.model.configPath, c.model.configErr)
		return
	}
	c.config = c.model.config
	c.basis()
	c.tokens()
	if c.blocked == "" && c.sub.quantizationErr == nil {
		c.shapes()
		c.tie()
	}
}

// otherConfigs reads the config.json of further folders of the model.
func (c *configCheck) otherConfigs() {
	for _, folder := range c.model.folders {
		p := path.Join(folder, configName)
		if f := c.facts[p]; f != nil && p != c.model.configPath {
			err := f.Unreadable()
			if err == nil {
				_, err = modelconfig.Parse(f.Small)
			}
			if err != nil {
				c.unsound(p, err)
			}
		}
	}
}

func (c *configCheck) bad(p, problem, want, got, hint string) {
	c.Fail(report.Finding{Path: p, Problem: problem, Want: want, Got: got, Hint: hint})
}

// unsound records a small file that cannot be read as what it should be.
func (c *configCheck) unsound(p string, err error) {
	f := unsound(p, c.facts[p], err)
	if f.Hint == "" {
		f.Hint = "correct it, or copy it from the base model"
	}
	c.Fail(f)
}

// unsound is the finding for a small file that cannot be read as what it
// should be: it may be another thing altogether.
func unsound(p string, f *scan.File, err error) report.Finding {
	if what, hint := mistaken(f.Head, f.Size); what != "" && f.Err == nil {
		return report.Finding{Path: p, Problem: "is " + what, Hint: hint}
	}
	return report.Finding{Path: p, Problem: err.Error(), Hint: manifest.Hint(err)}
}

// shapes compares the tensors that the config implies with those that are
// there. Which of them are missing is gate coverage's question; so is this
// one, where no contract tells it more.
func (c *configCheck) shapes() {
	tensors := c.logical(c.model)
	expected, known, err := modelconfig.Tensors(c.config, modelconfig.TextPrefix(slices.Collect(maps.Keys(tensors))))
	switch {
	case err != nil:
		c.bad(c.model.configPath, err.Error(), "", "", "write the config of the model that is stored")
	case !known:
		c.Note("%s: architecture %q is not one whose shapes are known here: only the vocabulary was compared", c.model.configPath, manifest.Clip(c.config.Architecture))
		c.embedding(tensors)
	case !c.judgedByConfig(c.model):
		for _, t := range expected {
			if got, there := tensors[t.Name]; there && !slices.Equal(got.shape, t.Shape) {
				c.Fail(c.otherShape(t, got))
			}
		}
	}
}

// otherShape is the finding for a tensor that config.json does not describe;
// its path is the shard's, where the tensor is.
func (e *evidence) otherShape(want modelconfig.Tensor, got logical) report.Finding {
	return report.Finding{Path: got.at.File, Tensor: want.Name, Problem: "has another shape than config.json implies",
		Want: fmt.Sprint(want.Shape), Got: fmt.Sprint(got.shape), Hint: "write the config of the model that is stored, or export the tensor again"}
}

func (c *configCheck) embedding(tensors map[string]logical) {
	for name, tensor := range tensors {
		if manifest.RoleOf(name) != manifest.RoleEmbedding || len(tensor.shape) != 2 {
			continue
		}
		want := []int64{c.config.Vocabulary, c.config.Hidden}
		if (want[0] != 0 && want[0] != tensor.shape[0]) || (want[1] != 0 && want[1] != tensor.shape[1]) {
			c.Fail(c.otherShape(modelconfig.Tensor{Name: name, Shape: want}, tensor))
		}
	}
}

// tie checks that a model with an untied head stores one, where its architecture
// or a stored embedding says that it has one.
func (c *configCheck) tie() {
	if c.config.Tied {
		return
	}
	tensors := c.logical(c.model)
	embedded := false
	for name := range tensors {
		switch manifest.RoleOf(name) {
		case manifest.RoleHead:
			return
		case manifest.RoleEmbedding:
			embedded = true
		}
	}
	if _, known, err := modelconfig.Tensors(c.config, modelconfig.TextPrefix(slices.Collect(maps.Keys(tensors)))); !known && err == nil && !embedded {
		c.Note("%s: neither an embedding nor a head is stored under a name that is known here", c.model.configPath)
		return
	}
	c.bad(c.model.configPath, "the head is not tied to the embedding, and none is stored", "tie_word_embeddings true, or lm_head.weight", "",
		"set tie_word_embeddings to true where the embedding serves as head; else store the head")
}

// tokens compares token ids with the vocabulary.
func (c *configCheck) tokens() {
	folder := path.Dir(c.model.configPath)
	beside := func(name string) []string { return slices.Compact([]string{path.Join(folder, name), name}) }
	c.inVocabulary(c.model.configPath, "eos_token_id", c.config.EndTokens)
	if !slices.ContainsFunc(beside(tokenizerName), c.tokenizer) {
		c.noTokenizer(folder)
	}
	for _, p := range beside(generationName) {
		if c.generation(p) {
			break
		}
	}
}

// noTokenizer warns where a text model has no tokenizer in any usual form.
func (c *configCheck) noTokenizer(folder string) {
	if c.config.Vocabulary == 0 {
		return // no text model
	}
	p := path.Join(folder, tokenizerName)
	hint := "copy it from the base model: without it a server cannot turn text into tokens, unless it brings a tokenizer of its own"
	for _, name := range append([]string{"vocab.json"}, tokenizerModels...) {
		for _, other := range []string{path.Join(folder, name), name} {
			if _, there := c.facts[other]; there {
				c.Note("%s: there is no %s", other, p)
				return
			}
		}
	}
	c.Warn(report.Finding{Path: p, Problem: "is missing", Hint: hint})
}

func (c *configCheck) inVocabulary(p, key string, ids []int64) {
	for _, id := range ids {
		if id < 0 || c.config.Vocabulary > 0 && id >= c.config.Vocabulary {
			c.bad(p, key+" is not in the vocabulary", fmt.Sprintf("0 to %d", c.config.Vocabulary-1), fmt.Sprint(id),
				"take the id from the base model's file of this name")
		}
	}
}

// tokenizer checks one tokenizer.json; it reports whether there is one.
func (c *configCheck) tokenizer(p string) bool {
	const again = "copy it from the base model"
	f := c.facts[p]
	if f == nil {
		return false
	}
	v := c.sub.vocabularies[p]
	switch err := f.Unreadable(); {
	case err != nil:
		c.bad(p, err.Error(), "", "", manifest.Hint(err))
	case v == nil:
	case v.Err != nil:
		c.unsound(p, fmt.Errorf("is not sound JSON: %w", v.Err))
	case v.Tokens == 0:
		c.bad(p, "has no token", "model.vocab, or added_tokens", "", again)
	case c.config.Vocabulary > 0 && v.Largest >= c.config.Vocabulary:
		c.bad(p, "has token ids beyond config.json's vocab_size", fmt.Sprintf("at most %d", c.config.Vocabulary-1), fmt.Sprint(v.Largest),
			"take tokenizer and config from one model")
	default:
		c.Note("%s: %d tokens, largest id %d, vocab_size %d", p, v.Tokens, v.Largest, c.config.Vocabulary)
	}
	return true
}

// generation checks one generation_config.json; it reports whether there is one.
func (c *configCheck) generation(p string) bool {
	f := c.facts[p]
	if f == nil {
		return false
	}
	var ends []int64
	err := f.Unreadable()
	if err == nil {
		ends, err = modelconfig.EndTokens(f.Small)
	}
	if err != nil {
		c.unsound(p, err)
		return true
	}
	c.inVocabulary(p, "eos_token_id", ends)
	for _, id := range c.config.EndTokens {
		if len(ends) > 0 && !slices.Contains(ends, id) {
			c.Warn(report.Finding{Path: p, Problem: "does not end on config.json's eos_token_id", Want: fmt.Sprint(id), Got: fmt.Sprint(ends),
				Hint: "list it too, or answers may run on past their end"})
		}
	}
	return true
}

// basis refuses a config.json that says so of a model which the quantization
// manifest describes: its formats have no such basis, so that either the file or
// the weights are wrong.
func (c *configCheck) basis() {
	f := c.facts[c.model.configPath]
	var content any
	if !c.model.quantized || f == nil || manifest.DecodeLoose(f.Small, &content) != nil {
		return
	}
	for _, key := range modelconfig.BasisKeys(content) {
		c.bad(c.model.configPath, fmt.Sprintf("%s says that weights are stored in another basis than the model's", manifest.Clip(key)),
			"no such key", "", "store the weights in the model's own basis and remove the key, or list the tensors as float")
	}
}
