package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
)

// evidence is all that a gate may look at.
type evidence struct {
	tree     *content.Tree // its listing; no gate opens a file
	facts    map[string]*fileFacts
	sub      *submission
	options  Options
	contract *manifest.Contract // trusted, or nil
	base     *manifest.Contract // the same, under the submission's prefix of names

	stored  map[manifest.StoredTensor]safetensors.Tensor
	blocked string // why the stored tensors are not all known, or ""
	audit   *audit // nil without a readable quantization manifest
}

// outcome is what a gate decides. A gate with an error fails whatever status
// it gave; no status means pass.
type outcome struct {
	status   Status
	findings []Finding
	notes    []string
}

func (o *outcome) fail(f Finding) {
	f.Level = Error
	o.findings = append(o.findings, f)
}

func (o *outcome) warn(f Finding) {
	f.Level = Warning
	o.findings = append(o.findings, f)
}

func (o *outcome) note(format string, args ...any) {
	o.notes = append(o.notes, fmt.Sprintf(format, args...))
}

func newEvidence(tree *content.Tree, facts map[string]*fileFacts, sub *submission, options Options, contract *manifest.Contract) *evidence {
	e := &evidence{tree: tree, facts: facts, sub: sub, options: options, contract: contract,
		stored: map[manifest.StoredTensor]safetensors.Tensor{}}
	for _, shard := range sub.shards {
		f := facts[shard]
		switch {
		case f.err != nil:
			e.blocked = fmt.Sprintf("%s could not be read: see gate digests", shard)
		case f.header == nil:
			e.blocked = fmt.Sprintf("%s has no valid header: see gate safetensors", shard)
		default:
			for _, t := range f.header.Tensors {
				e.stored[manifest.StoredTensor{File: shard, Tensor: t.Name}] = t
			}
		}
	}
	e.base = underPrefix(contract, slices.Collect(maps.Keys(e.logicalShapes())))
	if e.blocked == "" && sub.quantization != nil {
		e.audit = e.runAudit()
	}
	return e
}

// undecided is the end of a gate whose input another gate refused.
func undecided(reason string) outcome {
	return outcome{status: Undecided, notes: []string{"could not be decided: " + reason}}
}

// setDigest returns the digest of the set of files; ok is false when one of
// them could not be read.
func (e *evidence) setDigest() (digest manifest.Digest, ok bool) {
	files := make([]manifest.File, 0, len(e.tree.Files))
	for _, f := range e.tree.Files {
		facts := e.facts[f.Path]
		if facts.err != nil {
			return manifest.Digest{}, false
		}
		file := f.File
		file.Digest = facts.digest
		files = append(files, file)
	}
	return manifest.SetDigest(files), true
}

// stats returns what the pass over a stored tensor left.
func (e *evidence) stats(t manifest.StoredTensor) *tensorFacts {
	return e.facts[t.File].tensors[t.Tensor]
}

// rules returns the profile's ternary rule, or one without bounds.
func (e *evidence) rules() profiles.Ternary {
	if e.options.Profile.Ternary != nil {
		return *e.options.Profile.Ternary
	}
	return profiles.Ternary{}
}

// groupMinimum is the smallest scale unit, 32 weights where no profile says.
func (e *evidence) groupMinimum() int64 {
	if minimum := e.rules().GroupMinimum; minimum > 0 {
		return minimum
	}
	return 32
}

// The prefixes of the text model's names: published files of multimodal models
// have the long one, text-only files of the same models the short one.
const (
	longPrefix  = "model.language_model."
	shortPrefix = "model."
)

// textPrefix returns the one that names have.
func textPrefix(names []string) string {
	if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, longPrefix) }) {
		return longPrefix
	}
	return shortPrefix
}

// underPrefix returns the contract with the text model's names under the
// prefix that the submission's have: the same tensors by their other names.
func underPrefix(contract *manifest.Contract, names []string) *manifest.Contract {
	if contract == nil || textPrefix(contract.Names()) != longPrefix || textPrefix(names) != shortPrefix {
		return contract
	}
	renamed := *contract
	renamed.Tensors = make(map[string]manifest.ContractTensor, len(contract.Tensors))
	for name, tensor := range contract.Tensors {
		if rest, ok := strings.CutPrefix(name, longPrefix); ok {
			name = shortPrefix + rest
		}
		renamed.Tensors[name] = tensor
	}
	return &renamed
}

// logicalShapes returns the names and shapes of the model's tensors: those of
// the quantization manifest, else those stored.
func (e *evidence) logicalShapes() map[string][]int64 {
	shapes := map[string][]int64{}
	if q := e.sub.quantization; q != nil {
		for name, entry := range q.Tensors {
			shapes[name] = entry.Shape
		}
		return shapes
	}
	for key, tensor := range e.stored {
		shapes[key.Tensor] = tensor.Shape
	}
	return shapes
}

// clip bounds text of the submission that a finding quotes.
func clip(text string) string {
	if len(text) > 160 {
		return text[:160] + "..."
	}
	return text
}
