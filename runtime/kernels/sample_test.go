package kernels

import (
	"math"
	"slices"
	"sort"
	"testing"
)

// Known answers of Random123's kat_vectors for philox4x32-10.
func TestPhilox(t *testing.T) {
	for _, tc := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0)}, [2]uint32{^uint32(0), ^uint32(0)}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(tc.counter, tc.key); got != tc.want {
			t.Errorf("philox(%x, %x) = %x, want %x", tc.counter, tc.key, got, tc.want)
		}
	}
}

// draw runs one draw over logits.
func draw(logits []float32, d Draw) *Draw {
	s := &scratch{float: make([]float32, len(logits)), marks: make([]int32, len(logits)), order: make([]int32, len(logits))}
	d.sample(logits, len(logits), s)
	for _, mark := range s.marks {
		if mark != 0 {
			panic("marks are left")
		}
	}
	return &d
}

// Padding is never drawn nor among the top candidates, whatever its logits; a
// prompt may hold it.
func TestPaddingIsNotDrawn(t *testing.T) {
	const tokens = 5
	logits := []float32{1, 3, -2, 3, 0.5, 9, 8, 7}
	norm := logSumExp(logits)
	s := &scratch{float: make([]float32, len(logits)), marks: make([]int32, len(logits)), order: make([]int32, len(logits))}
	for _, p := range []Sampling{
		{}, {RepetitionPenalty: 1.5}, {Temperature: 2}, {Temperature: 2, TopK: 7}, {Temperature: 2, TopP: 0.99}, {Temperature: 2, MinP: 0.01}, {Temperature: 2, PresencePenalty: 2},
	} {
		p.TopLogprobs = 8
		seen := map[int32]bool{}
		for p.Seed = range 200 {
			d := Draw{Sequence: []int32{0, 7, 6}, Generated: 1, Params: p}
			d.sample(logits, tokens, s)
			seen[d.Token] = true
			if d.Token >= tokens {
				t.Fatalf("%+v: token %d", p, d.Token)
			}
			if got, want := d.Logprob, float32(float64(logits[d.Token])-norm); got != want {
				t.Fatalf("%+v: log-probability %v, want %v", p, got, want)
			}
			for i, want := range []int32{1, 3, 0, 4, 2} {
				if d.Top[i].Token != want {
					t.Fatalf("%+v: top candidates %v", p, d.Top[:tokens])
				}
			}
		}
		if p.Temperature > 0 && len(seen) < 3 {
			t.Errorf("%+v: only %v drawn", p, seen)
		}
	}
}

func TestGreedyAndLogprobs(t *testing.T) {
	logits := []float32{1, 3, -2, 3, 0.5, 2}
	d := draw(logits, Draw{Params: Sampling{TopLogprobs: 4}})
	norm := 0.0
	for _, x := range logits {
		norm += math.Exp(float64(x))
	}
	if d.Token != 1 || math.Abs(float64(d.Logprob)-(3-math.Log(norm))) > 1e-6 {
		t.Errorf("token %d, log-probability %v", d.Token, d.Logprob)
	}
	var ids []int32
	for _, top := range d.Top[:4] {
		ids = append(ids, top.Token)
		if want := float64(logits[top.Token]) - math.Log(norm); math.Abs(float64(top.Logprob)-want) > 1e-6 {
			t.Errorf("log-probability of %d is %v, want %v", top.Token, top.Logprob, want)
		}
	}
	if !slices.Equal(ids, []int32{1, 3, 5, 0}) {
		t.Errorf("top tokens %v", ids)
	}
}

func TestPenalties(t *testing.T) {
	logits := []float32{4, 3.9, -1, -1.05}
	sequence := []int32{0, 2, 0, 3, 0}
	for _, tc := range []struct {
		name      string
		params    Sampling
		generated int
		want      int32
	}{
		{"none", Sampling{}, 0, 0},
		{"repetition", Sampling{RepetitionPenalty: 1.1}, 5, 1},
		{"repetition of one", Sampling{RepetitionPenalty: 1}, 5, 0},
		{"presence of the prompt", Sampling{PresencePenalty: 1}, 5, 0},
		{"presence", Sampling{PresencePenalty: 0.2}, 4, 1},
		{"frequency once", Sampling{FrequencyPenalty: 0.04}, 4, 0},
		{"frequency three times", Sampling{FrequencyPenalty: 0.04}, 0, 1},
	} {
		d := draw(logits, Draw{Sequence: sequence, Generated: tc.generated, Params: tc.params})
		if d.Token != tc.want {
			t.Errorf("%s: token %d, want %d", tc.name, d.Token, tc.want)
		}
	}
	// A negative logit is multiplied.
	if d := draw([]float32{-1, -1.05}, Draw{Sequence: []int32{0}, Params: Sampling{RepetitionPenalty: 1.1}}); d.Token != 1 {
		t.Errorf("repetition of a negative logit: token %d", d.Token)
	}
}

// expected returns the distribution that the parameters describe, by sorting.
func expected(logits []float32, p Sampling) []float64 {
	order := make([]int, len(logits))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return logits[order[i]] > logits[order[j]] })
	weight := make([]float64, len(logits))
	for i, x := range logits {
		weight[i] = math.Exp(float64(x) / float64(p.Temperature))
	}
	if p.TopK > 0 {
		order = order[:min(p.TopK, len(order))]
	}
	total, sum := 0.0, 0.0
	for _, id := range order {
		total += weight[id]
	}
	if p.TopP > 0 && p.TopP < 1 {
		for i, id := range order {
			if sum += weight[id]; sum >= float64(p.TopP)*total {
				order = order[:i+1]
				break
			}
		}
	}
	distribution := make([]float64, len(logits))
	total = 0
	for _, id := range order {
		if weight[id] >= float64(p.MinP)*weight[order[0]] {
			distribution[id] = weight[id]
			total += weight[id]
		}
	}
	for i := range distribution {
		distribution[i] /= total
	}
	return distribution
}

func TestSamplingDistribution(t *testing.T) {
	random := newRandom(41)
	logits := fill(random, make([]float32, 37))
	logits[5], logits[9] = logits[3], logits[3] // ties
	for _, p := range []Sampling{
		{Temperature: 1}, {Temperature: 0.5}, {Temperature: 3},
		{Temperature: 1, TopK: 1}, {Temperature: 1, TopK: 7}, {Temperature: 2, TopK: 100},
		{Temperature: 1, TopP: 0.5}, {Temperature: 1, TopP: 1}, {Temperature: 1, TopP: 1e-9}, {Temperature: 2, TopK: 9, TopP: 0.7},
		{Temperature: 1, MinP: 0.2}, {Temperature: 2, TopK: 20, TopP: 0.9, MinP: 0.1},
	} {
		const draws = 20000
		counts := make([]float64, len(logits))
		for i := range draws {
			p.Seed = uint64(i / 100)
			d := draw(logits, Draw{Sequence: make([]int32, i%100), Params: p})
			counts[d.Token]++
		}
		want := expected(logits, p)
		square, cells := 0.0, 0
		for i, n := range counts {
			if want[i] == 0 {
				if n > 0 {
					t.Errorf("%+v: token %d was drawn and is cut", p, i)
				}
				continue
			}
			e := want[i] * draws
			square += (n - e) * (n - e) / e
			cells++
		}
		// Mean cells-1, deviation sqrt(2(cells-1)).
		if freedom := float64(cells - 1); square > freedom+5*math.Sqrt(2*freedom)+1e-9 {
			t.Errorf("%+v: chi-square %.1f with %d cells", p, square, cells)
		}
	}
}

// A draw depends on seed and position alone.
func TestSamplingRepeats(t *testing.T) {
	logits := fill(newRandom(42), make([]float32, 500))
	p := Sampling{Temperature: 1, Seed: 1 << 40}
	tokens := map[int32]bool{}
	for position := range 50 {
		first := draw(logits, Draw{Sequence: make([]int32, position), Params: p}).Token
		if again := draw(logits, Draw{Row: 3, Generated: 1, Sequence: make([]int32, position), Params: p}).Token; again != first {
			t.Fatalf("position %d: tokens %d and %d", position, first, again)
		}
		tokens[first] = true
	}
	if len(tokens) < 25 {
		t.Errorf("%d different tokens in 50 draws", len(tokens))
	}
	p.Seed = 0
	if draw(logits, Draw{Params: p}).Token == draw(logits, Draw{Params: Sampling{Temperature: 1, Seed: 1 << 40}}).Token {
		t.Error("the seed's upper half changes nothing")
	}
}

// A program's draws are those of its rows of logits, whatever stands beside them.
func TestSample(t *testing.T) {
	samplings := []Sampling{
		{}, {TopLogprobs: 20}, {RepetitionPenalty: 1.3, TopLogprobs: 3}, {PresencePenalty: 0.7, FrequencyPenalty: 0.4},
		{Temperature: 1}, {Temperature: 0.3, Seed: 1 << 40}, {Temperature: 1, TopK: 1}, {Temperature: 1.5, TopK: 40, TopLogprobs: 5}, {Temperature: 2, TopK: 1 << 20},
		{Temperature: 1, TopP: 0.5}, {Temperature: 1, TopP: 1}, {Temperature: 1, TopP: 1e-9}, {Temperature: 2, TopK: 9, TopP: 0.7},
		{Temperature: 1, MinP: 0.2}, {Temperature: 2, TopK: 20, TopP: 0.9, MinP: 0.1}, {Temperature: 1, TopP: 0.95, RepetitionPenalty: 1.1, FrequencyPenalty: -0.2},
	}
	for _, size := range [][2]int{{37, 37}, {41, 37}, {5003, 5000}} {
		vocabulary, tokens := size[0], size[1]
		random := newRandom(uint64(vocabulary))
		p := newTestProgram(t, SharedPool(), Shape{Rows: 20, Slots: len(samplings), Context: 64})
		logits := p.Drawn(vocabulary)
		p.Sample(logits, tokens)
		s := &scratch{float: make([]float32, vocabulary), marks: make([]int32, vocabulary), order: make([]int32, vocabulary)}
		for round := range 40 {
			p.Batch.Clear()
			first := random.IntN(len(samplings))
			for i := range 1 + random.IntN(len(samplings)) {
				sampling := samplings[(first+i)%len(samplings)]
				sampling.Seed += uint64(round)
				sequence := make([]int32, 1+random.IntN(64))
				for k := range sequence {
					sequence[k] = int32(random.IntN(vocabulary))
				}
				p.Batch.Append(i, len(sequence)-1, sequence[len(sequence)-1:])
				p.Batch.Draws = append(p.Batch.Draws, Draw{Row: i, Sequence: sequence, Generated: random.IntN(len(sequence)), Params: sampling})
				row := fill(random, logits.Row(i))
				row[3], row[2] = row[5], row[5] // ties
			}
			runProgram(t, p)
			for i, got := range p.Batch.Draws {
				want := got
				want.Top = [MaxTopLogprobs]TokenLogprob{}
				want.sample(logits.Row(i), tokens, s)
				if got.Token != want.Token || math.Abs(float64(got.Logprob-want.Logprob)) > 1e-5 {
					t.Errorf("vocabulary %d, round %d, %+v: token %d of log-probability %v, want %d of %v", vocabulary, round, got.Params, got.Token, got.Logprob, want.Token, want.Logprob)
				}
				for k := range min(got.Params.TopLogprobs, tokens) {
					if g, w := got.Top[k], want.Top[k]; g.Token != w.Token || math.Abs(float64(g.Logprob-w.Logprob)) > 1e-5 {
						t.Errorf("vocabulary %d, %+v: candidate %d is %+v, want %+v", vocabulary, got.Params, k, g, w)
					}
				}
			}
		}
	}
}

// A row of logits that are not numbers says so.
func TestSampleNaN(t *testing.T) {
	for _, params := range []Sampling{{}, {Temperature: 1}, {Temperature: 1, TopK: 3}, {Temperature: 1, TopP: 0.5}} {
		p := newTestProgram(t, SharedPool(), Shape{Rows: 1, Slots: 1, Context: 4})
		logits := p.Drawn(300)
		p.Sample(logits, 300)
		p.Batch.Append(0, 0, []int32{1})
		p.Batch.Draws = append(p.Batch.Draws, Draw{Sequence: []int32{1}, Params: params})
		fillRows(newRandom(1), logits, 1)
		logits.Row(0)[77] = float32(math.NaN())
		runProgram(t, p)
		if d := p.Batch.Draws[0]; d.Logprob == d.Logprob || d.Token < 0 || d.Token >= 300 {
			t.Errorf("%+v: token %d of log-probability %v", params, d.Token, d.Logprob)
		}
	}
}

// Select copies the rows of the draws.
func TestSelect(t *testing.T) {
	random := newRandom(43)
	p := newTestProgram(t, SharedPool(), Shape{Rows: 9, Slots: 3, Context: 9})
	x, y := p.Activation(101), p.Drawn(101)
	p.Select(y, x)
	fillRows(random, x, 9)
	batchOf(p, []int{0, 0, 0}, []int{4, 0, 5})
	p.Batch.Draws = append(p.Batch.Draws, Draw{Row: 8, Sequence: []int32{0}}, Draw{Row: 3, Sequence: []int32{0}})
	runProgram(t, p)
	for i, row := range []int{8, 3} {
		if !slices.Equal(y.Row(i), x.Row(row)) {
			t.Errorf("draw %d is not row %d", i, row)
		}
	}
}
