package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slipway/verify/words"
)

// logLinesShown bounds the log in text; JSON has all that was kept.
const logLinesShown = 20

// measured prints what the rehearsal observed.
func (t *textWriter) measured(m *Measured, limits Limits) {
	t.line("")
	t.line("measured on this machine: %s", orUnknown(m.Machine))
	if m.Shrunk != "" {
		t.line("  %s", m.Shrunk)
	}
	t.conditions(m.Conditions)
	for _, s := range m.Starts {
		t.start(s, limits.StartSeconds)
	}
	t.bounded(len(m.First), func(i int) { t.reply(m.First[i]) })
	if m.Batch != nil {
		t.batch(m.Batch)
	}
	if p := m.Projection; p != nil {
		t.line("  deadline: %s = %s of %s", p.Formula, words.Seconds(p.Seconds), words.Seconds(p.Limit))
		if p.Device != "" {
			t.line("    %s", p.Device)
		}
	}
	if m.Trace != nil {
		t.trace(m.Trace)
	}
	if m.Quality != nil {
		t.quality(m.Quality)
	}
	t.log(m.Log)
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// bounded prints the first of n things.
func (t *textWriter) bounded(n int, show func(int)) {
	for i := range min(n, findingsShown) {
		show(i)
	}
	if n > findingsShown {
		t.line("  and %s more", words.Grouped(int64(n-findingsShown)))
	}
}

func (t *textWriter) conditions(conditions []Condition) {
	var held []string
	for _, c := range conditions {
		if c.Held && c.Detail != "" {
			held = append(held, fmt.Sprintf("%s (%s)", c.Name, c.Detail))
		} else if c.Held {
			held = append(held, c.Name)
		}
	}
	if len(held) > 0 {
		t.line("  held: %s", strings.Join(held, ", "))
	}
	for _, c := range conditions {
		if !c.Held {
			t.line("  not held: %s: %s", c.Name, orUnknown(c.Detail))
		}
	}
}

// Outcome says whether and when a start was healthy, beside the limit if there is
// one.
func (s Start) Outcome(limit float64) string {
	if s.Healthy == 0 {
		return "never healthy"
	}
	text := "healthy after " + words.Seconds(s.Healthy)
	if limit > 0 {
		text += " of " + words.Seconds(limit)
	}
	if s.Saved > 0 {
		text += ", " + words.Seconds(s.Saved) + " sooner than the first"
	}
	return text
}

func (t *textWriter) start(s Start, limit float64) {
	text := s.Outcome(limit)
	if s.Exit != "" {
		text += ", ended by itself: " + s.Exit
	}
	if s.Stopped > 0 {
		text += ", stopped in " + words.Seconds(s.Stopped)
	}
	t.line("  start (%s): %s", s.What, text)
	t.bounded(len(s.Phases), func(i int) { t.line("    %9s  %s", words.Seconds(s.Phases[i].At), s.Phases[i].Name) })
	if len(s.Left) > 0 {
		t.line("    left behind: %s", strings.Join(s.Left, ", "))
	}
}

func (t *textWriter) reply(r Reply) {
	text := fmt.Sprintf("%d", r.Status)
	if r.Status == 0 {
		text = "no reply"
	}
	text += " after " + words.Seconds(r.Took)
	if r.Problem != "" {
		text += ": " + r.Problem
	}
	if r.Problem != "" && r.Excerpt != "" {
		text += ": " + r.Excerpt
	}
	t.line("  first requests: %s: %s", r.Request, text)
}

func (t *textWriter) batch(b *Batch) {
	text := fmt.Sprintf("%s, %d at a time, in %s; %d failed, %d empty", words.Plural(b.Requests, "request"), b.Concurrency, words.Seconds(b.Seconds), b.Failed, b.Empty)
	if b.Repeats > 0 {
		text += fmt.Sprintf("; %d more left out as repeats", b.Repeats)
	}
	t.line("  batch: %s", text)
	if b.Seconds > 0 && b.Tokens > 0 {
		t.line("    %s tokens, %.1f a second", words.Grouped(int64(b.Tokens)), float64(b.Tokens)/b.Seconds)
	}
	if len(b.Latencies) > 0 {
		t.line("    a request took %s (median), %s (95%%), %s (longest)",
			words.Seconds(b.Quantile(0.5)), words.Seconds(b.Quantile(0.95)), words.Seconds(b.Quantile(1)))
	}
}

// Quantile returns the latency that a share of the answered requests did not
// exceed (nearest rank), 0 where none was answered.
func (b *Batch) Quantile(share float64) float64 {
	if len(b.Latencies) == 0 {
		return 0
	}
	rank := int(math.Ceil(share*float64(len(b.Latencies)))) - 1
	return b.Latencies[min(max(rank, 0), len(b.Latencies)-1)]
}

func (t *textWriter) trace(trace *Trace) {
	var written []string
	for _, a := range trace.Opened {
		if a.Written {
			written = append(written, a.Path)
		}
	}
	t.line("  trace: %s opened, %s started, %s beyond loopback tried",
		words.Plural(len(trace.Opened), "file"), words.Plural(len(trace.Programs), "program"), pluralAddress(len(trace.Connected)))
	for _, list := range []struct {
		what  string
		names []string
	}{{"wrote", written}, {"started", trace.Programs}, {"tried to reach", trace.Connected}} {
		t.bounded(len(list.names), func(i int) { t.line("    %s %s", list.what, list.names[i]) })
	}
}

func pluralAddress(n int) string {
	if n == 1 {
		return "1 address"
	}
	return words.Grouped(int64(n)) + " addresses"
}

func (t *textWriter) quality(q *Quality) {
	if q.Questions > 0 {
		text := fmt.Sprintf("%d of %d right = %.4f, with 95%% confidence %.4f to %.4f; floor %g", q.Right, q.Questions, q.Accuracy, q.Low, q.High, q.Floor)
		if q.Chance > 0 {
			text += fmt.Sprintf(", chance %g", q.Chance)
		}
		t.line("  quality: %s", text)
		t.line("    %d in the form of an answer, %d cut off at the token limit, %d not answered", q.Parsed, q.Truncated, q.Failed)
	}
	if q.Steps > 0 {
		t.line("  quality: tau %.4f (%s in %s), mean over prompts %.4f; floor %g", q.Tau, words.Plural(q.Tokens, "token"), words.Plural(q.Steps, "step"), q.PerPrompt, q.Floor)
	}
	for _, a := range []struct {
		what string
		with *Agreement
	}{{"in the batch as alone", q.Alone}, {"as the golden file has them", q.Golden}} {
		if a.with == nil {
			continue
		}
		t.line("    %d of %d the same %s (%.4f)", a.with.Same, a.with.Compared, a.what, a.with.Share)
		if a.with.First != "" {
			t.line("      first difference: %s", a.with.First)
		}
	}
}

func (t *textWriter) log(log string) {
	log = strings.TrimRight(log, "\n")
	if log == "" {
		return
	}
	lines := strings.Split(log, "\n")
	if over := len(lines) - logLinesShown; over > 0 {
		lines = slices.Insert(lines[over:], 0, fmt.Sprintf("(%s before)", words.Plural(over, "line")))
	}
	t.line("  the end of its log")
	for _, line := range lines {
		t.line("    %s", line)
	}
}
