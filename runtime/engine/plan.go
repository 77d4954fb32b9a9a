package engine

import (
	"fmt"
	"runtime"
	"strings"

	"slipway/runtime/model"
)

// plan fills l.work with the next step: a token of each sequence that is
// decoding, and prompt chunks of together at most a prefill length, so that a
// long prompt delays the others' next token by one chunk and not by all of it.
// Waiting prompts take turns, one chunk each; a chunk that no longer fits comes
// first in the next step.
func (l *lane) plan() {
	l.work = l.work[:0]
	for slot, s := range l.slots {
		if s != nil && s.read == len(s.request.Prompt) {
			l.work = append(l.work, s.decode(slot))
		}
	}
	budget, start := l.engine.limits.Prefill, l.first
	for i := range l.slots {
		slot := (start + i) % len(l.slots)
		s := l.slots[slot]
		if s == nil || s.read == len(s.request.Prompt) {
			continue
		}
		work := s.prefill(slot, l.engine.limits.Prefill)
		if len(work.Tokens) > budget {
			l.first = slot
			return
		}
		budget -= len(work.Tokens)
		l.work = append(l.work, work)
		l.first = (slot + 1) % len(l.slots)
	}
}

// prefill returns the next chunk of the prompt. Chunks end at absolute
// multiples of length, whatever else is in the step, so that the arithmetic of
// a prompt never depends on its neighbours.
func (s *sequence) prefill(slot, length int) model.Work {
	prompt := s.request.Prompt
	end := min(len(prompt), s.read-s.read%length+length)
	return s.describe(slot, prompt[s.read:end], end == len(prompt))
}

// decode returns the step that feeds the last token. Nothing is sampled while
// the next token is already known.
func (s *sequence) decode(slot int) model.Work {
	s.last[0] = s.tokens[len(s.tokens)-1]
	return s.describe(slot, s.last[:], true)
}

func (s *sequence) describe(slot int, tokens []int32, last bool) model.Work {
	return model.Work{Slot: slot, Tokens: tokens, Sample: last && len(s.forced) == 0, Params: s.request.Sampling}
}

func sampled(work []model.Work) int {
	count := 0
	for _, w := range work {
		if w.Sample {
			count++
		}
	}
	return count
}

// panicPlace names the line that panicked, for a log of one line an event.
func panicPlace() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	raised := false
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			raised = true
		case raised && !strings.HasPrefix(frame.Function, "runtime."):
			return fmt.Sprintf("%s line %d", frame.Function, frame.Line)
		}
		if !more {
			return "unknown place"
		}
	}
}
