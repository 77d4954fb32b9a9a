package kernels

import (
	"math"
	"slices"
	"testing"
)

// TestAttention runs slots of several lengths, gated and not, through
// HeadNormRope and Attention and compares with a direct computation.
func TestAttention(t *testing.T) {
	for _, heads := range []Heads{{Query: 6, KV: 2, Dim: 24}, {Query: 4, KV: 4, Dim: 10}, {Query: 4, KV: 1, Dim: 64, Gated: true}} {
		random := newRandom(21)
		const rotated, theta, epsilon, context = 8, 1e4, 1e-6, 600
		kv := heads.KV * heads.Dim
		p := newTestProgram(t, SharedPool(), Shape{Rows: context, Slots: 3, Context: context})
		q, k, v, out := p.Activation(heads.QueryWidth()), p.Activation(kv), p.Activation(kv), p.Activation(heads.Query*heads.Dim)
		qWeight, kWeight := fill(random, make([]float32, heads.Dim)), fill(random, make([]float32, heads.Dim))
		cache := p.Cache(heads)
		p.HeadNormRope(q, k, v, cache, Norm{qWeight, epsilon}, Norm{kWeight, epsilon}, p.Rotary(rotated, theta))
		p.Attention(out, q, cache)

		var keys, values [3][][]float64 // by slot and position
		starts := make([]int, 3)
		for _, lengths := range [][]int{{1, 300, 63}, {1, 0, 1}, {2, 1, 1}, {0, 250, 200}, {1, 1, 1}} {
			batchOf(p, starts, lengths)
			rows := len(p.Batch.Token)
			fillRows(random, q, rows)
			fillRows(random, k, rows)
			fillRows(random, v, rows)
			var queries [][]float64
			for r := range rows {
				position, slot := int(p.Batch.Position[r]), p.Batch.Slot[r]
				keys[slot] = append(keys[slot], normRope(widen(k.Row(r)), heads.KV, widen(kWeight), rotated, theta, position))
				values[slot] = append(values[slot], widen(v.Row(r)))
				queries = append(queries, widen(q.Row(r)))
			}
			runProgram(t, p)
			for r := range rows {
				position, slot := int(p.Batch.Position[r]), p.Batch.Slot[r]
				want := attention(heads, queries[r], widen(qWeight), rotated, theta, position, keys[slot][:position+1], values[slot])
				near(t, "attention", out.Row(r), want, 3e-6)
			}
			for slot, n := range lengths {
				starts[slot] += n
			}
		}
	}
}

// normRope norms and rotates heads of equal width.
func normRope(x []float64, heads int, weight []float64, rotated int, theta float64, position int) []float64 {
	dim := len(x) / heads
	y := make([]float64, 0, len(x))
	for h := range heads {
		head := rms(x[h*dim:][:dim], weight, 0, 1e-6)
		turned := slices.Clone(head)
		for i := range rotated / 2 {
			sin, cos := math.Sincos(float64(position) * math.Pow(theta, -2*float64(i)/float64(rotated)))
			turned[i] = head[i]*cos - head[i+rotated/2]*sin
			turned[i+rotated/2] = head[i+rotated/2]*cos + head[i]*sin
		}
		y = append(y, turned...)
	}
	return y
}

func attention(h Heads, row, qWeight []float64, rotated int, theta float64, position int, keys, values [][]float64) []float64 {
	step := len(row) / h.Query
	out := make([]float64, h.Query*h.Dim)
	for head := range h.Query {
		query := normRope(row[head*step:][:h.Dim], 1, qWeight, rotated, theta, position)
		kv := head / (h.Query / h.KV) * h.Dim
		total := 0.0
		for t, key := range keys {
			score := 0.0
			for i, x := range query {
				score += x * key[kv+i] / math.Sqrt(float64(h.Dim))
			}
			weight := math.Exp(score)
			total += weight
			for i := range h.Dim {
				out[head*h.Dim+i] += weight * values[t][kv+i]
			}
		}
		for i := range h.Dim {
			out[head*h.Dim+i] /= total
			if h.Gated {
				out[head*h.Dim+i] /= 1 + math.Exp(-row[head*step+h.Dim+i])
			}
		}
	}
	return out
}
