package boot

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"slipway/verify/boot/ask"
	"slipway/verify/report"
	"slipway/verify/words"
)

// loadDrafts walks the continuations, asks for some of the first drafts alone, and
// for those of the references.
func (s *session) loadDrafts(ctx context.Context, o *observed, examples examples) error {
	load := s.requestLoad()
	began := time.Now()
	load.Done = new(atomic.Int64)
	told := s.tellLoad(began, load.Done, "drafts asked for along "+words.Plural(len(examples.continuations), "continuation"))
	a, err := ask.MeasureDrafts(ctx, s.server, examples.continuations, load)
	told()
	took := time.Since(began)
	o.drafts = &a
	o.Batch = &report.Batch{
		Requests: a.Steps, Concurrency: load.Concurrency, Failed: a.Failed, Tokens: a.Tokens, Seconds: took.Seconds(), Latencies: []float64{},
	}
	for _, d := range a.Took {
		o.Batch.Latencies = append(o.Batch.Latencies, d.Seconds())
	}
	slices.Sort(o.Batch.Latencies)
	if a.Failure != nil {
		o.failure, o.silent = a.Failure.Error(), a.Unanswered > 0
	}
	if examples.madeUp {
		s.step("asked for %s after made-up token ids, %d at a time: %d failed; %s", words.Plural(a.Steps, "draft"), load.Concurrency, a.Failed, rounded(took))
	} else {
		s.step("drafted along %s, %d at a time: tau %.4f (%s in %s), %.4f averaged over prompts, %s; %s",
			words.Plural(len(examples.continuations), "continuation"), load.Concurrency, a.Tau(), words.Plural(a.Tokens, "token"), words.Plural(a.Steps, "step"),
			a.PerPrompt, words.Plural(a.Failed, "empty draft"), rounded(took))
	}
	if err != nil {
		return err
	}
	s.draftAlone(ctx, o, load)
	s.askGoldenDrafts(ctx, o)
	return ctx.Err()
}

// draftAlone asks for some of the first drafts again, one at a time.
func (s *session) draftAlone(ctx context.Context, o *observed, load ask.Load) {
	if load.Concurrency < 2 {
		return
	}
	first := o.drafts.First
	for _, i := range spread(len(first), func(i int) int { return len(first[i].Context) }) {
		alone := first[i]
		if alone.Draft == nil || ctx.Err() != nil {
			continue
		}
		alone.Draft, alone.Accepted = nil, 0
		if x := s.server.Draft(ctx, &alone, load); x.Failed == nil {
			o.aloneDrafts = append(o.aloneDrafts, [2]ask.DraftStep{first[i], alone})
		}
	}
}

// smallIDs is how many token ids made-up contexts are of, where the vocabulary
// has as many.
const smallIDs = 100

// madeUpContinuation is a context that any drafter has a draft for: small token
// ids, below its vocabulary's size where that is known (0: not).
func madeUpContinuation(i int, vocabulary int64) ask.Continuation {
	ids := smallIDs
	if vocabulary > 0 {
		ids = int(min(vocabulary, smallIDs))
	}
	c := ask.Continuation{ID: fmt.Sprintf("made-up-%d", i), Continuation: make([]int32, 4)}
	for j := range 16 + i {
		c.Prompt = append(c.Prompt, int32((1+7*i+j)%ids))
	}
	return c
}
