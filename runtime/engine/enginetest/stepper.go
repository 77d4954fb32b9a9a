// Package enginetest is a model for tests: it keeps the contract that a real
// one states, checks that its caller does too, and says what the test wants.
package enginetest

import (
	"fmt"
	"math"
	"sync"

	"slipway/runtime/model"
)

// Stepper is an engine.Stepper whose next token is a function of the sequence.
type Stepper struct {
	Shape model.Limits
	Size  int                              // of the vocabulary; 0: 256
	Next  func(sequence []int32) int32     // the next token; nil: Mix
	Gate  chan struct{}                    // unless nil, each step first receives from it
	Fault func(step int) error             // unless nil, may fail a step (or panic)
	Top   func(n int) []model.TokenLogprob // candidates reported for n asked; nil: the token alone

	mutex sync.Mutex
	slots [][]int32
	calls int
	steps [][]model.Work
}

// NotNumbers is what Next returns for logits that hold NaN.
const NotNumbers = -1

// Vocabulary returns the number of ids.
func (s *Stepper) Vocabulary() int {
	if s.Size == 0 {
		return 256
	}
	return s.Size
}

// Limits returns Shape.
func (s *Stepper) Limits() model.Limits { return s.Shape }

// Reset forgets a slot's sequence.
func (s *Stepper) Reset(slot int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.grow()
	s.slots[slot] = nil
}

// Step appends and samples, and refuses what a model would refuse.
func (s *Stepper) Step(work []model.Work) ([]model.Result, error) {
	if s.Gate != nil {
		<-s.Gate
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.grow()
	s.calls++
	if s.Fault != nil {
		if err := s.Fault(s.calls - 1); err != nil {
			return nil, err
		}
	}
	if err := s.check(work); err != nil {
		return nil, err
	}
	var results []model.Result
	var record []model.Work
	for _, w := range work {
		w.Tokens = append([]int32(nil), w.Tokens...)
		record = append(record, w)
		s.slots[w.Slot] = append(s.slots[w.Slot], w.Tokens...)
		if w.Sample {
			results = append(results, s.sample(s.slots[w.Slot], w.Params))
		}
	}
	s.steps = append(s.steps, record)
	return results, nil
}

// Steps returns the work of every step that was done.
func (s *Stepper) Steps() [][]model.Work {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([][]model.Work(nil), s.steps...)
}

func (s *Stepper) grow() {
	if s.slots == nil {
		s.slots = make([][]int32, s.Shape.Slots)
	}
}

func (s *Stepper) check(work []model.Work) error {
	if len(work) == 0 {
		return fmt.Errorf("a step without work")
	}
	seen := map[int]bool{}
	for _, w := range work {
		length := len(s.slots[w.Slot])
		switch {
		case seen[w.Slot]:
			return fmt.Errorf("slot %d twice in a step", w.Slot)
		case len(w.Tokens) == 0:
			return fmt.Errorf("slot %d: no tokens", w.Slot)
		case len(w.Tokens) > 1 && length%s.Shape.Prefill != 0:
			return fmt.Errorf("slot %d: a chunk starts at %d", w.Slot, length)
		case len(w.Tokens) > s.Shape.Prefill:
			return fmt.Errorf("slot %d: a chunk of %d", w.Slot, len(w.Tokens))
		case length+len(w.Tokens) > s.Shape.Context:
			return fmt.Errorf("slot %d: %d tokens", w.Slot, length+len(w.Tokens))
		}
		seen[w.Slot] = true
	}
	return nil
}

func (s *Stepper) sample(sequence []int32, params model.Sampling) model.Result {
	next := s.Next
	if next == nil {
		next = func(sequence []int32) int32 { return Mix(sequence, s.Vocabulary()) }
	}
	result := model.Result{Token: next(sequence), Logprob: -0.5}
	if result.Token == NotNumbers {
		return model.Result{Logprob: float32(math.NaN())}
	}
	if n := params.TopLogprobs; n > 0 {
		result.Top = []model.TokenLogprob{{Token: result.Token, Logprob: result.Logprob}}
		if s.Top != nil {
			result.Top = s.Top(n)
		}
	}
	return result
}

// Mix is a next token that depends on every token of the sequence (FNV-1a), so
// that a sequence that saw another's tokens says something else.
func Mix(sequence []int32, vocabulary int) int32 {
	hash := uint64(14695981039346656037)
	for _, id := range sequence {
		hash = (hash ^ uint64(uint32(id))) * 1099511628211
	}
	return int32(hash >> 33 % uint64(vocabulary))
}

// Bytes is the decoder of a vocabulary whose ids are bytes. It holds back
// incomplete UTF-8 as a real one does.
type Bytes struct{ pending []byte }

// Next adds a byte and returns the character it completes, if any.
func (b *Bytes) Next(id int32) string {
	b.pending = append(b.pending, byte(id))
	want := 1
	switch first := b.pending[0]; {
	case first >= 0xF0:
		want = 4
	case first >= 0xE0:
		want = 3
	case first >= 0xC0:
		want = 2
	}
	if len(b.pending) < want {
		return ""
	}
	return b.Flush()
}

// Flush returns what is held back.
func (b *Bytes) Flush() string {
	text := string(b.pending)
	b.pending = b.pending[:0]
	return text
}

// Script returns a Next that answers any prompt of the given length with the
// tokens of answer, then with end for ever.
func Script(prompt int, answer []int32, end int32) func([]int32) int32 {
	return func(sequence []int32) int32 {
		if i := len(sequence) - prompt; i < len(answer) {
			return answer[i]
		}
		return end
	}
}

// IDs returns text as one id a byte.
func IDs(text string) []int32 {
	ids := make([]int32, len(text))
	for i := range len(text) {
		ids[i] = int32(text[i])
	}
	return ids
}
