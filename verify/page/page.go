// Package page writes a report as one self-contained HTML page to look at and as
// REVIEW.md, which answers a reviewer's questions one by one. Neither asks for
// anything but itself: no script, no font, no picture from elsewhere. All text
// of the submission is untrusted: it is escaped, made printable and clipped, and
// long lists are cut, so that a hostile submission can neither take the page
// over nor blow it up. What does not depend on the machine is a function of the
// report alone; measurements stand in a section of their own.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"slipway/manifest"
	"slipway/verify"
	"slipway/verify/report"
	"slipway/verify/words"
)

// Bounds of what the page shows; report.json has everything.
const (
	findingsOpen  = 20   // of a gate, in sight
	findingsShown = 300  // of a gate, the rest of them folded away
	listShown     = 1000 // of any other list
	textShown     = 600  // runes of one text
	logShown      = 200  // lines of the log, the last ones
)

//go:embed page.css
var style string

//go:embed page.html.tmpl
var source string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"text":    text,
	"bytes":   bytesText,
	"number":  words.Grouped,
	"seconds": words.Seconds,
	"share":   func(f float64) string { return fmt.Sprintf("%.4f", f) },
	"style":   func() template.CSS { return template.CSS(style) },
	"more":    func(n int) string { return words.Grouped(int64(n)) },
}).Parse(source))

// HTML writes the page. Errors are those of w.
func HTML(w io.Writer, r *report.Report) error {
	return pageTemplate.Execute(w, newView(r))
}

// view is what the template shows.
type view struct {
	Report  *report.Report
	Name    string
	Origin  string
	Verdict verdict
	Tally   []tally
	Sizes   []part
	Trust   list[trusted]
	Failed  []gate // what is to be mended comes first
	Static  []gate
	Dynamic []gate
	Unasked []gate // not applicable, of either sort
	Bars    []bar
	Counts  []count
	Codes   *codes
	Scales  *scales
	Tensors list[tensor]
	Claims  list[report.Claim]

	Measured *measured
}

func newView(r *report.Report) view {
	v := view{
		Report: r, Name: r.Name, Origin: string(r.Origin), Verdict: newVerdict(r), Tally: newTally(r.Gates), Sizes: newSizes(r.Sizes), Trust: newTrust(r),
		Bars: staticBars(r), Counts: newCounts(r.Counts), Codes: newCodes(r.Tensors), Scales: newScales(r.Tensors), Tensors: newTensors(r.Tensors),
		Claims: cut(r.SelfDeclared, listShown),
	}
	if v.Name == "" {
		v.Name = "a submission"
	}
	for _, g := range r.Gates {
		switch {
		case g.Status == report.Fail:
			v.Failed = append(v.Failed, newGate(g))
		case g.Status == report.NotApplicable:
			v.Unasked = append(v.Unasked, newGate(g))
		case verify.Dynamic(g.ID):
			v.Dynamic = append(v.Dynamic, newGate(g))
		default:
			v.Static = append(v.Static, newGate(g))
		}
	}
	if r.Measured != nil {
		v.Measured = newMeasured(r.Measured, r.Limits)
	}
	return v
}

// verdict is the word and what follows it.
type verdict struct {
	Word   string // PASS, FAIL or UNDECIDED
	Class  string
	Failed []string // gates, to go to
	Open   []string // undecided and not allowed to be
	Others int      // undecided besides

	Unknown bool // nothing showed whether the answers are any good
}

func newVerdict(r *report.Report) verdict {
	v := verdict{Word: "PASS", Class: "pass", Failed: r.Failed(), Open: r.Open()}
	switch {
	case len(v.Failed) > 0:
		v.Word, v.Class, v.Open = "FAIL", "fail", nil // what is undecided may wait for what failed
	case len(v.Open) > 0:
		v.Word, v.Class = "UNDECIDED", "undecided"
	}
	v.Unknown = len(v.Failed) == 0 && r.AnswersUnknown()
	for _, g := range r.Gates {
		if g.Status == report.Undecided {
			v.Others++
		}
	}
	v.Others -= len(v.Open)
	return v
}

// tally is how many gates ended in one way.
type tally struct {
	Status report.Status
	Class  string
	Gates  int
}

func newTally(gates []report.GateResult) []tally {
	tallies := []tally{{Status: report.Pass}, {Status: report.Fail}, {Status: report.Undecided}, {Status: report.NotApplicable}}
	for i := range tallies {
		tallies[i].Class = class(tallies[i].Status)
		for _, g := range gates {
			if g.Status == tallies[i].Status {
				tallies[i].Gates++
			}
		}
	}
	return tallies
}

// class names a status in the style sheet.
func class(s report.Status) string {
	switch s {
	case report.Pass:
		return "pass"
	case report.Fail:
		return "fail"
	case report.Undecided:
		return "undecided"
	}
	return "none"
}

// trusted is an input that the verdict rests on.
type trusted struct {
	Input  string
	Digest string
}

func newTrust(r *report.Report) list[trusted] {
	var inputs []trusted
	for _, t := range r.Trust {
		inputs = append(inputs, trusted{t.Input, t.Digest.String()})
	}
	return cut(inputs, listShown)
}

// list is what is shown of a list, and how many more there are.
type list[T any] struct {
	Shown []T
	More  int
}

func cut[T any](all []T, most int) list[T] {
	if len(all) <= most {
		return list[T]{all, 0}
	}
	return list[T]{all[:most], len(all) - most}
}

// text makes a text of the submission fit to be shown: printable, and not
// longer than a page bears.
func text(s string) string {
	if len(s) > 8*textShown {
		s = s[:8*textShown] // Printable may write several bytes for one
	}
	s = manifest.Printable(s)
	if runes := []rune(s); len(runes) > textShown {
		return string(runes[:textShown]) + "…"
	}
	return s
}

// bytesText writes a size for people, decimal units.
func bytesText(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), -1
	for value >= 1000 && unit < 4 {
		value, unit = value/1000, unit+1
	}
	digits := 2
	if value >= 100 {
		digits = 0
	} else if value >= 10 {
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, value, []string{"kB", "MB", "GB", "TB", "PB"}[unit])
}

// trimmed writes a number without zeros at its end.
func trimmed(f float64, digits int) string {
	text := fmt.Sprintf("%.*f", digits, f)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
