package verify

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"slipway/manifest"
)

// findingsShown bounds the findings of one gate in text; JSON has them all.
const findingsShown = 20

// TextOptions shape WriteText's output. Width 0 never wraps.
type TextOptions struct {
	Width  int
	Colour bool
}

// WriteText prints the report for people.
func (r *Report) WriteText(w io.Writer, options TextOptions) error {
	t := textWriter{width: options.Width, colour: options.Colour}
	t.line("", "%s (%s), profile %s: %d files, %d bytes", r.name, r.Origin, r.Profile, r.Files, r.Bytes)
	if r.Artifact != "" {
		t.line("", "artifact  %s", r.Artifact)
	}
	if r.Set != "" {
		t.line("", "set       %s", r.Set)
	}
	for _, trust := range r.Trust {
		t.line("", "trusted   %s %s", trust.Input, trust.Digest)
	}
	var unasked, reasons []string
	elsewhere := map[string][]string{} // the gates that this version does not decide, by reason
	for _, gate := range r.Gates {
		switch known, _ := Lookup(gate.ID); {
		case gate.unasked:
			unasked = append(unasked, gate.ID)
		case gate.Status == Undecided && known.decide == nil:
			if elsewhere[known.Elsewhere] == nil {
				reasons = append(reasons, known.Elsewhere)
			}
			elsewhere[known.Elsewhere] = append(elsewhere[known.Elsewhere], gate.ID)
		default:
			t.gate(gate)
		}
	}
	for _, reason := range reasons {
		fmt.Fprintf(&t.text, "%s: %s\n", t.status(Undecided), strings.Join(elsewhere[reason], " "))
		t.line("  ", "note: %s", reason)
	}
	if len(unasked) > 0 {
		t.line("", "not asked for by profile %s: %s", r.Profile, strings.Join(unasked, " "))
	}
	if r.Counts != nil {
		t.counts(r.Counts)
	}
	if len(r.SelfDeclared) > 0 {
		t.line("", "self-declared, not checked against anything outside the submission:")
		for _, c := range r.SelfDeclared {
			t.line("  ", "%s: %s = %s", c.Source, c.Name, c.Value)
		}
	}
	if err := r.Err(); err != nil {
		t.line("", "%s", err)
	} else {
		t.line("", "every gate that the profile decides here passed")
	}
	_, err := io.WriteString(w, t.text.String())
	return err
}

type textWriter struct {
	text   strings.Builder
	width  int
	colour bool
}

// line writes one paragraph, wrapped at the width; further lines are indented
// two columns deeper.
func (t *textWriter) line(indent, format string, args ...any) {
	text := indent + manifest.Printable(fmt.Sprintf(format, args...))
	for t.width > 0 && utf8.RuneCountInString(text) > t.width {
		cut := breakBefore(text, t.width)
		if cut <= len(indent) {
			break
		}
		t.text.WriteString(strings.TrimRight(text[:cut], " ") + "\n")
		text = indent + "  " + strings.TrimLeft(text[cut:], " ")
	}
	t.text.WriteString(text + "\n")
}

// breakBefore returns where to cut text so that the first part has at most
// width runes: after a space, or nowhere.
func breakBefore(text string, width int) int {
	cut, runes := 0, 0
	for i, r := range text {
		if runes == width {
			break
		}
		runes++
		if r == ' ' && strings.TrimSpace(text[:i]) != "" {
			cut = i + 1
		}
	}
	return cut
}

var statusColours = map[Status]string{Pass: "\x1b[32m", Fail: "\x1b[31m", Undecided: "\x1b[33m"}

func (t *textWriter) status(s Status) string {
	if colour := statusColours[s]; t.colour && colour != "" {
		return colour + string(s) + "\x1b[0m"
	}
	return string(s)
}

func (t *textWriter) gate(g GateResult) {
	fmt.Fprintf(&t.text, "%-14s%s\n", g.ID, t.status(g.Status))
	for i, f := range g.Findings {
		if i == findingsShown {
			t.line("  ", "and %d more", len(g.Findings)-i)
			break
		}
		t.finding(f)
	}
	for i, note := range g.Notes {
		if i == findingsShown {
			t.line("  ", "and %d more notes", len(g.Notes)-i)
			break
		}
		t.line("  ", "note: %s", note)
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
	text := string(f.Level) + ": " + subject + f.Problem
	switch {
	case f.Want != "" && f.Got != "":
		text += fmt.Sprintf(" (want %s, got %s)", f.Want, f.Got)
	case f.Want != "":
		text += fmt.Sprintf(" (want %s)", f.Want)
	case f.Got != "":
		text += fmt.Sprintf(" (got %s)", f.Got)
	}
	t.line("  ", "%s", text)
	if f.Hint != "" {
		t.line("    ", "%s", f.Hint)
	}
}

func (t *textWriter) counts(c *Counts) {
	base := "of the pinned base"
	if c.BaseSelfDeclared {
		base = "self-declared: as the quantization manifest says"
	}
	t.line("", "counts (%s rules)", c.Counting)
	t.line("  ", "T  %15d  ternary weights in %d packed and %d literal of %d entries", c.Ternary, c.Packed, c.Literal, c.Entries)
	t.line("  ", "s  %15d  scales", c.Scales)
	t.line("  ", "f  %15d  float elements", c.Floats)
	t.line("  ", "u  %15d  unreferenced, weighted", c.Unreferenced)
	t.line("  ", "P0 %15d  elements %s", c.Base, base)
	t.line("  ", "fraction %s = %d/%d", c.Fraction, c.Ternary, c.Counted())
	t.line("  ", "stored   %d = %s of P0", c.Stored(), c.StoredRatio)
	for _, e := range c.Excluded {
		t.line("  ", "excluded %s: %s, %d elements", e.Name, e.Role, e.Elements)
	}
}
