package model

import (
	"fmt"

	"slipway/runtime/kernels"
)

// Step appends each Work's tokens to its slot and draws a token for each Work
// whose Sample is set; their results come in the order of work. Works of one
// token are computed together, each longer one by itself. An error of the
// arguments leaves everything as it was; after one of a device every slot must be
// reset. The results are valid until the next Step.
func (m *Model) Step(work []Work) ([]Result, error) {
	if err := m.check(work); err != nil {
		return nil, err
	}
	m.passed = m.passed[:0]
	for _, w := range work {
		if len(w.Tokens) == 1 {
			m.passed = append(m.passed, w)
		}
	}
	if len(m.passed) > 0 {
		if err := m.pass(); err != nil {
			return nil, err
		}
	}
	for _, w := range work {
		if len(w.Tokens) > 1 {
			m.passed = append(m.passed[:0], w)
			if err := m.pass(); err != nil {
				return nil, err
			}
		}
	}
	count := 0
	for _, w := range work {
		if w.Sample {
			m.results[count] = m.slots[w.Slot].result
			count++
		}
	}
	return m.results[:count], nil
}

// check finds what is wrong with work before anything is changed.
func (m *Model) check(work []Work) error {
	for i, w := range work {
		if w.Slot < 0 || w.Slot >= len(m.slots) {
			return fmt.Errorf("step: slot %d of %d", w.Slot, len(m.slots))
		}
		for _, other := range work[:i] {
			if other.Slot == w.Slot {
				return fmt.Errorf("step: slot %d is given work twice", w.Slot)
			}
		}
		length := len(m.slots[w.Slot].tokens)
		switch {
		case len(w.Tokens) == 0:
			return fmt.Errorf("step: slot %d is given no tokens", w.Slot)
		case len(w.Tokens) > m.limits.Prefill:
			return fmt.Errorf("step: slot %d is given %d tokens, the limit is %d", w.Slot, len(w.Tokens), m.limits.Prefill)
		case length+len(w.Tokens) > m.limits.Context:
			return fmt.Errorf("step: slot %d has %d tokens and is given %d more, the limit is %d", w.Slot, length, len(w.Tokens), m.limits.Context)
		case w.Params.TopLogprobs < 0 || w.Params.TopLogprobs > kernels.MaxTopLogprobs:
			return fmt.Errorf("step: slot %d: %d top log-probabilities, the limit is %d", w.Slot, w.Params.TopLogprobs, kernels.MaxTopLogprobs)
		}
		if p := w.Params; !finite(p.Temperature, p.TopP, p.MinP, p.PresencePenalty, p.FrequencyPenalty, p.RepetitionPenalty) {
			return fmt.Errorf("step: slot %d: sampling %+v is not finite", w.Slot, p)
		}
		for _, token := range w.Tokens {
			if token < 0 || int(token) >= m.vocabulary {
				return fmt.Errorf("step: slot %d: token %d is not in the vocabulary of %d", w.Slot, token, m.vocabulary)
			}
		}
	}
	return nil
}

func finite(numbers ...float32) bool {
	for _, x := range numbers {
		if x-x != 0 {
			return false
		}
	}
	return true
}

// pass runs the program over m.passed.
func (m *Model) pass() error {
	batch := &m.program.Batch
	batch.Clear()
	for _, w := range m.passed {
		s := &m.slots[w.Slot]
		batch.Append(w.Slot, len(s.tokens), w.Tokens)
		s.tokens = append(s.tokens, w.Tokens...)
		for table := m.table(w.Slot); s.pages*kernels.PageTokens < len(s.tokens); s.pages++ {
			last := len(m.freePages) - 1
			table[s.pages] = m.freePages[last]
			m.freePages = m.freePages[:last]
		}
		if !w.Sample {
			continue
		}
		if s.generated < 0 {
			s.generated = len(s.tokens)
		}
		batch.Draws = append(batch.Draws, kernels.Draw{
			Row: len(batch.Token) - 1, Sequence: s.tokens, Generated: s.generated, Params: kernels.Sampling(w.Params),
		})
	}
	m.program.Observed = m.observe != nil
	if err := m.program.Run(); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	draw := 0
	for _, w := range m.passed {
		if w.Sample {
			m.keep(w.Slot, &batch.Draws[draw])
			draw++
		}
	}
	return nil
}

// keep copies a draw's outcome to its slot.
func (m *Model) keep(slot int, d *kernels.Draw) {
	top := m.tops[slot*kernels.MaxTopLogprobs:][:min(d.Params.TopLogprobs, m.drawable(m.vocabulary))]
	for i := range top {
		top[i] = TokenLogprob(d.Top[i])
	}
	m.slots[slot].result = Result{Token: d.Token, Logprob: d.Logprob, Top: top}
}
