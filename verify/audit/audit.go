// Package audit looks at every entry of a quantization manifest: whether the
// stored tensors that it names hold what it claims, whether they look like trained
// weights, and whether what is stored beside them repeats them. It counts what the
// ternary and stored rules compare. It opens no file but to place a bias that a
// digest has already found wrong: all else is what one pass over the files left.
package audit

import (
	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
	"slipway/verify/report"
	"slipway/verify/scan"
)

// Result is what looking at every entry of the quantization manifest gave.
type Result struct {
	Findings []report.Finding
	found    map[string]Found
	Counts   report.Counts
	Tensors  []report.Tensor
}

// Evidence is what an audit looks at.
type Evidence struct {
	Path         string // of the quantization manifest
	Quantization manifest.Quantization
	Uses         map[manifest.StoredTensor][]Use // who refers to a stored tensor
	Base         *manifest.Contract              // trusted, under the submission's names; nil where nobody says
	Rules        profiles.Ternary
	Facts        map[string]*scan.File
	Stored       map[manifest.StoredTensor]safetensors.Tensor // of all models
	Own          map[manifest.StoredTensor]safetensors.Tensor // of the one that the quantization manifest describes
	Unpaired     map[string]*Unpaired                         // by entry, its first bias that is not the negative of its scale
	Samples      map[string]BaseSample                        // by entry, some of the base's own weights; nil where the base is not at hand
}

// stats returns what the pass over a stored tensor left.
func (e *Evidence) stats(t manifest.StoredTensor) *scan.Tensor {
	return e.Facts[t.File].Tensors[t.Tensor]
}

// groupMinimum is the smallest scale unit, 32 weights where no profile says.
func (e *Evidence) groupMinimum() int64 {
	if minimum := e.Rules.GroupMinimum; minimum > 0 {
		return minimum
	}
	return 32
}

// Run looks at every entry.
func (e *Evidence) Run() *Result {
	q := e.Quantization
	a := &Result{found: map[string]Found{}}
	alike := e.storedAlike(q)
	for _, name := range q.Names() {
		check := entryCheck{Evidence: e, name: name, entry: q.Tensors[name], alike: alike}
		check.kind()
		if !check.present() { // gate coverage says so
			a.found[name] = Found{Failed: true}
			continue
		}
		switch check.entry.Kind {
		case manifest.KindPacked2Bit:
			check.packed()
		case manifest.KindLiteral:
			check.literal()
		default:
			check.float()
		}
		check.againstBase()
		check.sanity()
		a.Findings = append(a.Findings, check.Findings...)
		failed := check.Failed()
		a.found[name] = Found{Failed: failed, Unit: check.unit, Asymmetric: check.asymmetric}
	}
	a.Findings = append(a.Findings, e.copies(q)...)
	e.forgetSamples()
	a.Counts = Count(e.Base, q, e.Own, e.Rules, a.found)
	a.Tensors = e.tensorReports(a.found)
	return a
}

// forgetSamples lets go of what tensors were compared by: of a model of thousands
// it is the most of what is held, and nothing is compared any more.
func (e *Evidence) forgetSamples() {
	for _, file := range e.Facts {
		for _, tensor := range file.Tensors {
			tensor.Kept, tensor.Signs = nil, nil
		}
	}
}
