package page

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"slipway/verify/report"
	"slipway/verify/words"
)

// codes is how often each code stands in each layer.
type codes struct {
	Layers []layer
	More   int  // layers that are not shown
	Bad    bool // a code that stands for nothing is somewhere
}

// layer is one column: -1, 0, +1 and codes that stand for nothing. Heights are
// percent, -1 at the bottom.
type layer struct {
	column
	Counts  [4]int64
	Y       [4]float64
	Heights [4]float64
	Shares  [4]string
}

// Label says the column's numbers.
func (l layer) Label() string {
	label := fmt.Sprintf("%s: −1 %s, 0 %s, +1 %s", l.Name, l.Shares[0], l.Shares[1], l.Shares[2])
	if l.Counts[3] > 0 {
		label += fmt.Sprintf(", codes that stand for nothing: %s", words.Grouped(l.Counts[3]))
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
	c := &codes{}
	for _, sum := range sums {
		c.Bad = c.Bad || sum[3] > 0
	}
	shown := cut(inOrder(sums), layersShown)
	c.More = shown.More
	for i, n := range shown.Shown {
		c.Layers = append(c.Layers, newLayer(*sums[n], newColumn(n, i, len(shown.Shown))))
	}
	return c
}

// inOrder lists the layers that there is something of, those outside layers last.
func inOrder[T any](layers map[int]T) []int {
	return slices.SortedFunc(maps.Keys(layers), func(a, b int) int { return cmp.Compare(uint(a), uint(b)) })
}

// column is where a layer is drawn, the same in each chart, in percent.
type column struct {
	Name  string
	X     float64
	Width float64
}

func newColumn(layer, i, of int) column {
	c := column{Name: fmt.Sprintf("layer %d", layer)}
	if layer < 0 {
		c.Name = "outside layers"
	}
	pitch := 100 / float64(of)
	c.X, c.Width = (float64(i)+0.09)*pitch, 0.82*pitch
	return c
}

func newLayer(counts [4]int64, at column) layer {
	l := layer{column: at, Counts: counts}
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

// First and Last name the outer columns.
func (c *codes) First() string { return c.Layers[0].Name }

func (c *codes) Last() string { return c.Layers[len(c.Layers)-1].Name }
