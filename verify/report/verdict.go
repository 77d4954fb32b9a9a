package report

import (
	"strings"

	"slipway/verify/words"
)

// QualityGate is the one that a submission may pass all others without: twice a
// model that did answered no better than chance.
const QualityGate = "quality"

// AnswersUnknown reports whether the submission was started, and nothing showed
// whether its answers are any good.
func (r *Report) AnswersUnknown() bool {
	return r.Measured != nil && len(r.ids(func(g GateResult) bool { return g.ID == QualityGate && g.Status == Undecided })) > 0
}

// Verdict is the report in one line: it begins with "PASS", "FAIL" or "UNDECIDED",
// the last where no gate failed and one is undecided that may not stay so.
func (r *Report) Verdict() string {
	failed, open := r.Failed(), r.Open()
	undecided := len(r.ids(func(g GateResult) bool { return g.Status == Undecided }))
	verdict, rest := "PASS", words.Plural(undecided, "gate")+" undecided"
	switch {
	case len(failed) > 0:
		verdict = "FAIL: " + strings.Join(failed, " ")
	case len(open) > 0:
		undecided -= len(open)
		verdict, rest = "UNDECIDED: "+strings.Join(open, " "), words.Grouped(int64(undecided))+" more undecided"
	}
	if undecided > 0 {
		verdict += "; " + rest
	}
	if len(failed) == 0 && r.AnswersUnknown() {
		verdict += "; whether its answers are any good is NOT decided"
	}
	return verdict
}
