package page

import (
	"strings"

	"slipway/verify"
	"slipway/verify/report"
	"slipway/verify/words"
)

// gate is one gate of the list.
type gate struct {
	ID      string
	Word    string // its status
	Class   string
	Promise string
	Source  string
	Why     string // it is undecided or does not apply
	Open    bool   // unfolded at first
	Errors  int
	Seen    int // what another gate's failure explains
	Warned  int

	First []finding
	Rest  list[finding] // folded away
	Notes list[string]
}

// finding is a finding with its level as text.
type finding struct {
	report.Finding
	Word string
}

func newGate(g report.GateResult) gate {
	v := gate{ID: g.ID, Word: string(g.Status), Class: class(g.Status)}
	notes := g.Notes
	if len(notes) > 0 && (g.Status == report.Undecided || g.Status == report.NotApplicable) {
		v.Why, notes = notes[0], notes[1:]
	}
	v.Notes = cut(notes, listShown)
	if known, ok := verify.Lookup(g.ID); ok {
		v.Promise, v.Source = known.Promise, known.Source
	}
	var errors, observed, warnings []finding // what fails the gate comes first
	for _, f := range g.Findings {
		switch f.Level {
		case report.Error:
			errors = append(errors, finding{f, string(f.Level)})
		case report.Observed:
			observed = append(observed, finding{f, string(f.Level)})
		default:
			warnings = append(warnings, finding{f, string(f.Level)})
		}
	}
	v.Errors, v.Seen, v.Warned = len(errors), len(observed), len(warnings)
	v.Open = len(g.Findings) > 0
	all := append(append(errors, observed...), warnings...)
	first := cut(all, findingsOpen)
	v.First = first.Shown
	v.Rest = cut(all[len(first.Shown):], findingsShown-findingsOpen)
	return v
}

// Summary says in a few words what was found.
func (g gate) Summary() string {
	var parts []string
	if g.Errors > 0 {
		parts = append(parts, words.Plural(g.Errors, "error"))
	}
	if g.Seen > 0 {
		parts = append(parts, words.Grouped(int64(g.Seen))+" observed")
	}
	if g.Warned > 0 {
		parts = append(parts, words.Plural(g.Warned, "warning"))
	}
	return strings.Join(parts, ", ")
}
