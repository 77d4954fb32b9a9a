package boot

import (
	"cmp"
	"context"
	"slices"
	"time"

	"slipway/verify/boot/ask"
)

// aloneAnswer is one question asked in the batch and alone.
type aloneAnswer struct{ batch, alone ask.Answer }

// aloneRequests is how many requests of the batch are repeated alone.
const aloneRequests = 16

// spread returns the indices of up to aloneRequests of n things that are sorted
// by length, from the shortest to the longest: padding harms the shortest most.
func spread(n int, length func(i int) int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(length(a), length(b)) })
	if n <= aloneRequests {
		return order
	}
	var chosen []int
	for i := range aloneRequests {
		chosen = append(chosen, order[i*(n-1)/(aloneRequests-1)])
	}
	return chosen
}

// askAlone asks some of the questions again, one at a time, for no longer than
// the batch took.
func (s *session) askAlone(ctx context.Context, o *observed, load ask.Load) error {
	if load.Concurrency < 2 || o.Batch.Failed == len(o.answers) {
		return nil
	}
	until := time.Now().Add(max(aloneTime, seconds(o.Batch.Seconds)))
	for _, i := range spread(len(o.answers), func(i int) int { return o.answers[i].Question.Length() }) {
		if time.Now().After(until) || ctx.Err() != nil {
			break
		}
		if batch := o.answers[i]; batch.Failed == nil {
			if alone := ask.One(ctx, s.server, batch.Question, load); alone.Failed == nil {
				o.alone = append(o.alone, aloneAnswer{batch, alone})
			}
		}
	}
	return ctx.Err()
}

// aloneTime is the least time given to questions that are asked alone.
const aloneTime = 10 * time.Second
