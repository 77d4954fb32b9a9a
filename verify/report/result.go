package report

import (
	"cmp"
	"slices"
)

// Status is how a gate ended.
type Status string

// The statuses. Undecided says that the gate was not, or could not be, decided
// here; its notes say why and where it is.
const (
	Pass          Status = "pass"
	Fail          Status = "fail"
	Undecided     Status = "undecided"
	NotApplicable Status = "not applicable"
)

// Level tells findings that fail a gate from those that only deserve a look.
type Level string

// The levels. Observed is what would fail a gate that is undecided, since another
// gate's failure can be the reason.
const (
	Error    Level = "error"
	Warning  Level = "warning"
	Observed Level = "observed"
)

// Finding is one thing that a gate found: which file or tensor, what is wrong,
// what was wanted and what is there, and what to do about it.
type Finding struct {
	Level   Level  `json:"level"`
	Path    string `json:"path,omitempty"`
	Tensor  string `json:"tensor,omitempty"`
	Problem string `json:"problem"`
	Want    string `json:"want,omitempty"`
	Got     string `json:"got,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// GateResult is one gate's end.
type GateResult struct {
	ID       string    `json:"id"`
	Status   Status    `json:"status"`
	Findings []Finding `json:"findings,omitempty"` // by path, tensor, problem; layers as people count
	Notes    []string  `json:"notes,omitempty"`    // the first of a gate that is undecided or does not apply says why

	Unasked bool `json:"-"` // the profile does not ask for it
}

// has reports whether there is a finding of a level.
func (g GateResult) has(level Level) bool {
	return slices.ContainsFunc(g.Findings, func(f Finding) bool { return f.Level == level })
}

// sortFindings orders findings as reports list them: by path, tensor, level and
// problem.
func sortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			CompareNatural(a.Path, b.Path), CompareNatural(a.Tensor, b.Tensor),
			cmp.Compare(a.Level, b.Level), cmp.Compare(a.Problem, b.Problem),
			cmp.Compare(a.Want, b.Want), cmp.Compare(a.Got, b.Got),
		)
	})
}
