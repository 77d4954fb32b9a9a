package page

import (
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
	var errors, warnings []finding // what fails the gate comes first
	for _, f := range g.Findings {
		if f.Level == report.Error {
			errors = append(errors, finding{f, string(f.Level)})
		} else {
			warnings = append(warnings, finding{f, string(f.Level)})
		}
	}
	v.Errors, v.Warned = len(errors), len(warnings)
	v.Open = len(g.Findings) > 0
	all := append(errors, warnings...)
	first := cut(all, findingsOpen)
	v.First = first.Shown
	v.Rest = cut(all[len(first.Shown):], findingsShown-findingsOpen)
	return v
}

// Summary says in a few words what was found.
func (g gate) Summary() string {
	switch {
	case g.Errors > 0 && g.Warned > 0:
		return words.Plural(g.Errors, "error") + ", " + words.Plural(g.Warned, "warning")
	case g.Errors > 0:
		return words.Plural(g.Errors, "error")
	case g.Warned > 0:
		return words.Plural(g.Warned, "warning")
	}
	return ""
}
