package report

import (
	"fmt"
	"slices"
)

// Outcome collects what deciding a gate, or a part of one, comes upon. One with
// an error fails whatever status it was given; no status means pass.
type Outcome struct {
	Status   Status
	Findings []Finding
	Notes    []string
}

// Fail adds an error.
func (o *Outcome) Fail(f Finding) {
	f.Level = Error
	o.Findings = append(o.Findings, f)
}

// Warn adds a warning.
func (o *Outcome) Warn(f Finding) {
	f.Level = Warning
	o.Findings = append(o.Findings, f)
}

// Note adds a note.
func (o *Outcome) Note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// Failed reports whether there is an error among the findings.
func (o *Outcome) Failed() bool {
	return slices.ContainsFunc(o.Findings, func(f Finding) bool { return f.Level == Error })
}

// Result is the outcome as the end of a gate, its findings in order.
func (o *Outcome) Result(id string) GateResult {
	sortFindings(o.Findings)
	result := GateResult{ID: id, Status: o.Status, Findings: o.Findings, Notes: o.Notes}
	if o.Failed() {
		result.Status = Fail
	} else if result.Status == "" {
		result.Status = Pass
	}
	return result
}
