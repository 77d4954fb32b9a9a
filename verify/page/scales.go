package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"slipway/verify/report"
	"slipway/verify/words"
)

// scales is from where to where the scales of each layer reach, on a logarithmic
// axis.
type scales struct {
	Layers []scaleRange
	Ticks  []tick
	More   int  // layers that are not shown
	Below  bool // some are zero or negative, which such an axis does not have
}

// scaleRange is one column: positions are percent from the top.
type scaleRange struct {
	column
	Y, Height float64
	Text      string // its numbers
	Below     bool
}

// Label says the column's numbers.
func (s scaleRange) Label() string { return s.Name + ": " + s.Text }

// tick is a number on the axis.
type tick struct {
	Text string
	Y    float64
}

// extent is what a layer's scales are. Low and High are of those above zero; both
// are zero where there are none.
type extent struct {
	low, high float64
	lowest    float64 // of all
	zero      int64
	negative  int64
	nonFinite int64
}

// add widens the extent by a tensor's; it reports whether that has scales.
func (e *extent) add(t report.Tensor) bool {
	low, errLow := strconv.ParseFloat(t.ScaleMin, 64)
	high, errHigh := strconv.ParseFloat(t.ScaleMax, 64)
	e.zero, e.negative, e.nonFinite = e.zero+t.ZeroScale, e.negative+t.Negative, e.nonFinite+t.NonFinite
	if errLow != nil || errHigh != nil || math.IsNaN(low) || math.IsNaN(high) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		return t.NonFinite > 0
	}
	e.lowest = min(e.lowest, low)
	if high > 0 {
		if low <= 0 {
			low = high // how small the smallest above zero is, the report does not say
		}
		if e.high == 0 {
			e.low = low
		}
		e.low, e.high = min(e.low, low), max(e.high, high)
	}
	return true
}

// below reports whether there is what the axis does not have.
func (e *extent) below() bool { return e.zero+e.negative+e.nonFinite > 0 || e.lowest < 0 }

// text writes the numbers. A number is as brief as a report's.
func (e *extent) text() string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
	var parts []string
	switch {
	case e.high > 0 && e.low == e.high:
		parts = append(parts, number(e.high))
	case e.high > 0:
		parts = append(parts, number(e.low)+" to "+number(e.high))
	}
	for _, c := range []struct {
		n    int64
		what string
	}{{e.zero, "of zero"}, {e.negative, "negative"}, {e.nonFinite, "that are no numbers"}} {
		if c.n > 0 {
			parts = append(parts, words.Grouped(c.n)+" "+c.what)
		}
	}
	if len(parts) == 0 {
		return "none above zero"
	}
	return strings.Join(parts, ", ")
}

func newScales(tensors []report.Tensor) *scales {
	extents := map[int]*extent{}
	for _, t := range tensors {
		n := LayerOf(t.Name)
		e := extents[n]
		if e == nil {
			e = &extent{}
		}
		if e.add(t) {
			extents[n] = e
		}
	}
	if len(extents) == 0 {
		return nil
	}
	s := &scales{}
	shown := cut(inOrder(extents), layersShown)
	s.More = shown.More
	axis := newAxis(extents)
	s.Ticks = axis.ticks()
	for i, n := range shown.Shown {
		e := extents[n]
		r := scaleRange{column: newColumn(n, i, len(shown.Shown)), Text: e.text(), Below: e.below()}
		if e.high > 0 {
			top, bottom := axis.y(e.high), axis.y(e.low)
			r.Height = max(bottom-top, leastHeight)
			r.Y = min(max(top-(r.Height-bottom+top)/2, 0), 100-r.Height) // one that is no more than a line stays around its number
		}
		s.Below = s.Below || r.Below
		s.Layers = append(s.Layers, r)
	}
	return s
}

// leastHeight is that of a column whose scales are all equal, in percent.
const leastHeight = 2

// axis is logarithmic, from one power of ten to another.
type axis struct{ from, to int }

// newAxis holds the scales of all layers; from is to where none is above zero.
func newAxis(extents map[int]*extent) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, e := range extents {
		if e.high > 0 {
			low, high = min(low, e.low), max(high, e.high)
		}
	}
	if low > high {
		return axis{}
	}
	a := axis{int(math.Floor(math.Log10(low))), int(math.Ceil(math.Log10(high)))}
	if a.from == a.to {
		a.from--
	}
	return a
}

// y places a number, in percent from the top.
func (a axis) y(value float64) float64 {
	return percent(float64(a.to)-math.Log10(value), float64(a.to-a.from))
}

// ticks are the powers of ten, or, where they would stand too close, some of them;
// where they are few, 2 and 5 of each too.
func (a axis) ticks() (ticks []tick) {
	if a.from == a.to {
		return nil
	}
	of := []float64{1}
	if a.to-a.from <= 2 {
		of = []float64{1, 5, 2} // those below 1 are of the next smaller power
	}
	step := max((a.to-a.from+ticksShown-2)/(ticksShown-1), 1)
	for power := a.to; power >= a.from; power -= step {
		for _, digit := range of {
			at := power
			if digit > 1 {
				at--
			}
			if at >= a.from {
				number, text := digit*math.Pow10(at), fmt.Sprintf("%ge%d", digit, at)
				if at >= -4 && at <= 4 {
					text = strconv.FormatFloat(number, 'f', max(-at, 0), 64)
				}
				ticks = append(ticks, tick{text, a.y(number)})
			}
		}
	}
	return ticks
}

// ticksShown is how many powers of ten stand beside an axis at most.
const ticksShown = 6

// First and Last name the outer columns.
func (s *scales) First() string { return s.Layers[0].Name }

func (s *scales) Last() string { return s.Layers[len(s.Layers)-1].Name }
