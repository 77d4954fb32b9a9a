package config

import (
	"fmt"
	"sort"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
)

// maxShown bounds the problems that one error prints, maxLine the source lines
// that are quoted in it, in characters.
const (
	maxShown = 20
	maxLine  = 200
)

// Position is a place in a file. Line and column count characters from 1.
type Position struct {
	File         string
	Line, Column int
}

// String writes "bundle.hcl:12,3".
func (p Position) String() string { return fmt.Sprintf("%s:%d,%d", p.File, p.Line, p.Column) }

// Diagnostics is every problem found in one file, in the order of the file.
type Diagnostics struct {
	Problems []Problem

	file   string
	source []byte
}

// Problem is one fault of a file: where, what, and what to do about it.
type Problem struct {
	At      Position
	Range   string // "bundle.hcl:12,3-9"
	Summary string
	Detail  string // may be empty
	Snippet string // the source line and a line of carets; empty where there is none

	at hcl.Range
}

// Error prints the problems, a blank line between them.
func (d *Diagnostics) Error() string {
	var out []string
	for i, p := range d.Problems {
		if i == maxShown {
			out = append(out, fmt.Sprintf("and %d more", len(d.Problems)-maxShown))
			break
		}
		out = append(out, p.String())
	}
	return strings.Join(out, "\n\n")
}

// String writes the range, summary and detail on one line and the snippet below.
func (p Problem) String() string {
	text := p.Range + ": " + p.Summary
	if p.Detail != "" {
		text += "; " + p.Detail
	}
	lines := strings.Split(text, "\n") // labels and values are in them as they were written
	for i, line := range lines {
		lines[i] = printable(line)
	}
	text = strings.Join(lines, "\n")
	if p.Snippet != "" {
		text += "\n" + p.Snippet
	}
	return text
}

// add records a problem at a range of the file.
func (d *Diagnostics) add(at hcl.Range, detail, summary string, args ...any) {
	d.Problems = append(d.Problems, Problem{
		At: position(at), Range: at.String(), Summary: fmt.Sprintf(summary, args...), Detail: detail, at: at,
	})
}

// oneLineBlock is the parser's summary of a fault that its own text does not
// tell how to mend: HCL takes at most one argument on the line of its block.
const oneLineBlock = "Invalid single-argument block definition"

// addSyntax records the errors of the HCL parser.
func (d *Diagnostics) addSyntax(found hcl.Diagnostics) {
	for _, f := range found {
		if f.Severity != hcl.DiagError {
			continue
		}
		at := hcl.Range{Filename: d.file, Start: hcl.InitialPos, End: hcl.InitialPos}
		if f.Subject != nil {
			at = *f.Subject
		}
		if f.Summary == oneLineBlock {
			d.add(at, "write each argument and the closing brace on lines of their own", "several arguments on the line of their block")
			continue
		}
		d.add(at, printable(strings.Join(strings.Fields(f.Detail), " ")), "%s", printable(f.Summary))
	}
}

// result returns nil where nothing was found. It quotes the source of the
// problems that are printed.
func (d *Diagnostics) result() error {
	if len(d.Problems) == 0 {
		return nil
	}
	sort.SliceStable(d.Problems, func(i, j int) bool { return d.Problems[i].at.Start.Byte < d.Problems[j].at.Start.Byte })
	for i := range d.Problems[:min(len(d.Problems), maxShown)] {
		d.Problems[i].Snippet = d.snippet(d.Problems[i].at)
	}
	return d
}

// snippet quotes the line on which a range starts and marks the range.
func (d *Diagnostics) snippet(at hcl.Range) string {
	start := min(max(at.Start.Byte, 0), len(d.source))
	begin := strings.LastIndexByte(string(d.source[:start]), '\n') + 1
	line, _, _ := strings.Cut(string(d.source[begin:]), "\n")
	line = printable(strings.TrimRight(line, "\r"))
	if strings.TrimSpace(line) == "" {
		return ""
	}
	number := fmt.Sprint(at.Start.Line)
	quoted := "  " + number + " | " + line
	if len(line) > maxLine {
		runes := []rune(line)
		return "  " + number + " | " + string(runes[:min(len(runes), maxLine)]) + "..."
	}
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string(d.source[begin:start]))
	width := at.End.Column - at.Start.Column
	if at.End.Line != at.Start.Line {
		width = len([]rune(line)) - len([]rune(indent))
	}
	return quoted + "\n  " + strings.Repeat(" ", len(number)) + " | " + indent + strings.Repeat("^", max(width, 1))
}

// printable replaces what a terminal would act on.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func position(r hcl.Range) Position {
	return Position{r.Filename, r.Start.Line, r.Start.Column}
}
