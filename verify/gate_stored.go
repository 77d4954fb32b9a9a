package verify

import (
	"fmt"
	"slices"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/words"
)

func decideStored(e *evidence) outcome {
	if end, done := e.withoutAudit(); done {
		return end
	}
	var o outcome
	counts, bound := e.audit.Counts, e.rules().StoredAtMost
	if counts.BaseSelfDeclared {
		o.Note("P0 is self-declared: no contract of the base was given")
	}
	switch {
	case bound.Denominator == 0:
		o.Note("the profile has no bound")
	case counts.StoredMargin >= 0:
		o.Note("%s", counts.StoredText(ratio(bound)))
	default:
		o.Fail(report.Finding{Path: e.sub.quantizationPath, Problem: fmt.Sprintf("%s elements too many are stored", words.Grouped(shortBy(counts.StoredMargin, bound.Denominator))),
			Want: fmt.Sprintf("at most %s of P0", ratio(bound)), Got: counts.StoredRatio,
			Hint: "use larger groups, and drop tensors that no entry refers to"})
	}
	return e.asFarAsThere(o)
}

// shortBy is how many whole elements a negative margin of so many parts of an
// element lacks.
func shortBy(margin, denominator int64) int64 { return (-margin + denominator - 1) / denominator }

// asFarAsThere leaves a counting gate undecided where shards are missing: what
// is not there was not counted. Errors in what is there stay errors.
func (e *evidence) asFarAsThere(o outcome) outcome {
	missing := 0
	for _, n := range e.sub.absent {
		missing += n
	}
	if missing == 0 {
		return o
	}
	o.Status = report.Undecided
	o.Findings = slices.DeleteFunc(o.Findings, func(f report.Finding) bool {
		return f.Level == report.Error && f.Path == e.sub.quantizationPath && f.Tensor == "" // the bound's
	})
	o.Notes = []string{fmt.Sprintf("could not be decided: %s not there: see gate coverage", words.Are(int64(missing), "stored tensor"))}
	return o
}

// withoutAudit ends the gates that count where there is nothing to count.
func (e *evidence) withoutAudit() (end outcome, done bool) {
	switch ternary := e.options.Profile.Ternary; {
	case e.sub.quantizationPath == "" && (ternary == nil || ternary.WhenDeclared):
		return outcome{report.Outcome{Status: report.NotApplicable, Notes: []string{"nothing claims to be ternary: there is no quantization manifest"}}}, true
	case e.sub.quantizationPath == "":
		end.Fail(report.Finding{Path: manifest.QuantizationPath, Problem: "is missing, so nothing is known to be ternary",
			Hint: "ship the manifest that the quantization wrote"})
		return end, true
	case e.sub.quantizationErr != nil:
		return undecided(e.sub.quantizationPath + " could not be read: see gate declared"), true
	case e.blocked != "":
		return undecided(e.blocked), true
	case e.audit == nil:
		return undecided("there is no .safetensors file: see gate files"), true
	}
	return outcome{}, false
}
