package page

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"slipway/verify/report"
	"slipway/verify/words"
)

// Review writes REVIEW.md: a line for each rule that reviewers of submissions
// judge, with what the gates and the measurements say about it and with what
// remains for a person. A line never says more than its gates decided. Errors
// are those of w.
func Review(w io.Writer, r *report.Report) error {
	var out strings.Builder
	fmt.Fprintf(&out, "# Review of %s\n\n", literal(orUnnamed(r.Name)))
	fmt.Fprintf(&out, "%s  \nprofile %s, %s, %s, %s bytes\n\n", plain(r.Verdict()), literal(r.Profile), plain(string(r.Origin)), words.Plural(r.Files, "file"), words.Grouped(r.Bytes))
	if r.Artifact != "" {
		fmt.Fprintf(&out, "- artifact %s\n", literal(r.Artifact))
	}
	if r.Set != "" {
		fmt.Fprintf(&out, "- set of files %s\n", literal(r.Set))
	} else {
		out.WriteString("- set of files: no digest, because a file could not be read\n")
	}
	trust := newTrust(r)
	for _, t := range trust.Shown {
		fmt.Fprintf(&out, "- trusted: %s %s\n", plain(t.Input), literal(t.Digest))
	}
	out.WriteString("\n## Rules\n\n")
	for _, rule := range rules {
		out.WriteString(rule.line(r))
	}
	writeFailures(&out, r)
	writeOpen(&out, r)
	writeMeasured(&out, r)
	writeClaims(&out, r.SelfDeclared)
	_, err := io.WriteString(w, out.String())
	return err
}

func orUnnamed(name string) string {
	if name == "" {
		return "a submission"
	}
	return name
}

// rule is one rule that reviewers judge.
type rule struct {
	Name     string
	Gates    []string // what a machine decides of it
	Evidence func(*report.Report) []string
	Left     string // what a person judges, whatever the gates say
}

var rules = []rule{
	{"Pinned base", []string{"declared", "coverage", "origin", "digests"}, baseEvidence,
		"whether the weights were really fitted from that base: read the logs"},
	{"Only allowed components", []string{"coverage", "components", "files"}, componentEvidence,
		"whether the shipped code builds modules that no stored tensor shows"},
	{"Numeric class", []string{"ternary", "stored", "safetensors", "index", "quality"}, numericEvidence,
		"whether the server computes with the stored codes and scales, and adds no other weights"},
	{"Training data", []string{"data"}, dataEvidence,
		"which data sets and splits were used: read DATA.md, the scripts and the logs"},
	{"Inference uses the reviewed weights", []string{"script", "opened-files", "config", "rebuild"}, inferenceEvidence,
		"whether every branch of serve.sh and of the code leads to these files"},
	{"Text only", []string{"text-only", "coverage"}, textEvidence,
		"whether an input that is not text can reach the model"},
	{"No lookup of answers or continuations", []string{"lookup", "files", "opened-files"}, lookupEvidence,
		"whether code or data maps known inputs to stored outputs"},
	{"No credentials", []string{"secrets", "opened-files"}, credentialEvidence,
		"whether the code reads or prints what the grader's environment holds"},
	{"Genuine wheels", []string{"wheels", "install"}, wheelEvidence,
		"whether patched or locally built packages are explained"},
}

// line is a rule's line.
func (ru rule) line(r *report.Report) string {
	state, gates := ru.state(r)
	var parts []string
	if ru.Evidence != nil {
		parts = ru.Evidence(r)
	}
	evidence := "nothing beyond the gates"
	if len(parts) > 0 {
		evidence = strings.Join(parts, "; ")
	}
	return fmt.Sprintf("- **%s**: %s (%s). Evidence: %s. Left to a reviewer: %s.\n", ru.Name, state, gates, evidence, ru.Left)
}

// state is the worst end of a rule's gates, and each gate's end. Gates that did
// not apply decided nothing, and the state says so.
func (ru rule) state(r *report.Report) (state, gates string) {
	worst, apart := report.NotApplicable, false
	order := []report.Status{report.NotApplicable, report.Pass, report.Undecided, report.Fail}
	var ends []string
	for _, id := range ru.Gates {
		g, ok := r.Gate(id)
		if !ok {
			continue
		}
		if slices.Index(order, g.Status) > slices.Index(order, worst) {
			worst = g.Status
		}
		apart = apart || g.Status == report.NotApplicable
		ends = append(ends, fmt.Sprintf("%s: %s", id, plain(string(g.Status))))
	}
	state = string(worst)
	if worst == report.Pass && apart {
		state += " as far as it was asked"
	}
	return state, strings.Join(ends, ", ")
}

// writeFailures lists the first errors of each gate that failed, and what was
// observed of those that it explains.
func writeFailures(out *strings.Builder, r *report.Report) {
	failed := r.Failed()
	if len(failed) == 0 {
		return
	}
	out.WriteString("\n## What failed\n\n")
	for _, id := range failed {
		result, _ := r.Gate(id)
		g := newGate(result)
		for _, f := range g.First[:min(5, g.Errors, len(g.First))] {
			fmt.Fprintf(out, "- **%s**: %s\n", plain(id), findingText(f.Finding))
		}
		if more := g.Errors - 5; more > 0 {
			fmt.Fprintf(out, "- **%s**: and %s more\n", plain(id), words.Plural(more, "error"))
		}
	}
	for _, result := range r.Gates {
		g := newGate(result)
		if g.Seen > 0 {
			fmt.Fprintf(out, "- **%s**, %s\n", plain(g.ID), plain(g.Why))
			for _, f := range g.First[:min(5, g.Seen, len(g.First))] {
				fmt.Fprintf(out, "  - observed: %s\n", findingText(f.Finding))
			}
		}
	}
}

// writeOpen says of the gates that have to be decided and are not why, and what
// decides them.
func writeOpen(out *strings.Builder, r *report.Report) {
	open := r.Open()
	if len(open) == 0 || len(r.Failed()) > 0 {
		return
	}
	out.WriteString("\n## What has to be decided\n\n")
	for _, id := range open {
		g, _ := r.Gate(id)
		fmt.Fprintf(out, "- **%s**: %s\n", plain(id), plain(newGate(g).Why))
	}
}

func findingText(f report.Finding) string {
	var where []string
	if f.Path != "" {
		where = append(where, literal(f.Path))
	}
	if f.Tensor != "" {
		where = append(where, "tensor "+literal(f.Tensor))
	}
	said := plain(f.Problem)
	if len(where) > 0 {
		said = strings.Join(where, " ") + ": " + said
	}
	if f.Want != "" {
		said += ", want " + plain(f.Want)
	}
	if f.Got != "" {
		said += ", got " + plain(f.Got)
	}
	if f.Hint != "" {
		said += ". Remedy: " + plain(f.Hint)
	}
	return said
}

// writeMeasured says what a run on one machine showed.
func writeMeasured(out *strings.Builder, r *report.Report) {
	m := r.Measured
	out.WriteString("\n## Measured\n\n")
	if m == nil {
		out.WriteString("The submission was not started.\n")
		return
	}
	fmt.Fprintf(out, "On %s. These numbers are that machine's.\n\n", plain(orMachine(m.Machine)))
	if m.Shrunk != "" {
		fmt.Fprintf(out, "- %s\n", plain(m.Shrunk))
	}
	for _, b := range measuredBars(m, r.Limits) {
		fmt.Fprintf(out, "- %s: %s, %s; %s\n", b.Label, plain(b.Value), plain(b.Bound), plain(b.Spare))
	}
	if m.Projection != nil && m.Projection.Device != "" {
		fmt.Fprintf(out, "- %s\n", plain(m.Projection.Device))
	}
	if b := m.Batch; b != nil {
		fmt.Fprintf(out, "- batch: %s at %d at a time, %d failed, %d empty\n", words.Plural(b.Requests, "request"), b.Concurrency, b.Failed, b.Empty)
	}
	var open []string
	for _, c := range m.Conditions {
		if !c.Held {
			open = append(open, plain(c.Name))
		}
	}
	if len(open) > 0 {
		fmt.Fprintf(out, "- conditions of the grader's machine that were not held: %s\n", strings.Join(open, ", "))
	}
}

func orMachine(machine string) string {
	if machine == "" {
		return "a machine that is not described"
	}
	return machine
}

// claimsShown bounds the claims; the page and the JSON have more of them.
const claimsShown = 50

// writeClaims repeats what only the submission says.
func writeClaims(out *strings.Builder, claims []report.Claim) {
	if len(claims) == 0 {
		return
	}
	out.WriteString("\n## Self-declared\n\nOnly the submission says so; nothing outside it was asked.\n\n")
	shown := cut(claims, claimsShown)
	for _, c := range shown.Shown {
		fmt.Fprintf(out, "- %s %s = %s\n", literal(c.Source), plain(c.Name), literal(c.Value))
	}
	if shown.More > 0 {
		fmt.Fprintf(out, "- and %s more\n", words.Grouped(int64(shown.More)))
	}
}

// literal writes an untrusted text as a Markdown code span.
func literal(s string) string {
	s = text(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || s == "" {
		s = " " + s + " "
	}
	return fence + s + fence
}

// plain writes an untrusted text so that Markdown and the HTML in it stay text.
func plain(s string) string {
	var out strings.Builder
	for _, r := range text(s) {
		if strings.ContainsRune("\\`*_[]<>|#&~!", r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
