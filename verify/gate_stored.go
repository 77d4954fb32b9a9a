package verify

import "fmt"

func decideStored(e *evidence) outcome {
	if end, done := e.withoutAudit(); done {
		return end
	}
	var o outcome
	counts, bound := e.audit.counts, e.rules().StoredAtMost
	o.note("T+s+f+u = %d+%d+%d+%d = %d, P0 = %d, %s of it", counts.Ternary, counts.Scales, counts.Floats, counts.Unreferenced,
		counts.Stored(), counts.Base, counts.StoredRatio)
	if counts.BaseSelfDeclared {
		o.note("P0 is self-declared: no contract of the base was given")
	}
	switch {
	case bound.Denominator == 0:
		o.note("the profile has no bound")
	case counts.StoredMargin < 0:
		o.fail(Finding{Path: e.sub.quantizationPath, Problem: "more is stored than the task allows",
			Want: fmt.Sprintf("at most %s of P0", ratio(bound)), Got: counts.StoredRatio,
			Hint: "use larger groups, and drop tensors that no entry refers to"})
	default:
		o.note("margin %d/%d elements below %s of P0", counts.StoredMargin, bound.Denominator, ratio(bound))
	}
	return o
}

// withoutAudit ends the gates that count where there is nothing to count.
func (e *evidence) withoutAudit() (end outcome, done bool) {
	switch ternary := e.options.Profile.Ternary; {
	case e.sub.quantizationPath == "" && (ternary == nil || ternary.WhenDeclared):
		return outcome{status: NotApplicable, notes: []string{"nothing claims to be ternary: there is no quantization manifest"}}, true
	case e.sub.quantizationPath == "" && e.options.Profile.Ternary.WhenDeclared:
		return outcome{status: NotApplicable, notes: []string{"no quantization manifest: nothing is declared ternary, and the profile does not ask for it"}}, true
	case e.sub.quantizationPath == "":
		end.fail(Finding{Path: "quantization_manifest.json", Problem: "is missing, so nothing is known to be ternary",
			Hint: "ship the manifest that the quantization wrote"})
		return end, true
	case e.sub.quantizationErr != nil:
		return undecided(e.sub.quantizationPath + " could not be read: see gate coverage"), true
	case e.blocked != "":
		return undecided(e.blocked), true
	}
	return outcome{}, false
}
