package verify

import (
	"maps"
	"path"
	"regexp"
	"slices"

	"slipway/manifest"
	"slipway/verify/audit"
	"slipway/verify/report"
	"slipway/verify/words"
)

func decideTernary(e *evidence) outcome {
	if end, done := e.withoutAudit(); done {
		return end
	}
	o := outcome{report.Outcome{Findings: slices.Clone(e.audit.Findings)}}
	o.formatText(e)
	o.base(e)
	o.unreached(e)
	counts, bound := e.audit.Counts, e.rules().FractionAbove
	switch {
	case bound.Denominator == 0:
		o.Note("the profile has no bound")
	case counts.FractionMargin > 0:
		o.Note("%s", counts.FractionText(ratio(bound)))
	default:
		o.Fail(report.Finding{Path: e.sub.quantizationPath, Problem: "too little of the model is ternary",
			Want: "T above " + ratio(bound) + " of T+s+f", Got: counts.Fraction, Hint: "use larger groups, or make more linear tensors ternary"})
	}
	return e.asFarAsThere(o)
}

// base says what was compared with the base's own weights, or that nothing was.
func (o *outcome) base(e *evidence) {
	if e.options.Base == nil {
		o.Note("without the base's weights (--base) it was not decided whether codes lie along the right axis, in the right bit order and under the right names")
		return
	}
	compared := 0
	for name := range e.sub.baseSamples {
		if slices.Equal(e.sub.baseSamples[name].Tensor.Shape, e.sub.quantization.Tensors[name].Shape) {
			compared++
		}
	}
	o.Note("compared with weights of the base: %d of %d ternary tensors", compared, e.audit.Counts.Packed+e.audit.Counts.Literal)
}

// unreached says how much the embedding has that no token of the tokenizer
// reaches. Bases have such rows, mostly to round their number up; what they hold
// follows from nothing, but for a contract's digest. Rows of ternary tensors in
// them are found as they are everywhere.
func (o *outcome) unreached(e *evidence) {
	m := &e.sub.models[0]
	v := e.sub.vocabularies[path.Join(path.Dir(m.configPath), tokenizerName)]
	if v == nil || v.Err != nil || v.Largest < 0 {
		return
	}
	tensors := e.logical(m)
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		tensor := tensors[name]
		if audit.RoleOf(e.base, name) != manifest.RoleEmbedding || len(tensor.shape) != 2 || tensor.shape[0] <= v.Largest+1 {
			continue
		}
		if _, there := e.stored[tensor.at]; there && e.base != nil {
			if digest := e.stats(tensor.at).Digest; !digest.IsZero() && digest.Hex() == e.base.Tensors[name].SHA256 {
				continue
			}
		}
		rows := tensor.shape[0] - v.Largest - 1
		o.Note("%s: no token reaches the last %s of %s, %s elements; what they hold was not decided, but that rows of a ternary tensor would be found there",
			name, words.Plural(int(rows), "row"), words.Grouped(tensor.shape[0]), words.Grouped(rows*tensor.shape[1]))
	}
}

// knownFormat is the packing that this package reads, as the quantization
// manifest's format may name it: by its kind, or in full.
var knownFormat = regexp.MustCompile(`^packed_2bit(: U8, four codes a byte, lowest bits first along the input axis; value = \(code - 1\) \* scale; (BF16|F16|F32) scale per group of \d+ inputs)?$`)

// formatText warns where the manifest says in words that its packed tensors
// are something else than they are read as.
func (o *outcome) formatText(e *evidence) {
	text, plain := e.sub.quantization.Format, false
	for _, entry := range e.sub.quantization.Tensors {
		if entry.Format != "" {
			return // the entries say themselves how they are packed
		}
		plain = plain || entry.Kind == manifest.KindPacked2Bit
	}
	if text == "" || !plain || knownFormat.MatchString(text) {
		return
	}
	o.Warn(report.Finding{Path: e.sub.quantizationPath, Problem: "format names another packing than the one that packed tensors are read as",
		Want: "packed_2bit: U8, four codes a byte, lowest bits first along the input axis; value = (code - 1) * scale", Got: manifest.Clip(text),
		Hint: "pack the codes so, or give each entry the format that it has; if they are packed so, correct the text"})
}
