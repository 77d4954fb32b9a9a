package report

import (
	"fmt"
	"io"
	"strings"

	"slipway/manifest"
	"slipway/verify/words"
)

// findingsShown bounds the findings of one gate in text; JSON has them all.
const findingsShown = 20

// WriteText prints the report for people: the verdict first, what to do about
// it, and then what it rests on. Lines that begin with a status ("PASS", "FAIL",
// "UNDECIDED", "pass", "fail", "undecided") begin with nothing else, so that a terminal may
// colour them.
func (r *Report) WriteText(w io.Writer) error {
	t := &textWriter{}
	t.summary(r)
	t.details(r)
	_, err := io.WriteString(w, t.text.String())
	return err
}

// WriteSummary prints the part of WriteText that says what was decided, and what
// to do.
func (r *Report) WriteSummary(w io.Writer) error {
	t := &textWriter{}
	t.summary(r)
	t.line("")
	t.digests(r)
	_, err := io.WriteString(w, t.text.String())
	return err
}

// WriteGates prints how gates ended, with their findings, as WriteText does.
func WriteGates(w io.Writer, gates []GateResult) error {
	t := &textWriter{}
	t.gates(&Report{Gates: gates})
	_, err := io.WriteString(w, strings.TrimPrefix(t.text.String(), "\n"))
	return err
}

func (t *textWriter) summary(r *Report) {
	t.line("%s", r.Verdict())
	t.line("%s (%s), profile %s: %s, %s bytes", r.Name, r.Origin, r.Profile, words.Plural(r.Files, "file"), words.Grouped(r.Bytes))
	t.gates(r)
}

// gates prints what is to be mended first.
func (t *textWriter) gates(r *Report) {
	for _, g := range r.Gates {
		if g.Status == Fail {
			t.line("")
			t.line("fail %s", g.ID)
			t.findings(g, Error)
			for _, note := range g.Notes[:min(len(g.Notes), findingsShown)] {
				t.line("  note: %s", note)
			}
		}
	}
	t.observed(r.Gates)
	t.warnings(r.Gates)
	t.line("")
	if passed := r.ids(func(g GateResult) bool { return g.Status == Pass }); len(passed) > 0 {
		t.line("pass %s", strings.Join(passed, " "))
	}
	t.byReason("undecided", r.Gates, func(g GateResult) bool { return g.Status == Undecided && !g.has(Observed) })
	t.byReason("not applicable", r.Gates, func(g GateResult) bool { return g.Status == NotApplicable })
}

// lineBytes is up to what length a finding's problem, want and got stand in one
// line.
const lineBytes = 160

type textWriter struct{ text strings.Builder }

func (t *textWriter) line(format string, args ...any) {
	t.text.WriteString(manifest.Printable(fmt.Sprintf(format, args...)) + "\n")
}

// findings prints a gate's findings of one level.
func (t *textWriter) findings(g GateResult, level Level) {
	shown, more := 0, 0
	for _, f := range g.Findings {
		switch {
		case f.Level != level:
		case shown == findingsShown:
			more++
		default:
			shown++
			t.finding(f)
		}
	}
	if more > 0 {
		t.line("  and %s more", words.Grouped(int64(more)))
	}
}

func (t *textWriter) finding(f Finding) {
	subject := f.Path
	if f.Tensor != "" {
		subject = strings.TrimPrefix(subject+" tensor "+f.Tensor, " ")
	}
	if subject != "" {
		subject += ": "
	}
	var compared []string
	if f.Want != "" {
		compared = append(compared, "want "+f.Want)
	}
	if f.Got != "" {
		compared = append(compared, "got "+f.Got)
	}
	text := subject + f.Problem
	if inOne := strings.Join(compared, ", "); inOne != "" && len(text)+len(inOne) < lineBytes {
		text, compared = text+" ("+inOne+")", nil
	}
	t.line("  %s: %s", f.Level, text)
	for _, line := range compared {
		t.line("    %s", line)
	}
	if f.Hint != "" {
		t.line("    %s", f.Hint)
	}
}

// observed prints, in full, the gates that another one's failure explains.
func (t *textWriter) observed(gates []GateResult) {
	for _, g := range gates {
		if !g.has(Observed) {
			continue
		}
		t.line("")
		t.line("undecided %s: %s", g.ID, g.Notes[0])
		t.findings(g, Observed)
		for _, note := range g.Notes[1:min(len(g.Notes), findingsShown)] {
			t.line("  note: %s", note)
		}
	}
}

// warnings prints those of all gates, under their gates.
func (t *textWriter) warnings(gates []GateResult) {
	for _, g := range gates {
		if g.has(Warning) {
			t.line("")
			t.line("warnings of %s", g.ID)
			t.findings(g, Warning)
		}
	}
}

// byReason prints the gates of one status, those of one reason together.
func (t *textWriter) byReason(title string, gates []GateResult, of func(GateResult) bool) {
	var reasons []string // in the order of their first gates
	ids := map[string][]string{}
	for _, g := range gates {
		if !of(g) {
			continue
		}
		reason := g.Notes[0]
		if ids[reason] == nil {
			reasons = append(reasons, reason)
		}
		ids[reason] = append(ids[reason], g.ID)
	}
	if len(reasons) == 0 {
		return
	}
	t.line("%s", title)
	for _, reason := range reasons {
		t.line("  %s: %s", strings.Join(ids[reason], " "), reason)
	}
}

// details prints what the verdict rests on: inputs, counts, notes and claims.
func (t *textWriter) details(r *Report) {
	t.line("")
	t.digests(r)
	if r.Counts != nil {
		t.counts(r.Counts, r.Limits)
	}
	t.notes(r.Gates)
	if r.Measured != nil {
		t.measured(r.Measured, r.Limits)
	}
	if len(r.SelfDeclared) > 0 {
		t.line("")
		t.line("self-declared, not checked against anything outside the submission")
		for _, c := range r.SelfDeclared {
			t.line("  %s: %s = %s", c.Source, c.Name, c.Value)
		}
	}
}

// digests prints what was verified, and on whose word.
func (t *textWriter) digests(r *Report) {
	if r.Artifact != "" {
		t.line("artifact  %s", r.Artifact)
	}
	if r.Set != "" {
		t.line("set       %s", r.Set)
	}
	for _, trust := range r.Trust {
		if digest := trust.Digest.String(); digest == r.Artifact || digest == r.Set {
			t.line("trusted   %s, which it has", trust.Input)
		} else {
			t.line("trusted   %s %s", trust.Input, digest)
		}
	}
}

// notes prints those that byReason did not.
func (t *textWriter) notes(gates []GateResult) {
	begun := false
	for _, g := range gates {
		notes := g.Notes
		if g.Status == Fail || g.has(Observed) {
			continue // its notes stand with its findings
		}
		if g.Status == Undecided || g.Status == NotApplicable {
			notes = notes[1:] // the first is the reason
		}
		for i, note := range notes {
			if !begun {
				t.line("")
				t.line("notes")
				begun = true
			}
			if i == findingsShown {
				t.line("  %s: and %s more", g.ID, words.Grouped(int64(len(notes)-i)))
				break
			}
			t.line("  %s: %s", g.ID, note)
		}
	}
}

func (t *textWriter) counts(c *Counts, limits Limits) {
	base := "elements of the pinned base"
	if c.BaseSelfDeclared {
		base = "elements of the base, as the quantization manifest says"
	}
	t.line("")
	t.line("counts, %s rules", c.Counting)
	for _, row := range []struct {
		name  string
		value int64
		what  string
	}{
		{"T", c.Ternary, fmt.Sprintf("ternary weights, in %d packed and %d literal of %d entries", c.Packed, c.Literal, c.Entries)},
		{"s", c.Scales, "scales of them"},
		{"f", c.Floats, "weights kept in floating point"},
		{"u", c.Unreferenced, "stored elements that no entry refers to, weighted by type"},
		{"P0", c.Base, base + ", without embedding and head"},
	} {
		t.line("  %-2s %15s  %s", row.name, words.Grouped(row.value), row.what)
	}
	t.line("  ternary T/(T+s+f) = %s: %s", c.Fraction, c.FractionText(limits.FractionAbove))
	t.line("  stored (T+s+f+u)/P0 = %s: %s", c.StoredRatio, c.StoredText(limits.StoredAtMost))
	excluded := map[manifest.Role][2]int64{} // tensors and elements
	for _, e := range c.Excluded {
		sum := excluded[e.Role]
		excluded[e.Role] = [2]int64{sum[0] + 1, sum[1] + e.Elements}
	}
	for _, role := range []manifest.Role{manifest.RoleEmbedding, manifest.RoleHead, manifest.RoleVision, manifest.RoleMTP} {
		if sum := excluded[role]; sum[0] > 0 {
			t.line("  not counted: %s, %s of %s", role, words.Plural(int(sum[1]), "element"), words.Plural(int(sum[0]), "tensor"))
		}
	}
}
