package ask

import (
	"cmp"
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

// ReadContinuations reads continuations, one JSON object a line. Each has ids in
// its prompt and after it, all of them below vocabulary; 0: that is not known.
func ReadContinuations(data []byte, vocabulary int64) ([]Continuation, error) {
	return readLines(data, func(c Continuation) error {
		if len(c.Continuation) == 0 {
			return errors.New("it has no continuation, which drafts are measured against")
		}
		return c.check(vocabulary)
	})
}

// ReadPrompts reads what is drafted after, one JSON object a line. What the target
// goes on with may be left out.
func ReadPrompts(data []byte) ([]Continuation, error) {
	return readLines(data, func(c Continuation) error { return c.check(0) })
}

func (c Continuation) check(vocabulary int64) error {
	if len(c.Prompt) == 0 {
		return errors.New("it has no id in its prompt")
	}
	for _, ids := range [][]int32{c.Prompt, c.Continuation} {
		for _, id := range ids {
			switch {
			case id < 0:
				return fmt.Errorf("id %d is below 0", id)
			case vocabulary > 0 && int64(id) >= vocabulary:
				return fmt.Errorf("id %d is beyond vocab_size %d of config.json", id, vocabulary)
			}
		}
	}
	return nil
}

// windowTokens is how much of a long continuation a sample walks.
const windowTokens = 76

// Windows returns the sample of continuations that is walked: all of them whole
// where they are short, else a window of windowTokens of each of the first few,
// as many as are asked at a time, the windows spread from openings to ends,
// as graders sample a public set that is longer than they have time for.
func Windows(all []Continuation, concurrency int) []Continuation {
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

	First []DraftStep // of each continuation, its first step
}

// DraftStep is a request for a draft and what came of it.
type DraftStep struct {
	Context  []int32
	Target   []int32 // what the draft should be
	Draft    []int32 // nil: failed
	Accepted int
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
	total.First = make([]DraftStep, len(continuations))
	group.SetLimit(max(1, load.Concurrency))
	for i, c := range continuations {
		group.Go(func() error {
			a := walk(ctx, server, c, load)
			mu.Lock()
			defer mu.Unlock()
			total.add(a)
			total.PerPrompt += a.Tau() / float64(len(continuations))
			if len(a.First) > 0 {
				total.First[i] = a.First[0]
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
		step := DraftStep{Context: append(append([]int32{}, c.Prompt...), c.Continuation[:done]...), Target: c.Continuation[done:]}
		x := server.Draft(ctx, &step, load)
		load.count()
		if a.Steps == 0 {
			a.First = []DraftStep{step}
		}
		if x.Failed == nil {
			a.Took = append(a.Took, x.Took)
		} else {
			a.Failed++
			if x.Status == 0 {
				a.Unanswered++
			}
			if a.Failure == nil {
				a.Failure = x.Failed
			}
			if errors.As(x.Failed, new(LateError)) {
				// A server that is this late once is late for all the rest: what
				// is left goes by one token a step, unasked.
				a.Steps += len(c.Continuation) - done - 1
				a.Failed += len(c.Continuation) - done - 1
				done = len(c.Continuation)
				continue
			}
		}
		done = min(done+step.Accepted+1, len(c.Continuation))
	}
	a.Tokens = done
	return a
}

// Drafts asks for the drafts of steps, load.Concurrency at a time, and returns how
// each request went. With a MaxTokens of 0 a draft is as long as its target.
func Drafts(ctx context.Context, server Endpoint, steps []DraftStep, load Load) []Exchange {
	exchanges := make([]Exchange, len(steps))
	var group errgroup.Group
	group.SetLimit(max(1, load.Concurrency))
	for i := range steps {
		group.Go(func() error {
			own := load
			own.MaxTokens = cmp.Or(load.MaxTokens, len(steps[i].Target))
			exchanges[i] = server.Draft(ctx, &steps[i], own)
			return nil
		})
	}
	_ = group.Wait() // no function of the group fails
	return exchanges
}

// Again asks for drafts after the contexts of steps once more, load.Concurrency
// at a time, and returns how many ids are accepted in all, of each step as many as
// before at most.
func Again(ctx context.Context, server Endpoint, steps []DraftStep, load Load) (accepted int) {
	again := make([]DraftStep, len(steps))
	for i, step := range steps {
		again[i] = DraftStep{Context: step.Context, Target: step.Target}
	}
	Drafts(ctx, server, again, load) // a failed request accepts nothing
	for i := range again {
		accepted += min(again[i].Accepted, steps[i].Accepted)
	}
	return accepted
}

// DraftPath is where drafts are asked for.
const DraftPath = "/draft"

// Draft asks for a step's draft and counts how much of it is accepted.
func (e Endpoint) Draft(ctx context.Context, step *DraftStep, load Load) Exchange {
	var reply struct {
		Draft []int32 `json:"draft"`
	}
	x := e.post(ctx, DraftPath, map[string]any{"tokens": step.Context, "n": load.MaxTokens}, &reply, load.Request)
	if x.Failed == nil && len(reply.Draft) != load.MaxTokens {
		x.Failed = fmt.Errorf("%w: the draft has %d ids, not %d", errMalformed, len(reply.Draft), load.MaxTokens)
	}
	for _, id := range reply.Draft {
		if x.Failed == nil && id < 0 {
			x.Failed = fmt.Errorf("%w: the draft has the id %d", errMalformed, id)
		}
	}
	if x.Failed != nil {
		return x
	}
	step.Draft = reply.Draft
	for step.Accepted < min(len(step.Draft), len(step.Target)) && step.Draft[step.Accepted] == step.Target[step.Accepted] {
		step.Accepted++
	}
	return x
}
