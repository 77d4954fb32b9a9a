package page

import (
	"fmt"
	"math"
	"strings"

	"slipway/verify/report"
	"slipway/verify/words"
)

// measured is the section of what a rehearsal observed.
type measured struct {
	*report.Measured
	Bars     []bar
	Held     []report.Condition
	NotHeld  []report.Condition
	Starts   []start
	First    list[report.Reply]
	Batch    []tile
	Latency  *histogram
	Opened   list[report.Access]
	Programs list[string]
	Tried    list[string]
	Answers  []tile
	Agreed   []agreement
	Log      []string
	LogMore  int
}

func newMeasured(m *report.Measured, limits report.Limits) *measured {
	v := &measured{Measured: m, Bars: measuredBars(m, limits), First: cut(m.First, listShown)}
	for _, c := range m.Conditions {
		if c.Held {
			v.Held = append(v.Held, c)
		} else {
			v.NotHeld = append(v.NotHeld, c)
		}
	}
	for _, s := range cut(m.Starts, listShown).Shown {
		v.Starts = append(v.Starts, newStart(s, limits.StartSeconds))
	}
	if m.Batch != nil {
		v.Batch, v.Latency = batchTiles(m.Batch), newHistogram(m.Batch)
	}
	if t := m.Trace; t != nil {
		v.Opened, v.Programs, v.Tried = cut(t.Opened, listShown), cut(t.Programs, listShown), cut(t.Connected, listShown)
	}
	if m.Quality != nil {
		v.Answers, v.Agreed = qualityTiles(m.Quality), agreements(m.Quality)
	}
	if log := strings.TrimRight(m.Log, "\n"); log != "" {
		v.Log = strings.Split(log, "\n")
		if over := len(v.Log) - logShown; over > 0 {
			v.Log, v.LogMore = v.Log[over:], over
		}
	}
	return v
}

// start is one start as a waterfall: each phase's bar reaches from the phase
// before it to its own time.
type start struct {
	report.Start
	Outcome string
	Good    bool
	Rows    list[row]
}

type row struct {
	Name  string
	At    float64
	From  float64
	Width float64
}

func newStart(s report.Start, limit float64) start {
	v := start{Start: s, Good: s.Healthy > 0 && (limit == 0 || s.Healthy <= limit), Outcome: s.Outcome(limit)}
	end := s.Healthy
	for _, p := range s.Phases {
		end = max(end, p.At)
	}
	phases := cut(s.Phases, listShown)
	v.Rows.More = phases.More
	before := 0.0
	for _, p := range phases.Shown {
		from := percent(before, end)
		v.Rows.Shown = append(v.Rows.Shown, row{p.Name, p.At, from, max(percent(p.At, end)-from, 0.4)})
		before = max(before, p.At)
	}
	return v
}

// tile is a number with its name.
type tile struct {
	Name  string
	Value string
	Bad   bool
}

func batchTiles(b *report.Batch) []tile {
	tiles := []tile{
		{"requests", words.Grouped(int64(b.Requests)), false},
		{"at a time", words.Grouped(int64(b.Concurrency)), false},
		{"failed", words.Grouped(int64(b.Failed)), b.Failed > 0},
		{"empty", words.Grouped(int64(b.Empty)), b.Empty > 0},
	}
	if b.Seconds > 0 {
		tiles = append(tiles, tile{"tokens a second", trimmed(float64(b.Tokens)/b.Seconds, 1), false})
	}
	tiles = append(tiles, tile{"in all", words.Seconds(b.Seconds), false})
	if b.Repeats > 0 {
		tiles = append(tiles, tile{"repeats left out", words.Grouped(int64(b.Repeats)), false})
	}
	return tiles
}

func qualityTiles(q *report.Quality) []tile {
	var tiles []tile
	if q.Questions > 0 {
		tiles = append(tiles,
			tile{"right", fmt.Sprintf("%s of %s", words.Grouped(int64(q.Right)), words.Grouped(int64(q.Questions))), false},
			tile{"in an answer's form", words.Grouped(int64(q.Parsed)), false},
			tile{"cut off", words.Grouped(int64(q.Truncated)), false},
			tile{"not answered", words.Grouped(int64(q.Failed)), q.Failed > 0})
	}
	if q.Steps > 0 {
		tiles = append(tiles, tile{"tau", trimmed(q.Tau, 4), q.Tau < q.Floor}, tile{"mean over prompts", trimmed(q.PerPrompt, 4), false},
			tile{"tokens", words.Grouped(int64(q.Tokens)), false}, tile{"steps", words.Grouped(int64(q.Steps)), false})
	}
	return tiles
}

type agreement struct {
	With string
	*report.Agreement
}

func agreements(q *report.Quality) []agreement {
	var all []agreement
	if q.Alone != nil {
		all = append(all, agreement{"in the batch as alone", q.Alone})
	}
	if q.Golden != nil {
		all = append(all, agreement{"as the golden file has them", q.Golden})
	}
	return all
}

// histogram is how long the answered requests took. Positions are percent.
type histogram struct {
	Bins                         []bin
	Lowest, Median, P95, Longest float64
	Most                         int // requests in the fullest bin
}

type bin struct {
	X, Width, Y, Height float64
	Label               string
}

const binsShown = 30

func newHistogram(b *report.Batch) *histogram {
	n := len(b.Latencies)
	if n == 0 {
		return nil
	}
	h := &histogram{Lowest: b.Latencies[0], Median: b.Quantile(0.5), P95: b.Quantile(0.95), Longest: b.Latencies[n-1]}
	span := h.Longest - h.Lowest
	bins := min(binsShown, int(math.Ceil(2*math.Sqrt(float64(n)))))
	if !(span > 0) {
		bins, span = 1, 0
	}
	counts := make([]int, bins)
	for _, took := range b.Latencies {
		at := 0
		if span > 0 {
			at = min(max(int(float64(bins)*(took-h.Lowest)/span), 0), bins-1)
		}
		counts[at]++
		h.Most = max(h.Most, counts[at])
	}
	pitch := 100 / float64(bins)
	for i, count := range counts {
		height := percent(float64(count), float64(h.Most))
		from, to := h.Lowest+span*float64(i)/float64(bins), h.Lowest+span*float64(i+1)/float64(bins)
		h.Bins = append(h.Bins, bin{float64(i)*pitch + 0.06*pitch, 0.88 * pitch, 100 - height, height,
			fmt.Sprintf("%s to %s: %s", words.Seconds(from), words.Seconds(to), words.Plural(count, "request"))})
	}
	return h
}
