package boot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

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

// Acceptance is how well a drafter guesses: Tokens of the target's text in
// Steps verification steps.
type Acceptance struct {
	Tokens, Steps int
	Failed        int // requests that failed or gave a malformed draft: empty drafts
	PerPrompt     float64
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
// of the target. load.MaxTokens is the length of a draft.
func MeasureDrafts(ctx context.Context, server string, continuations []Continuation, load Load) (Acceptance, error) {
	each := make([]Acceptance, len(continuations))
	client := &http.Client{Timeout: load.Request}
	var group errgroup.Group
	group.SetLimit(max(1, load.Concurrency))
	for i, c := range continuations {
		group.Go(func() error {
			each[i] = walk(ctx, client, server, c, load.MaxTokens)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return Acceptance{}, err
	}
	var total Acceptance
	for _, a := range each {
		total.Tokens += a.Tokens
		total.Steps += a.Steps
		total.Failed += a.Failed
		total.PerPrompt += a.Tau() / float64(len(each))
	}
	return total, nil
}

func walk(ctx context.Context, client *http.Client, server string, c Continuation, length int) Acceptance {
	var a Acceptance
	for done := 0; done < len(c.Continuation) && ctx.Err() == nil; a.Steps++ {
		draft, err := askDraft(ctx, client, server, append(append([]int32{}, c.Prompt...), c.Continuation[:done]...), length)
		if err != nil {
			a.Failed++
			if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
				// A server that is this late once is late for all the rest: what
				// is left goes by one token a step, unasked.
				a.Steps += len(c.Continuation) - done - 1
				a.Failed += len(c.Continuation) - done - 1
				done = len(c.Continuation)
				continue
			}
		}
		accepted := 0
		for accepted < len(draft) && done+accepted < len(c.Continuation) && draft[accepted] == c.Continuation[done+accepted] {
			accepted++
		}
		done = min(done+accepted+1, len(c.Continuation))
	}
	a.Tokens = len(c.Continuation)
	return a
}

func askDraft(ctx context.Context, client *http.Client, server string, tokens []int32, length int) ([]int32, error) {
	var reply struct {
		Draft []int32 `json:"draft"`
	}
	if err := post(ctx, client, server+"/draft", map[string]any{"tokens": tokens, "n": length}, &reply); err != nil {
		return nil, err
	}
	if len(reply.Draft) != length {
		return nil, fmt.Errorf("the draft has %d ids, not %d", len(reply.Draft), length)
	}
	return reply.Draft, nil
}
