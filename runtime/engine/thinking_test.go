package engine_test

import (
	"strings"
	"testing"

	"slipway/runtime/engine"
	"slipway/runtime/engine/enginetest"
)

// In these tests "<" opens a thought and ">" closes it.
func marks(reserve int, open bool) *engine.Thinking {
	return &engine.Thinking{Begin: '<', End: '>', Close: enginetest.IDs("\n>\n"), Reserve: reserve, Open: open}
}

func TestThinking(t *testing.T) {
	long := strings.Repeat("hm ", 30)
	for _, tc := range []struct {
		name                     string
		script                   string
		thinking                 *engine.Thinking
		limit                    int
		thought, content, reason string
	}{
		{"opened by the prompt", "\nhm\n>\n\nyes", marks(8, true), 40, "hm", "yes", "stop"},
		{"opened by the model", "<\nhm\n>\n\nyes", marks(8, false), 40, "hm", "yes", "stop"},
		{"no thought", "yes <no>", marks(8, false), 40, "", "yes <no>", "stop"},
		{"white space inside is kept", "a\n\nb >c", marks(8, true), 40, "a\n\nb", "c", "stop"},
		{"line feeds of a plain answer are kept", "\nyes", marks(8, false), 40, "", "\nyes", "stop"},
		{"marks mean nothing without thinking", "<a>b", nil, 40, "", "<a>b", "stop"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := ask(t, scripted(t, tc.script), engine.Request{
				Prompt: []int32{1, 2, 3}, MaxTokens: tc.limit, Thinking: tc.thinking, Decoder: &enginetest.Bytes{},
			})
			if a.thought != tc.thought || a.content != tc.content || a.outcome.Reason != tc.reason {
				t.Errorf("thought %q, content %q, %s; want %q, %q, %s", a.thought, a.content, a.outcome.Reason, tc.thought, tc.content, tc.reason)
			}
			if got := string(bytesOf(a.logprobs)); strings.Trim(got, "\n") != strings.Trim(tc.content, "\n") {
				t.Errorf("log-probabilities of %q for the content %q", got, tc.content)
			}
		})
	}
	t.Run("stop strings count only in the answer", func(t *testing.T) {
		a := ask(t, scripted(t, "a.b>c.d"), engine.Request{
			Prompt: []int32{1, 2, 3}, Thinking: marks(8, true), Decoder: &enginetest.Bytes{}, Stop: []string{"."},
		})
		if a.thought != "a.b" || a.content != "c" {
			t.Errorf("thought %q, content %q", a.thought, a.content)
		}
	})
	t.Run("an end token inside a thought closes it", func(t *testing.T) {
		// The model ends, and ends again after the forced mark is in its sequence.
		stepper := &enginetest.Stepper{Shape: shape(1, 64, 8), Next: func(sequence []int32) int32 {
			return enginetest.Script(3, enginetest.IDs("hm\x00\x00\x00ok"), end)(sequence)
		}}
		a := ask(t, start(t, stepper, engine.Config{}), engine.Request{
			Prompt: []int32{1, 2, 3}, Thinking: marks(8, true), Decoder: &enginetest.Bytes{},
		})
		if a.thought != "hm" || a.content != "ok" || a.outcome.Reason != "stop" {
			t.Errorf("thought %q, content %q, %s", a.thought, a.content, a.outcome.Reason)
		}
	})
	for _, tc := range []struct {
		name                    string
		limit, reserve, content int
	}{
		{"the reserve is kept", 40, 8, 8},
		{"a reserve of nothing", 40, 0, 0},
		{"a reserve over half", 40, 100, 18},
		{"the context is the limit", 0, 8, 8},
		{"a limit shorter than the marks", 2, 8, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := ask(t, scripted(t, long), engine.Request{
				Prompt: []int32{1, 2, 3}, MaxTokens: tc.limit, Thinking: marks(tc.reserve, true), Decoder: &enginetest.Bytes{},
			})
			limit := tc.limit
			if limit == 0 {
				limit = 61
			}
			if len(a.outcome.Tokens) != limit || a.outcome.Reason != "length" {
				t.Fatalf("%d tokens, %s", len(a.outcome.Tokens), a.outcome.Reason)
			}
			if len(a.content) != tc.content {
				t.Errorf("thought %q, content %q of %d bytes, want %d", a.thought, a.content, len(a.content), tc.content)
			}
			if limit > 3 && string(bytesOf(a.outcome.Tokens[limit-tc.content-3:limit-tc.content])) != "\n>\n" {
				t.Errorf("tokens %q", bytesOf(a.outcome.Tokens))
			}
		})
	}
}

// Forced tokens are fed one a step and nothing is drawn that is not used.
func TestForcedTokensAreNotSampled(t *testing.T) {
	stepper := &enginetest.Stepper{Shape: shape(1, 64, 8), Next: enginetest.Script(3, enginetest.IDs("hm hm hm hm hm hm"), end)}
	a := ask(t, start(t, stepper, engine.Config{}), engine.Request{
		Prompt: []int32{1, 2, 3}, MaxTokens: 12, Thinking: marks(4, true), Decoder: &enginetest.Bytes{},
	})
	samples := 0
	for _, step := range stepper.Steps() {
		for _, work := range step {
			if work.Sample {
				samples++
			}
		}
	}
	if want := len(a.outcome.Tokens) - 3; samples != want {
		t.Errorf("%d samples for %d tokens, three of them forced", samples, len(a.outcome.Tokens))
	}
}
