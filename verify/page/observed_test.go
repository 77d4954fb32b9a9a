package page

import (
	"strings"
	"testing"

	"slipway/verify/report"
)

// What a failed gate explains is shown by the page and by REVIEW.md, as observed.
func TestObserved(t *testing.T) {
	failed := func(id string) report.GateResult {
		var o report.Outcome
		o.Fail(report.Finding{Path: "serve.sh", Problem: "the problem of " + id})
		return o.Result(id)
	}
	r := &report.Report{Gates: []report.GateResult{{ID: "script"}, {ID: "startup"}}}
	r.Decide([]report.GateResult{failed("script"), failed("startup")}, nil)
	g := newGate(r.Gates[1])
	if g.Class != "undecided" || g.Summary() != "1 observed" || !strings.Contains(g.Why, "gate script says what can be why") || g.First[0].Word != "observed" {
		t.Errorf("%+v", g)
	}
	var page, review strings.Builder
	if err := HTML(&page, r); err != nil {
		t.Fatal(err)
	}
	if err := Review(&review, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), `<li class="observed">`) || !strings.Contains(page.String(), "the problem of startup") {
		t.Errorf("the page does not show it")
	}
	const want = "- **startup**, not decided: the start failed, and gate script says what can be why; mend that and rehearse again\n  - observed: `serve.sh`: the problem of startup\n"
	if !strings.Contains(review.String(), want) {
		t.Errorf("REVIEW.md does not say %q:\n%s", want, &review)
	}
}

// A report of which nothing failed, and whose quality has to be decided and is not,
// is no pass; nor is it a plain one where that is allowed.
func TestUndecided(t *testing.T) {
	r := &report.Report{Gates: []report.GateResult{{ID: "script", Status: report.Pass}, {ID: report.QualityGate, Status: report.Undecided, Notes: []string{"no examples"}}}, Measured: &report.Measured{}}
	for _, test := range []struct {
		allowed []string
		want    []string
	}{
		{nil, []string{"<title>UNDECIDED: ", `class="verdict undecided"`, `may not stay so: <a href="#gate-quality">quality</a>`, "Whether its answers are any good is not decided."}},
		{[]string{report.QualityGate}, []string{"<title>PASS: ", "1 gate is undecided, which the profile allows.", "Whether its answers are any good is not decided."}},
	} {
		r.MayUndecided = test.allowed
		var page strings.Builder
		if err := HTML(&page, r); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(page.String(), want) {
				t.Errorf("allowed %v: the page does not say %q", test.allowed, want)
			}
		}
		var review strings.Builder
		if err := Review(&review, r); err != nil {
			t.Fatal(err)
		}
		if says := strings.Contains(review.String(), "## What has to be decided\n\n- **quality**: no examples\n"); says != (test.allowed == nil) {
			t.Errorf("allowed %v: REVIEW.md:\n%s", test.allowed, &review)
		}
	}
}
