package page

import (
	"fmt"
	"math"
	"math/big"

	"slipway/verify/report"
	"slipway/verify/words"
)

// bar is a number against its bound. Positions are percent of the bar's width.
type bar struct {
	Label string
	Value string
	Bound string // "at most 1.1"
	Spare string // "0.0367 to spare", or by how much it misses
	Good  bool

	Fill  float64
	Mark  float64 // of the bound
	Marks []mark  // others
	Band  *band   // an interval around the value
}

type mark struct {
	Name string
	At   float64
}

type band struct{ From, Width float64 }

// bound is how a bar's value is held against its limit.
type bound int

const (
	atMost bound = iota
	atLeast
	moreThan
)

func (b bound) holds(value, limit float64) bool {
	switch b {
	case atMost:
		return value <= limit
	case atLeast:
		return value >= limit
	}
	return value > limit
}

func (b bound) String() string { return [...]string{"at most", "at least", "more than"}[b] }

// newBar draws value and limit on a scale from 0 to top, or to a little more
// than both where top is 0. write writes either for people.
func newBar(label string, value float64, is bound, limit, top float64, write func(float64) string) bar {
	if top == 0 {
		top = 1.15 * max(value, limit)
	}
	b := bar{Label: label, Value: write(value), Bound: fmt.Sprintf("%s %s", is, write(limit)), Good: is.holds(value, limit),
		Fill: percent(value, top), Mark: percent(limit, top)}
	difference := limit - value
	if is != atMost {
		difference = value - limit
	}
	switch {
	case b.Good:
		b.Spare = write(difference) + " to spare"
	case difference == 0:
		b.Spare = "just not"
	default:
		b.Spare = "misses by " + write(-difference)
	}
	return b
}

// percent places a value on a scale, within it, to a hundred-thousandth. What is
// no number is at 0.
func percent(value, top float64) float64 {
	if !(top > 0) || !(value > 0) {
		return 0
	}
	return math.Round(1000*min(100*value/top, 100)) / 1000
}

// staticBars are the margins that do not depend on the machine.
func staticBars(r *report.Report) []bar {
	var bars []bar
	share := func(f float64) string { return trimmed(f, 6) }
	if c := r.Counts; c != nil {
		if limit, ok := ratioOf(r.Limits.FractionAbove); ok {
			fraction, _ := ratioOf(c.Fraction)
			b := newBar("Ternary fraction T/(T+s+f)", fraction, moreThan, limit, 1, share)
			b.Good = c.FractionMargin > 0 // the integers decide
			b.Spare += "; " + c.FractionText(r.Limits.FractionAbove)
			bars = append(bars, b)
		}
		if limit, ok := ratioOf(r.Limits.StoredAtMost); ok {
			stored, defined := ratioOf(c.StoredRatio)
			b := newBar("Stored elements (T+s+f+u)/P0", stored, atMost, limit, 0, share)
			b.Good = c.StoredMargin >= 0
			b.Spare += "; " + c.StoredText(r.Limits.StoredAtMost)
			if defined {
				bars = append(bars, b)
			}
		}
	}
	if r.Limits.Bytes > 0 {
		bars = append(bars, newBar("Size of all files", float64(r.Bytes), atMost, float64(r.Limits.Bytes), 0,
			func(f float64) string { return bytesText(int64(f)) }))
	}
	return bars
}

// ratioOf reads "95/100" or "0.986717".
func ratioOf(text string) (float64, bool) {
	ratio, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, false
	}
	value, _ := ratio.Float64()
	return value, true
}

// measuredBars are the margins that were measured.
func measuredBars(m *report.Measured, limits report.Limits) []bar {
	var bars []bar
	if len(m.Starts) > 0 && m.Starts[0].Healthy > 0 && limits.StartSeconds > 0 {
		bars = append(bars, newBar("Start to the first 200 of /health", m.Starts[0].Healthy, atMost, limits.StartSeconds, 0, words.Seconds))
	}
	if p := m.Projection; p != nil && p.Limit > 0 {
		bars = append(bars, newBar("Whole load, projected", p.Seconds, atMost, p.Limit, 0, words.Seconds))
	}
	if q := m.Quality; q != nil {
		bars = append(bars, qualityBars(q)...)
	}
	return bars
}

func qualityBars(q *report.Quality) []bar {
	var bars []bar
	share := func(f float64) string { return trimmed(f, 4) }
	if q.Questions > 0 {
		b := newBar("Accuracy", q.Accuracy, atLeast, q.Floor, 1, share)
		if q.High > q.Low {
			b.Band = &band{percent(q.Low, 1), percent(q.High, 1) - percent(q.Low, 1)}
			b.Spare += fmt.Sprintf("; 95%% confidence %s to %s", share(q.Low), share(q.High))
		}
		if q.Chance > 0 {
			b.Marks = append(b.Marks, mark{"chance " + share(q.Chance), percent(q.Chance, 1)})
		}
		bars = append(bars, b)
	}
	if q.Steps > 0 {
		bars = append(bars, newBar("Tau, tokens a step", q.Tau, atLeast, q.Floor, 0, share))
	}
	return bars
}
