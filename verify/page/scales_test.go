package page

import (
	"math"
	"slices"
	"strings"
	"testing"

	"slipway/verify/report"
)

// A column reaches from a layer's smallest scale to its largest, on an axis of
// powers of ten; what the axis does not have is marked.
func TestScales(t *testing.T) {
	scale := func(name, low, high string) report.Tensor {
		return report.Tensor{Name: "model.layers." + name, Kind: "packed_2bit", ScaleMin: low, ScaleMax: high}
	}
	zero, negative := scale("2.a", "0", "0.1"), scale("3.a", "-0.5", "-0.1")
	zero.ZeroScale, negative.Negative = 7, 2
	s := newScales([]report.Tensor{
		scale("0.a", "0.01", "0.1"), scale("0.b", "0.001", "0.05"), scale("1.a", "0.02", "0.02"), zero, negative,
		{Name: "outside", ScaleMin: "1e-30", ScaleMax: "1"}, {Name: "model.layers.9.norm", Kind: "float"},
	})
	want := []struct {
		label  string
		top    float64
		height float64
		below  bool
	}{
		{"layer 0: 0.001 to 0.1", 100. / 30, 200. / 30, false},
		{"layer 1: 0.02", 100*math.Log10(50)/30 - 1, 2, false},
		{"layer 2: 0.1, 7 of zero", 100./30 - 1, 2, true},
		{"layer 3: 2 negative", 0, 0, true},
		{"outside layers: 1e-30 to 1", 0, 100, false},
	}
	if len(s.Layers) != len(want) || !s.Below || s.First() != "layer 0" || s.Last() != "outside layers" {
		t.Fatalf("%+v", s)
	}
	for i, w := range want {
		l := s.Layers[i]
		if l.Label() != w.label || math.Abs(l.Y-w.top) > 0.01 || math.Abs(l.Height-w.height) > 0.01 || l.Below != w.below {
			t.Errorf("%s: from %.3f, %.3f high, below %t; want %+v", l.Label(), l.Y, l.Height, l.Below, w)
		}
	}
	if newScales([]report.Tensor{{Name: "x"}}) != nil {
		t.Error("a chart of no scales")
	}
	if none := newScales([]report.Tensor{negative}); len(none.Ticks) != 0 || !none.Below || none.Layers[0].Height != 0 {
		t.Errorf("without a scale above zero: %+v", none)
	}
}

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		axis axis
		want string
	}{
		{axis{-2, -1}, "0.1 0.05 0.02 0.01"},
		{axis{-1, 1}, "10 5 2 1 0.5 0.2 0.1"},
		{axis{-5, -1}, "0.1 0.01 0.001 0.0001 1e-5"},
		{axis{-30, 0}, "1 1e-6 1e-12 1e-18 1e-24 1e-30"},
		{axis{}, ""},
	} {
		var texts []string
		ticks := tc.axis.ticks()
		for _, tick := range ticks {
			texts = append(texts, tick.Text)
		}
		if got := strings.Join(texts, " "); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.axis, got, tc.want)
		}
		if !slices.IsSortedFunc(ticks, func(a, b tick) int { return int(math.Copysign(1, a.Y-b.Y)) }) || len(ticks) > 0 && (ticks[0].Y != 0 || ticks[len(ticks)-1].Y != 100) {
			t.Errorf("%+v: %v", tc.axis, ticks)
		}
	}
}
