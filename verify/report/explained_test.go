package report

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ended is a report of these gates, each with the finding and note of its end.
func ended(failed, passed []string) *Report {
	r := &Report{}
	for _, id := range append(slices.Clone(failed), passed...) {
		r.Gates = append(r.Gates, GateResult{ID: id})
	}
	return r
}

func failure(id string) GateResult {
	var o Outcome
	o.Fail(Finding{Path: "serve.sh", Problem: "problem of " + id, Want: "want of " + id, Got: "end of the log", Hint: "remedy of " + id})
	o.Warn(Finding{Path: "serve.sh", Problem: "warning of " + id})
	o.Note("note of %s", id)
	return o.Result(id)
}

// A submission that was started and of which nobody knows whether it answers well
// is not simply passed, and not at all where that has to be decided.
func TestVerdictWithoutQuality(t *testing.T) {
	isQuality := func(id string) bool { return id == QualityGate }
	for name, test := range map[string]struct {
		quality  Status
		started  bool
		required func(string) bool
		verdict  string
		err      string
	}{
		"decided":                 {Pass, true, isQuality, "PASS", ""},
		"allowed":                 {Undecided, true, nil, "PASS; 1 gate undecided; whether its answers are any good is NOT decided", ""},
		"required":                {Undecided, true, isQuality, "UNDECIDED: quality; whether its answers are any good is NOT decided", "gates undecided: quality"},
		"all required":            {Undecided, true, func(string) bool { return true }, "UNDECIDED: quality; whether its answers are any good is NOT decided", "gates undecided: quality"},
		"not started":             {Undecided, false, nil, "PASS; 1 gate undecided", ""},
		"not started, and wanted": {Undecided, false, isQuality, "UNDECIDED: quality", "gates undecided: quality"},
		"failed":                  {Fail, true, isQuality, "FAIL: quality", "gates failed: quality"},
		"not asked for":           {NotApplicable, true, isQuality, "PASS", ""},
	} {
		allowed := []string{"startup", QualityGate}
		r := &Report{Gates: []GateResult{{ID: "startup", Status: Pass}, {ID: QualityGate, Status: test.quality}}, MayUndecided: allowed}
		if test.started {
			r.Measured = &Measured{}
		}
		if test.required != nil {
			r.Require(test.required)
		}
		err := ""
		if r.Err() != nil {
			err = r.Err().Error()
		}
		if verdict := r.Verdict(); verdict != test.verdict || err != test.err || allowed[1] != QualityGate {
			t.Errorf("%s: %q, error %q; want %q, %q", name, verdict, err, test.verdict, test.err)
		}
	}
}

// What is undecided besides a failure may wait for it; what is besides a gate that
// has to be decided is counted.
func TestVerdictOfSeveral(t *testing.T) {
	r := &Report{Gates: []GateResult{{ID: "paths", Status: Pass}, {ID: "wheels", Status: Undecided}, {ID: "install", Status: Undecided}}, MayUndecided: []string{"install"}}
	if got, want := r.Verdict(), "UNDECIDED: wheels; 1 more undecided"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Gates[0].Status = Fail
	if got, want := r.Verdict(), "FAIL: paths; 2 gates undecided"; got != want || r.Err().Error() != "gates failed: paths" {
		t.Errorf("%q, %v, want %q", got, r.Err(), want)
	}
}

func TestExplained(t *testing.T) {
	for name, test := range map[string]struct {
		failed, passed []string
		want           map[string]string // gates that are explained, and by which
	}{
		"nothing fails":                {nil, []string{"script", "startup"}, nil},
		"a start alone":                {[]string{"startup"}, []string{"script"}, nil},
		"the script and its start":     {[]string{"script", "startup"}, nil, map[string]string{"startup": "gate script says"}},
		"several":                      {[]string{"index", "coverage", "startup"}, nil, map[string]string{"startup": "gates index, coverage say"}},
		"files do not explain ends":    {[]string{"coverage", "still-healthy"}, nil, nil},
		"the script has no weights":    {[]string{"script", "quality"}, nil, nil},
		"static ones explain no other": {[]string{"script", "coverage", "data"}, nil, nil},
		"an installer":                 {[]string{"install", "startup"}, nil, map[string]string{"startup": "gate install says"}},
		"what is explained itself":     {[]string{"script", "install", "startup"}, nil, map[string]string{"install": "gate script says", "startup": "gate script says"}},
		"weights and answers":          {[]string{"ternary", "quality", "secrets"}, nil, map[string]string{"quality": "gate ternary says"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := ended(test.failed, test.passed)
			var results []GateResult
			for _, id := range test.failed {
				results = append(results, failure(id))
			}
			r.Decide(results, nil)
			for _, g := range r.Gates {
				by, explained := test.want[g.ID]
				switch {
				case explained && (g.Status != Undecided || !strings.Contains(g.Notes[0], by+" what can be why")):
					t.Errorf("%s ends as %s: %q", g.ID, g.Status, g.Notes)
				case !explained && slices.Contains(test.failed, g.ID) != (g.Status == Fail):
					t.Errorf("%s ends as %s", g.ID, g.Status)
				}
			}
			if failed := len(test.failed) > 0; failed != (r.Err() != nil) || failed != (len(r.Failed()) > 0) {
				t.Errorf("verdict %v of %v", r.Err(), test.failed)
			}
		})
	}
}

// Nothing that was seen of a gate is lost when another one explains it.
func TestExplainedIsShown(t *testing.T) {
	r := ended([]string{"script", "startup"}, nil)
	r.Decide([]GateResult{failure("script"), failure("startup")}, nil)
	var text strings.Builder
	if err := r.WriteSummary(&text); err != nil {
		t.Fatal(err)
	}
	const want = `
undecided startup: not decided: the start failed, and gate script says what can be why; mend that and rehearse again
  observed: serve.sh: problem of startup (want want of startup, got end of the log)
    remedy of startup
  note: note of startup
`
	if got := text.String(); !strings.Contains(got, want) || !strings.HasPrefix(got, "FAIL: script; 1 gate undecided\n") || !strings.Contains(got, "warning of startup") {
		t.Errorf("the report is\n%s", got)
	}
	data, err := r.JSON()
	if err != nil || !strings.Contains(string(data), `"level":"observed"`) {
		t.Errorf("%s, %v", data, err)
	}
}

// An explaining gate comes before what it explains, so that nothing is explained
// in a circle, and each of those has words of its own.
func TestExplanationsAreOrdered(t *testing.T) {
	order := []string{"install", "startup", "first-request", "batch", "still-healthy", "opened-files", "quality"}
	for _, e := range explanations {
		for _, id := range e.explains {
			if seen[id] == "" || slices.Index(order, id) <= slices.Index(order, e.gate) {
				t.Errorf("%s explains %s", e.gate, id)
			}
		}
	}
	if got := Explainers("quality"); !slices.Contains(got, "coverage") || slices.Contains(got, "script") {
		t.Errorf("quality is explained by %v", got)
	}
}

// docs/report.md has the table of what explains what.
func TestExplanationsAreDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string][]string{}
	for line := range strings.SplitSeq(string(data), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		for gate := range strings.FieldsSeq(strings.ReplaceAll(cells[1], "`", "")) {
			documented[gate] = strings.Fields(strings.ReplaceAll(cells[2], "`", ""))
		}
	}
	for _, e := range explanations {
		if !slices.Equal(documented[e.gate], e.explains) {
			t.Errorf("%s explains %v, and docs/report.md says %v", e.gate, e.explains, documented[e.gate])
		}
	}
}
