package page

import (
	"cmp"
	"fmt"
	"regexp"
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

// codes is how often each code stands in each layer.
type codes struct {
	Layers []layer
	More   int  // layers that are not shown
	Bad    bool // code 3 stands somewhere
}

// layer is one column. Heights are percent, code 0 (-1) at the bottom.
type layer struct {
	Name    string
	Counts  [4]int64
	X       float64
	Width   float64
	Y       [4]float64
	Heights [4]float64
	Shares  [4]string
}

// Label says the column's numbers.
func (l layer) Label() string {
	label := fmt.Sprintf("%s: −1 %s, 0 %s, +1 %s", l.Name, l.Shares[0], l.Shares[1], l.Shares[2])
	if l.Counts[3] > 0 {
		label += fmt.Sprintf(", code 3 %s times", words.Grouped(l.Counts[3]))
	}
	return label
}

const layersShown = 200

var layerNumber = regexp.MustCompile(`(?:^|\.)(?:layers|blocks|h)\.([0-9]{1,6})\.`)

// LayerOf returns the number of a tensor's layer, -1 outside layers.
func LayerOf(tensor string) int {
	match := layerNumber.FindStringSubmatch(tensor)
	if match == nil {
		return -1
	}
	n, _ := strconv.Atoi(match[1]) // six digits
	return n
}

func newCodes(tensors []report.Tensor) *codes {
	sums := map[int]*[4]int64{}
	for _, t := range tensors {
		if t.Histogram == nil {
			continue
		}
		n := LayerOf(t.Name)
		if sums[n] == nil {
			sums[n] = new([4]int64)
		}
		for code, times := range t.Histogram {
			sums[n][code] += times
		}
	}
	if len(sums) == 0 {
		return nil
	}
	var numbers []int
	for n := range sums {
		numbers = append(numbers, n)
	}
	slices.SortFunc(numbers, func(a, b int) int { // those outside layers last
		return cmp.Compare(uint(a), uint(b))
	})
	c := &codes{}
	for _, n := range numbers {
		c.Bad = c.Bad || sums[n][3] > 0
	}
	shown := cut(numbers, layersShown)
	c.More = shown.More
	pitch := 100 / float64(len(shown.Shown))
	for i, n := range shown.Shown {
		c.Layers = append(c.Layers, newLayer(n, *sums[n], float64(i)*pitch, pitch))
	}
	return c
}

func newLayer(number int, counts [4]int64, x, pitch float64) layer {
	l := layer{Name: fmt.Sprintf("layer %d", number), Counts: counts, X: x + 0.09*pitch, Width: 0.82 * pitch}
	if number < 0 {
		l.Name = "outside layers"
	}
	total := 0.0
	for _, n := range counts {
		total += float64(n)
	}
	y := 100.0
	for code, n := range counts {
		height := percent(float64(n), total)
		l.Shares[code] = percentText(height)
		y = max(y-height, 0)
		if code == 3 && n > 0 {
			height = max(height, 2) // a single one is to be seen, at the top
		}
		l.Y[code], l.Heights[code] = y, height
	}
	return l
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
		l := newLayer(0, *h, 0, 0)
		parts = append(parts, fmt.Sprintf("−1 %s, 0 %s, +1 %s", l.Shares[0], l.Shares[1], l.Shares[2]))
		if h[3] > 0 {
			odd = append(odd, fmt.Sprintf("code 3 stands %s times", words.Grouped(h[3])))
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

// Last names the last column.
func (c *codes) Last() string { return c.Layers[len(c.Layers)-1].Name }
