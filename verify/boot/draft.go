package boot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Continuation is a target model's greedy continuation of a prompt, as token
// ids: what a drafter's guesses are measured against.
type Continuation struct {
	ID           string  `json:"id"`
	Prompt       []int32 `json:"prompt"`
	Continuation []int32 `json:"continuation"`
}

// ReadContinuations reads continuations, one JSON object a line.
func ReadContinuations(data []byte) ([]Continuation, error) { return readLines[Continuation](data) }

// windowTokens is how much of a long continuation a sample walks.
const windowTokens = 76

// windows returns the sample of continuations that is walked: all of them whole
// where they are short, else a window of windowTokens of each of the first few,
// as many as are asked at a time, the windows spread from openings to ends,
// as graders sample a public set that is longer than they have time for.
func windows(all []Continuation, concurrency int) []Continuation {
	var tokens int
	for _, c := range all {
		tokens += len(c.Continuation)
	}
	if tokens <= 2*windowTokens*len(all) {
		return all
	}
	sample := append([]Continuation{}, all[:min(len(all), max(1, concurrency))]...)
	for i, c := range sample {
		room := len(c.Continuation) - windowTokens
		if room <= 0 {
			continue
		}
		begin := room * i / max(1, len(sample)-1)
		sample[i].Prompt = append(append([]int32{}, c.Prompt...), c.Continuation[:begin]...)
		sample[i].Continuation = c.Continuation[begin : begin+windowTokens]
	}
	return sample
}

// Acceptance is how well a drafter guesses: Tokens of the target's text in
// Steps verification steps.
type Acceptance struct {
	Tokens, Steps int
	Failed        int // requests that failed or gave a malformed draft: empty drafts
	PerPrompt     float64
	Took          []time.Duration // of each answered request
	Failure       error           // the first one seen
	Unanswered    int             // of the failed, those without any HTTP reply

	first []draftStep // of each continuation, its first step
}

// draftStep is a request for a draft and what came of it.
type draftStep struct {
	context  []int32
	target   []int32 // what the draft should be
	draft    []int32 // nil: failed
	accepted int
}

// Tau is the mean acceptance length, tokens a step: between 1 and one more than
// a draft has.
func (a Acceptance) Tau() float64 {
	if a.Steps == 0 {
		return 0
	}
	return float64(a.Tokens) / float64(a.Steps)
}

// MeasureDrafts walks every continuation: a step asks for a draft after what
// was generated so far, accepts its longest matching prefix, and adds one token
// of the target. load.MaxTokens is the length of a draft. A failed request is an
// empty draft, and is not tried again. At the end of ctx what was walked until
// then is returned with the error.
func MeasureDrafts(ctx context.Context, server Endpoint, continuations []Continuation, load Load) (Acceptance, error) {
	var (
		total Acceptance
		mu    sync.Mutex
		group errgroup.Group
	)
	total.first = make([]draftStep, len(continuations))
	group.SetLimit(max(1, load.Concurrency))
	for i, c := range continuations {
		group.Go(func() error {
			a := walk(ctx, server, c, load)
			mu.Lock()
			defer mu.Unlock()
			total.add(a)
			total.PerPrompt += a.Tau() / float64(len(continuations))
			if len(a.first) > 0 {
				total.first[i] = a.first[0]
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	return total, err
}

func (a *Acceptance) add(b Acceptance) {
	a.Tokens += b.Tokens
	a.Steps += b.Steps
	a.Failed += b.Failed
	a.Unanswered += b.Unanswered
	a.Took = append(a.Took, b.Took...)
	if a.Failure == nil {
		a.Failure = b.Failure
	}
}

func walk(ctx context.Context, server Endpoint, c Continuation, load Load) Acceptance {
	var a Acceptance
	done := 0
	for ; done < len(c.Continuation) && ctx.Err() == nil; a.Steps++ {
		step := draftStep{context: append(append([]int32{}, c.Prompt...), c.Continuation[:done]...), target: c.Continuation[done:]}
		x := server.draft(ctx, &step, load)
		if a.Steps == 0 {
			a.first = []draftStep{step}
		}
		if x.failed == nil {
			a.Took = append(a.Took, x.took)
		} else {
			a.Failed++
			if x.status == 0 {
				a.Unanswered++
			}
			if a.Failure == nil {
				a.Failure = x.failed
			}
			if errors.As(x.failed, new(lateError)) {
				// A server that is this late once is late for all the rest: what
				// is left goes by one token a step, unasked.
				a.Steps += len(c.Continuation) - done - 1
				a.Failed += len(c.Continuation) - done - 1
				done = len(c.Continuation)
				continue
			}
		}
		done = min(done+step.accepted+1, len(c.Continuation))
	}
	a.Tokens = done
	return a
}

const draftPath = "/draft"

// draft asks for a step's draft and counts how much of it is accepted.
func (e Endpoint) draft(ctx context.Context, step *draftStep, load Load) exchange {
	var reply struct {
		Draft []int32 `json:"draft"`
	}
	x := e.post(ctx, draftPath, map[string]any{"tokens": step.context, "n": load.MaxTokens}, &reply, load.Request)
	if x.failed == nil && len(reply.Draft) != load.MaxTokens {
		x.failed = fmt.Errorf("%w: the draft has %d ids, not %d", errMalformed, len(reply.Draft), load.MaxTokens)
	}
	for _, id := range reply.Draft {
		if x.failed == nil && id < 0 {
			x.failed = fmt.Errorf("%w: the draft has the id %d", errMalformed, id)
		}
	}
	if x.failed != nil {
		return x
	}
	step.draft = reply.Draft
	for step.accepted < min(len(step.draft), len(step.target)) && step.draft[step.accepted] == step.target[step.accepted] {
		step.accepted++
	}
	return x
}
