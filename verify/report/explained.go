package report

import (
	"fmt"
	"slices"
	"strings"
)

// explanations says which failures of the running submission a fault in its
// files can be the reason of. One fault then fails one gate, the one that names
// it; what it led to was seen, but decides nothing that mending the fault would
// not decide otherwise.
var explanations = []struct {
	gate     string
	explains []string
}{
	{"paths", serving},
	{"digests", serving},
	{"size", serving},
	{"safetensors", serving},
	{"index", serving},
	{"coverage", serving},
	{"ternary", serving},
	{"stored", serving},
	{"script", []string{"install", "startup", "first-request", "batch", "still-healthy", "opened-files"}},
	{"config", serving},
	{"install", []string{"startup", "first-request", "batch", "still-healthy"}}, // what is missing, missed at the start or when a request needs it
}

// serving are the gates that weights and their description can fail: whether
// they are loaded, answered with, and answered well with.
var serving = []string{"startup", "first-request", "batch", "quality"}

// seen says in a few words what a gate that fails has seen.
var seen = map[string]string{
	"install":       "something that is shipped does not install, start or import",
	"startup":       "the start failed",
	"first-request": "the first requests failed",
	"batch":         "requests failed under load",
	"still-healthy": "it was not well after the load, or did not end",
	"opened-files":  "it opened, started or tried what it may not",
	"quality":       "the answers are not good enough",
}

// Explainers returns the gates whose failure can be the reason of a gate's, in
// order.
func Explainers(gate string) (ids []string) {
	for _, e := range explanations {
		if slices.Contains(e.explains, gate) {
			ids = append(ids, e.gate)
		}
	}
	return ids
}

// explain leaves undecided what failed and can be explained by a gate that failed
// before it, with all that was seen. The gate that remains failed is one that
// nothing explains, so that the verdict is the same.
func (r *Report) explain() {
	failed := r.Failed()
	roots := map[string][]string{} // of the gates that are explained
	for _, e := range explanations {
		if !slices.Contains(failed, e.gate) {
			continue
		}
		for _, id := range e.explains {
			reasons := []string{e.gate}
			if of, explained := roots[e.gate]; explained {
				reasons = of
			}
			for _, reason := range reasons {
				if slices.Contains(failed, id) && !slices.Contains(roots[id], reason) {
					roots[id] = append(roots[id], reason)
				}
			}
		}
	}
	for i := range r.Gates {
		if reasons := roots[r.Gates[i].ID]; len(reasons) > 0 {
			r.Gates[i] = r.Gates[i].explainedBy(reasons)
		}
	}
}

// explainedBy is the gate undecided, its errors kept as what was observed.
func (g GateResult) explainedBy(reasons []string) GateResult {
	gates, say := "gate "+reasons[0], "says"
	if len(reasons) > 1 {
		gates, say = "gates "+strings.Join(reasons, ", "), "say"
	}
	findings := slices.Clone(g.Findings)
	for i := range findings {
		if findings[i].Level == Error {
			findings[i].Level = Observed
		}
	}
	sortFindings(findings)
	reason := fmt.Sprintf("not decided: %s, and %s %s what can be why; mend that and rehearse again", seen[g.ID], gates, say)
	return GateResult{ID: g.ID, Status: Undecided, Findings: findings, Notes: append([]string{reason}, g.Notes...)}
}
