package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"slipway/runtime/kernels"
	"slipway/runtime/weights"
)

// logitsOf steps and returns the logits of every slot that samples.
func logitsOf(t testing.TB, m *Model, work ...Work) map[int][]float32 {
	t.Helper()
	logits := map[int][]float32{}
	m.observe = func(layer int, values *kernels.Activation) {
		row := 0
		for _, w := range m.passed {
			if w.Sample && layer < 0 {
				logits[w.Slot] = slices.Clone(values.Row(row))
				row++
			}
		}
	}
	defer func() { m.observe = nil }()
	step(t, m, work...)
	return logits
}

// state copies a slot's states of all layers that have one.
func state(m *Model, slot int) (tails, states []float32) {
	for _, d := range m.deltas {
		tail, state := d.Slot(slot)
		tails, states = append(tails, tail...), append(states, state...)
	}
	return tails, states
}

// A prompt cut at any position ends as it does in one piece: bitwise without
// recurrent layers or where the cut is a chunk's end, else to rounding.
func TestGoldenSplit(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			m := loadFolder(t, g.checkpoint, g.limits(2))
			for prompt := range g.prompts() {
				ids := integers(t, g.values, fmt.Sprintf("ids.%d", prompt))
				m.Reset(0)
				whole := stepLogits(t, m, 0, ids...)
				wholeTail, wholeState := state(m, 0)
				for cut := 1; cut < len(ids); cut++ {
					if testing.Short() && len(ids) > 100 && cut%64 > 2 && cut%64 < 62 {
						continue // of longer prompts only the cuts near chunk ends
					}
					m.Reset(1)
					step(t, m, Work{Slot: 1, Tokens: ids[:cut]})
					logits := stepLogits(t, m, 1, ids[cut:]...)
					tails, states := state(m, 1)
					what := fmt.Sprintf("prompt %d cut at %d: ", prompt, cut)
					if len(m.deltas) == 0 || cut%kernels.ChunkTokens == 0 {
						if !slices.Equal(logits, whole) || !slices.Equal(tails, wholeTail) || !slices.Equal(states, wholeState) {
							t.Errorf("%sresult differs, relative error %.2g", what, relativeError(logits, whole))
						}
						continue
					}
					near(t, what+"logits", logits, whole)
					near(t, what+"convolution tails", tails, wholeTail)
					near(t, what+"states", states, wholeState)
				}
			}
		})
	}
}

// Prompts shorter than the convolution, on slots that held longer sequences.
func TestGoldenReusedSlot(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			fresh := loadFolder(t, g.checkpoint, g.limits(1))
			used := loadFolder(t, g.checkpoint, g.limits(2))
			long := g.longest(t)
			for length := 1; length <= 3; length++ {
				for _, separately := range []bool{false, true} {
					for slot := range 2 {
						used.Reset(slot)
						step(t, used, Work{Slot: slot, Tokens: long[:len(long)-slot]})
						used.Reset(slot)
					}
					fresh.Reset(0)
					var want, got []float32
					if separately {
						for _, id := range long[:length] {
							want, got = stepLogits(t, fresh, 0, id), stepLogits(t, used, 1, id)
						}
					} else {
						want, got = stepLogits(t, fresh, 0, long[:length]...), stepLogits(t, used, 1, long[:length]...)
					}
					if !slices.Equal(want, got) {
						t.Errorf("%d tokens, one at a time %v: relative error %.2g against a fresh slot", length, separately, relativeError(got, want))
					}
				}
			}
		})
	}
}

// script is what one slot does, step by step; a step may be empty.
type script [][]int32

// A slot's logits are bitwise the same alone and in company, in another slot,
// with other pages and with any number of workers.
func TestGoldenInvariance(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			ids := g.longest(t)
			a, b, end := len(ids)/3, len(ids)/2, len(ids)-1
			subject := script{ids[:a], ids[a : a+1], ids[a+1 : a+2], ids[a+2 : b], ids[b : b+1], ids[b+1 : end], ids[end:]}
			var neighbours []script
			for range 5 {
				var s script
				for range subject {
					tokens := make([]int32, []int{0, 1, 1, 3, 17}[random.IntN(5)])
					for i := range tokens {
						tokens[i] = ids[random.IntN(len(ids))]
					}
					s = append(s, tokens)
				}
				neighbours = append(neighbours, s)
			}
			alone := runScripts(t, g.loadPool(t, 1), map[int]script{0: subject}, 0)
			for workers := 1; workers <= 3; workers++ {
				m := g.loadPool(t, workers)
				together := map[int]script{4: subject}
				for i, n := range neighbours {
					together[[]int{0, 1, 2, 3, 5}[i]] = n
				}
				got := runScripts(t, m, together, 4)
				for i := range alone {
					if !slices.Equal(got[i], alone[i]) {
						t.Errorf("%d workers, step %d: logits differ from those of the slot alone", workers, i)
					}
				}
			}
		})
	}
}

func (g golden) loadPool(t *testing.T, workers int) *Model {
	checkpoint, err := weights.Open(g.checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer checkpoint.Close()
	pool := kernels.NewPool(workers)
	t.Cleanup(pool.Close)
	limits := g.limits(6)
	limits.Device = testDevice
	m, err := load(checkpoint, limits, pool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func runScripts(t *testing.T, m *Model, scripts map[int]script, subject int) (logits [][]float32) {
	for i := range scripts[subject] {
		var work []Work
		for slot := range m.Limits().Slots {
			if s := scripts[slot]; s != nil && len(s[i]) > 0 {
				work = append(work, Work{Slot: slot, Tokens: s[i], Sample: slot%2 == 0})
			}
		}
		logits = append(logits, logitsOf(t, m, work...)[subject])
	}
	return logits
}

func TestStepAllocatesNothing(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			m := loadFolder(t, g.checkpoint, g.limits(3))
			ids := g.longest(t)
			sampling := Sampling{Temperature: 1, TopK: 40, TopP: 0.9, MinP: 0.01, PresencePenalty: 1, RepetitionPenalty: 1.1, TopLogprobs: 5}
			prefill := []Work{{Slot: 0, Tokens: ids[:len(ids)-1], Sample: true, Params: sampling}, {Slot: 1, Tokens: ids[:1]}, {Slot: 2, Tokens: ids[:9], Sample: true}}
			decode := []Work{{Slot: 0, Tokens: ids[:1], Sample: true}, {Slot: 2, Tokens: ids[:1], Sample: true, Params: sampling}}
			allocations := testing.AllocsPerRun(5, func() {
				for slot := range 3 {
					m.Reset(slot)
				}
				step(t, m, prefill...)
				step(t, m, decode...)
			})
			if allocations != 0 {
				t.Errorf("%v allocations a step", allocations)
			}
		})
	}
}

func TestStepRefuses(t *testing.T) {
	g := openGolden(t, "testdata/golden/qwen3")
	m := loadFolder(t, g.checkpoint, Limits{Slots: 2, Context: 8, Prefill: 6})
	step(t, m, Work{Slot: 0, Tokens: []int32{1, 2, 3}})
	for _, tc := range []struct {
		name  string
		work  []Work
		fault string
	}{
		{"clean", []Work{{Slot: 0, Tokens: []int32{4, 5, 6, 7, 8}}, {Slot: 1, Tokens: []int32{1}}}, ""},
		{"context", []Work{{Slot: 1, Tokens: []int32{1}}, {Slot: 0, Tokens: []int32{4, 5, 6, 7, 8, 9}}}, "step: slot 0 has 3 tokens and is given 6 more, the limit is 8"},
		{"prefill", []Work{{Slot: 1, Tokens: make([]int32, 7)}}, "step: slot 1 is given 7 tokens, the limit is 6"},
		{"vocabulary", []Work{{Slot: 1, Tokens: []int32{512}}}, "step: slot 1: token 512 is not in the vocabulary of 512"},
		{"negative", []Work{{Slot: 1, Tokens: []int32{-1}}}, "step: slot 1: token -1 is not in the vocabulary of 512"},
		{"empty", []Work{{Slot: 1}}, "step: slot 1 is given no tokens"},
		{"slot", []Work{{Slot: 2, Tokens: []int32{1}}}, "step: slot 2 of 2"},
		{"twice", []Work{{Slot: 1, Tokens: []int32{1}}, {Slot: 1, Tokens: []int32{1}}}, "step: slot 1 is given work twice"},
		{"logprobs", []Work{{Slot: 1, Tokens: []int32{1}, Params: Sampling{TopLogprobs: 21}}}, "step: slot 1: 21 top log-probabilities, the limit is 20"},
		{"not a number", []Work{{Slot: 1, Tokens: []int32{1}, Params: Sampling{TopP: float32(math.NaN())}}}, "step: slot 1: sampling {Temperature:0 TopK:0 TopP:NaN MinP:0 Seed:0 PresencePenalty:0 FrequencyPenalty:0 RepetitionPenalty:0 TopLogprobs:0} is not finite"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := m.Step(tc.work)
			if tc.fault == "" {
				if err != nil {
					t.Fatal(err)
				}
				m.Reset(0)
				m.Reset(1)
				step(t, m, Work{Slot: 0, Tokens: []int32{1, 2, 3}})
				return
			}
			if err == nil || err.Error() != tc.fault {
				t.Fatalf("error %v, want %s", err, tc.fault)
			}
			if m.Length(0) != 3 || m.Length(1) != 0 {
				t.Errorf("lengths %d and %d after an error", m.Length(0), m.Length(1))
			}
		})
	}
}

// A limit of ids takes effect in greedy choice, at a high temperature and in the
// lists of candidates.
func TestStepDrawsBelowTokens(t *testing.T) {
	g := openGolden(t, "testdata/golden/qwen3")
	const tokens = 7
	m := loadFolder(t, g.checkpoint, Limits{Slots: 1, Context: 64, Tokens: tokens})
	for _, params := range []Sampling{{}, {Temperature: 2}, {Temperature: 2, TopK: 100, TopP: 0.9}} {
		m.Reset(0)
		next := []int32{500} // a prompt may have any id of the model
		for range 60 {
			params.Seed++
			params.TopLogprobs = 20
			result := step(t, m, Work{Slot: 0, Tokens: next, Sample: true, Params: params})[0]
			if result.Token >= tokens || len(result.Top) != tokens {
				t.Fatalf("%+v: token %d, candidates %v", params, result.Token, result.Top)
			}
			for _, top := range result.Top {
				if top.Token >= tokens {
					t.Fatalf("%+v: candidate %d", params, top.Token)
				}
			}
			next = []int32{result.Token}
		}
	}
}

// Results come in the order of work, with log-probabilities, and penalties see
// what the slot holds and generated.
func TestStepResults(t *testing.T) {
	g := openGolden(t, "testdata/golden/qwen3")
	m := loadFolder(t, g.checkpoint, Limits{Slots: 3, Context: 64})
	ids := integers(t, g.values, "ids.2")[:20]
	work := []Work{
		{Slot: 2, Tokens: ids, Sample: true, Params: Sampling{TopLogprobs: 3}},
		{Slot: 1, Tokens: ids[:5]},
		{Slot: 0, Tokens: ids[:1], Sample: true},
	}
	results := slices.Clone(step(t, m, work...))
	if len(results) != 2 || len(results[0].Top) != 3 || len(results[1].Top) != 0 {
		t.Fatalf("results %+v", results)
	}
	if top := results[0].Top; top[0] != (TokenLogprob{results[0].Token, results[0].Logprob}) || top[1].Logprob < top[2].Logprob || top[0].Logprob >= 0 {
		t.Errorf("greedy token %d (%g), top %v", results[0].Token, results[0].Logprob, top)
	}
	m.Reset(1)
	if alone := step(t, m, Work{Slot: 1, Tokens: ids[:1], Sample: true})[0]; alone.Token != results[1].Token || alone.Logprob != results[1].Logprob {
		t.Errorf("slot 0's result is %+v, alone %+v", results[1], alone)
	}
	// The prompt was not generated; the first drawn token, once appended, was.
	first := results[0].Token
	m.Reset(0)
	penalty := Sampling{PresencePenalty: 1e6}
	if got := step(t, m, Work{Slot: 0, Tokens: ids, Sample: true, Params: penalty})[0].Token; got != first {
		t.Errorf("presence penalty changed the first token from %d to %d", first, got)
	}
	m.Reset(1)
	if got := step(t, m, Work{Slot: 1, Tokens: ids, Sample: true, Params: Sampling{PresencePenalty: -1e6}})[0].Token; got != first {
		t.Errorf("a bonus for generated tokens changed the first token from %d to %d", first, got)
	}
	for seen := []int32{first}; len(seen) < 10; {
		next := step(t, m, Work{Slot: 0, Tokens: seen[len(seen)-1:], Sample: true, Params: penalty})[0].Token
		if slices.Contains(seen, next) {
			t.Fatalf("token %d drawn again after %v", next, seen)
		}
		seen = append(seen, next)
	}
}
