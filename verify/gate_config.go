package verify

import (
	"fmt"
	"path"
	"slices"

	"slipway/manifest"
)

func decideConfig(e *evidence) outcome {
	if len(e.sub.shards) == 0 {
		return outcome{status: NotApplicable, notes: []string{"there is no .safetensors file"}}
	}
	var o outcome
	if e.sub.configPath == "" {
		o.fail(Finding{Path: path.Join(e.sub.folders[0], "config.json"), Problem: "is missing", Hint: "servers take the model's dimensions from it"})
		return o
	}
	if e.sub.configErr != nil {
		o.fail(Finding{Path: e.sub.configPath, Problem: e.sub.configErr.Error()})
		return o
	}
	o.otherConfigs(e)
	c := configCheck{evidence: e, config: e.sub.config}
	c.tokens()
	if e.blocked != "" {
		c.status = Undecided // unless an error was found above
		c.note("shapes were not compared: %s", e.blocked)
	} else if e.sub.quantizationErr == nil {
		c.shapes()
		c.tie()
	}
	c.findings = append(c.findings, o.findings...)
	return c.outcome
}

// otherConfigs reads the config.json of further folders with weights.
func (o *outcome) otherConfigs(e *evidence) {
	for _, folder := range e.sub.folders {
		p := path.Join(folder, "config.json")
		if f := e.facts[p]; f != nil && p != e.sub.configPath {
			err := f.unreadable()
			if err == nil {
				_, err = parseConfig(f.small)
			}
			if err != nil {
				o.fail(Finding{Path: p, Problem: err.Error()})
			}
		}
	}
}

type configCheck struct {
	*evidence
	outcome
	config *modelConfig
}

func (c *configCheck) bad(p, problem, want, got string) {
	c.fail(Finding{Path: p, Problem: problem, Want: want, Got: got})
}

// shapes compares the tensors that the config implies with those that are
// there. Which of them are missing is gate coverage's question.
func (c *configCheck) shapes() {
	shapes := c.logicalShapes()
	names := make([]string, 0, len(shapes))
	for name := range shapes {
		names = append(names, name)
	}
	expected, known, err := expectedTensors(c.config, textPrefix(names))
	if err != nil {
		c.bad(c.sub.configPath, err.Error(), "", "")
		return
	}
	if !known {
		c.note("architecture %q is not one whose shapes are known here: only the vocabulary was compared", clip(c.config.Architecture))
		c.embedding(shapes)
		return
	}
	for _, t := range expected {
		if got, there := shapes[t.Name]; there && !slices.Equal(got, t.Shape) {
			c.fail(Finding{Path: c.sub.configPath, Tensor: t.Name, Problem: "has another shape than config.json implies",
				Want: fmt.Sprint(t.Shape), Got: fmt.Sprint(got)})
		}
	}
}

func (c *configCheck) embedding(shapes map[string][]int64) {
	for name, shape := range shapes {
		if roleByName(name) != manifest.RoleEmbedding || len(shape) != 2 {
			continue
		}
		want := []int64{c.config.Vocabulary, c.config.Hidden}
		if (want[0] != 0 && want[0] != shape[0]) || (want[1] != 0 && want[1] != shape[1]) {
			c.fail(Finding{Path: c.sub.configPath, Tensor: name, Problem: "has another shape than config.json implies",
				Want: fmt.Sprint(want), Got: fmt.Sprint(shape)})
		}
	}
}

// tie checks that a model with an untied head stores one.
func (c *configCheck) tie() {
	if c.config.Tied {
		return
	}
	for name := range c.logicalShapes() {
		if roleByName(name) == manifest.RoleHead {
			return
		}
	}
	c.bad(c.sub.configPath, "the head is not tied to the embedding, and none is stored", "tie_word_embeddings true, or lm_head.weight", "")
}

// tokens compares token ids with the vocabulary.
func (c *configCheck) tokens() {
	folder := path.Dir(c.sub.configPath)
	c.inVocabulary(c.sub.configPath, "eos_token_id", c.config.EndTokens)
	for _, p := range slices.Compact([]string{path.Join(folder, "tokenizer.json"), "tokenizer.json"}) {
		if c.tokenizer(p) {
			break
		}
	}
	for _, p := range slices.Compact([]string{path.Join(folder, "generation_config.json"), "generation_config.json"}) {
		if c.generation(p) {
			break
		}
	}
}

func (c *configCheck) inVocabulary(p, key string, ids []int64) {
	for _, id := range ids {
		if id < 0 || c.config.Vocabulary > 0 && id >= c.config.Vocabulary {
			c.bad(p, key+" is not in the vocabulary", fmt.Sprintf("0 to %d", c.config.Vocabulary-1), fmt.Sprint(id))
		}
	}
}

// tokenizer checks one tokenizer.json; it reports whether there is one.
func (c *configCheck) tokenizer(p string) bool {
	f := c.facts[p]
	if f == nil {
		return false
	}
	switch err := f.unreadable(); {
	case err != nil:
		c.bad(p, err.Error(), "", "")
	case f.vocabulary == nil:
	case f.vocabulary.err != nil:
		c.bad(p, "is not sound JSON: "+f.vocabulary.err.Error(), "", "")
	case c.config.Vocabulary > 0 && f.vocabulary.largest >= c.config.Vocabulary:
		c.bad(p, "has token ids beyond config.json's vocab_size", fmt.Sprintf("at most %d", c.config.Vocabulary-1), fmt.Sprint(f.vocabulary.largest))
	default:
		c.note("%s: %d tokens, largest id %d, vocab_size %d", p, f.vocabulary.tokens, f.vocabulary.largest, c.config.Vocabulary)
	}
	return true
}

// generation checks one generation_config.json; it reports whether there is one.
func (c *configCheck) generation(p string) bool {
	f := c.facts[p]
	if f == nil {
		return false
	}
	var fields configFields
	err := f.unreadable()
	if err == nil {
		err = manifest.DecodeStrict(f.small, &fields)
	}
	var ends []int64
	if err == nil {
		ends, err = fields.tokens("eos_token_id")
	}
	if err != nil {
		c.bad(p, err.Error(), "", "")
		return true
	}
	c.inVocabulary(p, "eos_token_id", ends)
	for _, id := range c.config.EndTokens {
		if len(ends) > 0 && !slices.Contains(ends, id) {
			c.warn(Finding{Path: p, Problem: "does not end on config.json's eos_token_id", Want: fmt.Sprint(id), Got: fmt.Sprint(ends)})
		}
	}
	return true
}
