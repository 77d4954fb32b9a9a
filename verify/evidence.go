package verify

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/audit"
	"slipway/verify/modelconfig"
	"slipway/verify/profiles"
	"slipway/verify/report"
	"slipway/verify/scan"
	"slipway/verify/script"
	"slipway/verify/texts"
)

// evidence is all that a gate may look at.
type evidence struct {
	tree     *content.Tree // its listing; no gate opens a file
	facts    map[string]*scan.File
	sub      *submission
	options  Options
	contract *manifest.Contract // trusted, or nil
	base     *manifest.Contract // the same, under the submission's prefix of names

	stored  map[manifest.StoredTensor]safetensors.Tensor
	blocked string           // why the stored tensors are not all known, or ""
	audit   *audit.Result    // nil without a readable quantization manifest
	lists   report.Accounts  // what gate coverage came upon, for the report
	rebuilt *rebuilt         // nil where the runtime was not built again
	script  *script.Analysis // what serve.sh does; nil before analyse
	python  *searchedPython  // nil before searchPython
}

// outcome is what a gate decides.
type outcome struct{ report.Outcome }

// add takes over what a search found.
func (o *outcome) add(f texts.Found) {
	o.Findings, o.Notes = append(o.Findings, f.Findings...), append(o.Notes, f.Notes...)
}

func newEvidence(tree *content.Tree, facts map[string]*scan.File, sub *submission, options Options, contract *manifest.Contract) *evidence {
	e := &evidence{tree: tree, facts: facts, sub: sub, options: options, contract: contract,
		stored: map[manifest.StoredTensor]safetensors.Tensor{}}
	var names []string // of the model that the contract is held against
	for _, shard := range sub.shards {
		f := facts[shard]
		switch {
		case f.Err != nil:
			e.blocked = fmt.Sprintf("%s could not be read: see gate digests", shard)
		case f.Header == nil:
			e.blocked = fmt.Sprintf("%s has no valid header: see gate safetensors", shard)
		default:
			for _, t := range f.Header.Tensors {
				e.stored[manifest.StoredTensor{File: shard, Tensor: t.Name}] = t
			}
		}
	}
	for i := range sub.models {
		for name := range e.logical(&sub.models[i]) {
			names = append(names, name)
		}
		if sub.models[i].quantized {
			break // the contract is that of this one
		}
	}
	e.base = underPrefix(contract, names)
	if e.blocked == "" && sub.quantization != nil && len(sub.models) > 0 {
		own := map[manifest.StoredTensor]safetensors.Tensor{} // other models are not in its counts
		for _, key := range e.storedOf(&e.sub.models[0]) {
			own[key] = e.stored[key]
		}
		audited := audit.Evidence{Path: sub.quantizationPath, Quantization: *sub.quantization, Uses: sub.uses, Base: e.base, Rules: e.rules(), Facts: facts,
			Stored: e.stored, Own: own, Unpaired: sub.unpaired, Samples: sub.baseSamples}
		e.audit = audited.Run()
	}
	return e
}

// undecided is the end of a gate whose input another gate refused.
func undecided(reason string) outcome {
	return outcome{report.Outcome{Status: report.Undecided, Notes: []string{"could not be decided: " + reason}}}
}

// setDigest returns the digest of the set of files; ok is false when one of
// them could not be read.
func (e *evidence) setDigest() (digest manifest.Digest, ok bool) {
	files := make([]manifest.File, 0, len(e.tree.Files))
	for _, f := range e.tree.Files {
		facts := e.facts[f.Path]
		if facts.Err != nil {
			return manifest.Digest{}, false
		}
		file := f.File
		file.Digest = facts.Digest
		files = append(files, file)
	}
	return manifest.SetDigest(files), true
}

// stats returns what the pass over a stored tensor left.
func (e *evidence) stats(t manifest.StoredTensor) *scan.Tensor {
	return e.facts[t.File].Tensors[t.Tensor]
}

// rules returns the profile's ternary rule, or one without bounds.
func (e *evidence) rules() profiles.Ternary {
	if e.options.Profile.Ternary != nil {
		return *e.options.Profile.Ternary
	}
	return profiles.Ternary{}
}

// underPrefix returns the contract with the text model's names under the short
// prefix where the submission's have that: a text-only file of a multimodal
// base holds the same tensors by their other names.
func underPrefix(contract *manifest.Contract, names []string) *manifest.Contract {
	if contract == nil || modelconfig.TextPrefix(contract.Names()) != modelconfig.LongPrefix || modelconfig.TextPrefix(names) != modelconfig.ShortPrefix {
		return contract
	}
	renamed := *contract
	renamed.Tensors = make(map[string]manifest.ContractTensor, len(contract.Tensors))
	for name, tensor := range contract.Tensors {
		if rest, ok := strings.CutPrefix(name, modelconfig.LongPrefix); ok {
			name = modelconfig.ShortPrefix + rest
		}
		renamed.Tensors[name] = tensor
	}
	return &renamed
}

// logical is a tensor of the model as the submission presents it.
type logical struct {
	shape []int64
	kind  string                // of its entry; "" in a plain checkpoint
	at    manifest.StoredTensor // of its codes, if packed
}

// logical returns the tensors of a model by name: those of the quantization
// manifest where it describes the model, else those stored. Of a name that is
// stored twice, the first file counts.
func (e *evidence) logical(m *model) map[string]logical {
	tensors := map[string]logical{}
	if m.quantized {
		if e.sub.quantization == nil {
			return tensors
		}
		for name, entry := range e.sub.quantization.Tensors {
			at := manifest.StoredTensor{File: entry.File, Tensor: entry.Tensor}
			if entry.Codes != nil {
				at = *entry.Codes
			}
			tensors[name] = logical{entry.Shape, entry.Kind, at}
		}
		return tensors
	}
	for _, key := range e.storedOf(m) {
		if _, twice := tensors[key.Tensor]; !twice {
			tensors[key.Tensor] = logical{e.stored[key].Shape, "", key}
		}
	}
	return tensors
}

// storedOf lists the stored tensors of a model's folders, by file and name.
func (e *evidence) storedOf(m *model) []manifest.StoredTensor {
	var keys []manifest.StoredTensor
	for key := range e.stored {
		if slices.Contains(m.folders, path.Dir(key.File)) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b manifest.StoredTensor) int {
		return cmp.Or(strings.Compare(a.File, b.File), report.CompareNatural(a.Tensor, b.Tensor))
	})
	return keys
}

// judgedByConfig reports whether gate coverage holds a model against what its
// own config.json implies: where no contract says better.
func (e *evidence) judgedByConfig(m *model) bool {
	return slices.Contains(e.options.Profile.Gates, "coverage") && !e.isSecond(m) &&
		(e.base == nil || e.sub.models[0].quantized && !m.quantized)
}

// isSecond reports whether a model is one that the task does not take beside
// the first: where it has a ternary rule for every submission.
func (e *evidence) isSecond(m *model) bool {
	rule := e.options.Profile.Ternary
	return rule != nil && !rule.WhenDeclared && m != &e.sub.models[0]
}
