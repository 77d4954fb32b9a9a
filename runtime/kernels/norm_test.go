package kernels

import (
	"math"
	"testing"
)

func rms(x, weight []float64, offset, epsilon float64) []float64 {
	mean := 0.0
	for _, v := range x {
		mean += v * v / float64(len(x))
	}
	y := make([]float64, len(x))
	for i := range y {
		y[i] = (weight[i] + offset) * x[i] / math.Sqrt(mean+epsilon)
	}
	return y
}

func TestNorms(t *testing.T) {
	random := newRandom(11)
	for _, width := range []int{1, 7, 96, 257} {
		const rows, epsilon = 5, 1e-6
		p := newTestProgram(t, SharedPool(), Shape{Rows: rows, Slots: 1, Context: rows})
		weight := fill(random, make([]float32, width))
		x, d, plain, centred := p.Activation(width), p.Activation(width), p.Activation(width), p.Activation(width)
		p.Norm(plain, x, Norm{weight, epsilon})
		p.AddNorm(centred, x, d, CentredNorm(weight, epsilon))
		fillRows(random, x, rows)
		fillRows(random, d, rows)
		var before, sum [rows][]float64
		for r := range rows {
			before[r], sum[r] = widen(x.Row(r)), widen(x.Row(r))
			for i, v := range d.Row(r) {
				sum[r][i] += float64(v)
			}
		}
		batchOf(p, []int{0}, []int{rows})
		runProgram(t, p)
		for r := range rows {
			near(t, "Norm", plain.Row(r), rms(before[r], widen(weight), 0, epsilon), 1e-6)
			near(t, "AddNorm", centred.Row(r), rms(sum[r], widen(weight), 1, epsilon), 1e-6)
			near(t, "residual", x.Row(r), sum[r], 1e-7)
		}
	}
}

func TestSiLUMul(t *testing.T) {
	const rows, width = 3, 301
	random := newRandom(12)
	p := newTestProgram(t, SharedPool(), Shape{Rows: rows, Slots: 1, Context: rows})
	gate, up := p.Activation(width), p.Activation(width)
	p.SiLUMul(gate, gate, up)
	fillRows(random, gate, rows)
	fillRows(random, up, rows)
	gate.Row(0)[0], gate.Row(0)[1], gate.Row(0)[2] = 200, -200, 0
	var want [rows][]float64
	for r := range rows {
		for i, g := range gate.Row(r) {
			want[r] = append(want[r], float64(g)/(1+math.Exp(-float64(g)))*float64(up.Row(r)[i]))
		}
	}
	batchOf(p, []int{0}, []int{rows})
	runProgram(t, p)
	for r := range rows {
		near(t, "SiLUMul", gate.Row(r), want[r], 1e-6)
	}
}

func TestRotary(t *testing.T) {
	const dim, theta = 16, 1e7
	p := newTestProgram(t, SharedPool(), Shape{Rows: 3, Slots: 1, Context: 5000})
	rotary := p.Rotary(dim, theta)
	p.Batch.Append(0, 4095, []int32{0, 0, 0})
	runProgram(t, p)
	// A head with a one in dimension i shows pair and frequency; dimensions
	// beyond dim pass.
	for i := range dim + 4 {
		for row := range 3 {
			head := make([]float32, dim+4)
			head[i] = 1
			rotary.apply(head, row)
			want := make([]float64, dim+4)
			if i >= dim {
				want[i] = 1
			} else {
				pair := i % (dim / 2)
				angle := float64(4095+row) * math.Pow(theta, -2*float64(pair)/dim)
				want[i] = math.Cos(angle)
				if i < dim/2 {
					want[i+dim/2] = math.Sin(angle)
				} else {
					want[i-dim/2] = -math.Sin(angle)
				}
			}
			near(t, "rotated unit vector", head, want, 5e-4)
			if i%(dim/2) == 0 {
				near(t, "rotated unit vector of frequency 1", head, want, 1e-7)
			}
		}
	}
}
