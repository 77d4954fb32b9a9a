package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/words"
)

// part is one part of a whole. Positions are percent.
type part struct {
	Kind  string
	Class string
	Files int
	Bytes int64
	From  float64
	Width float64
}

func newSizes(sizes []report.KindSize) []part {
	total, parts := int64(0), []part{}
	for _, s := range sizes {
		total += s.Bytes
	}
	from := 0.0
	for _, s := range sizes {
		width := percent(float64(s.Bytes), float64(total))
		parts = append(parts, part{string(s.Kind), "kind-" + string(s.Kind), s.Files, s.Bytes, from, width})
		from += width
	}
	return parts
}

// Share writes a part's percentage.
func (p part) Share() string { return percentText(p.Width) }

func percentText(p float64) string {
	switch {
	case p == 0:
		return "0%"
	case p < 0.1:
		return "<0.1%"
	}
	return fmt.Sprintf("%.1f%%", p)
}

// count is one term of the ternary and stored rules.
type count struct {
	Symbol string
	Value  int64
	What   string
}

func newCounts(c *report.Counts) []count {
	if c == nil {
		return nil
	}
	base := "elements of the pinned base"
	if c.BaseSelfDeclared {
		base = "elements of the base, as the submission itself says"
	}
	return []count{
		{"T", c.Ternary, fmt.Sprintf("ternary weights: %d packed and %d literal of %d entries", c.Packed, c.Literal, c.Entries)},
		{"s", c.Scales, "scales of them"},
		{"f", c.Floats, "weights kept in floating point"},
		{"u", c.Unreferenced, "stored elements that no entry refers to, weighted by type"},
		{"P0", c.Base, base + ", without embedding and head"},
	}
}

// tensor is one line of the list of ternary tensors.
type tensor struct {
	Name string
	Text string
	Odd  string // what deserves a look
}

func newTensors(tensors []report.Tensor) list[tensor] {
	tensors = slices.DeleteFunc(slices.Clone(tensors), func(t report.Tensor) bool { return t.Kind == manifest.KindFloat })
	shown := cut(tensors, listShown)
	lines := list[tensor]{More: shown.More}
	for _, t := range shown.Shown {
		lines.Shown = append(lines.Shown, newTensor(t))
	}
	return lines
}

func newTensor(t report.Tensor) tensor {
	var dims []string
	for _, d := range t.Shape {
		dims = append(dims, strconv.FormatInt(d, 10))
	}
	parts := []string{t.Kind + " " + strings.Join(dims, "×"), fmt.Sprintf("a scale for %s", words.Grouped(t.Unit))}
	var odd []string
	if h := t.Histogram; h != nil {
		l := newLayer(*h, column{})
		parts = append(parts, fmt.Sprintf("−1 %s, 0 %s, +1 %s", l.Shares[0], l.Shares[1], l.Shares[2]))
		if h[3] > 0 {
			odd = append(odd, fmt.Sprintf("codes that stand for nothing: %s", words.Grouped(h[3])))
		}
	}
	if t.ScaleMin != "" {
		parts = append(parts, fmt.Sprintf("scales %s to %s", t.ScaleMin, t.ScaleMax))
	}
	for _, c := range []struct {
		n    int64
		what string
	}{{t.ZeroScale, "scales of zero"}, {t.Negative, "negative scales"}, {t.NonFinite, "scales that are no numbers"}} {
		if c.n > 0 {
			odd = append(odd, words.Grouped(c.n)+" "+c.what)
		}
	}
	return tensor{t.Name, strings.Join(parts, " · "), strings.Join(odd, ", ")}
}
