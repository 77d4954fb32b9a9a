package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway/runtime/engine"
	"slipway/runtime/engine/enginetest"
	"slipway/runtime/model"
)

const end = 0 // the end token of these tests; text has none

func shape(slots, length, prefill int) model.Limits {
	return model.Limits{Slots: slots, Context: length, Prefill: prefill}
}

// start runs an engine for the duration of a test.
func start(t *testing.T, stepper *enginetest.Stepper, config engine.Config) *engine.Engine {
	t.Helper()
	if config.EndTokens == nil {
		config.EndTokens = []int32{end}
	}
	e := engine.New(config, stepper)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e.Drain(ctx)
	})
	return e
}

// answer is everything that a stream had to say.
type answer struct {
	thought, content string
	logprobs         []int32 // ids of the content's tokens
	outcome          engine.Outcome
}

func read(ctx context.Context, stream *engine.Stream) (a answer, err error) {
	for {
		pieces, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			a.outcome = stream.Outcome()
			return a, nil
		}
		if err != nil {
			return a, err
		}
		for _, piece := range pieces {
			if piece.Thought {
				a.thought += piece.Text
				continue
			}
			a.content += piece.Text
			for _, token := range piece.Tokens {
				a.logprobs = append(a.logprobs, token.ID)
			}
		}
	}
}

func ask(t *testing.T, e *engine.Engine, request engine.Request) answer {
	t.Helper()
	stream, err := e.Submit(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	a, err := read(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// scripted returns an engine that answers every prompt of three tokens with text.
func scripted(t *testing.T, text string) *engine.Engine {
	return start(t, &enginetest.Stepper{Shape: shape(1, 64, 8), Next: enginetest.Script(3, enginetest.IDs(text), end)}, engine.Config{})
}

func TestStopConditions(t *testing.T) {
	for _, tc := range []struct {
		name    string
		script  string
		request engine.Request
		content string
		reason  string
		tokens  int
	}{
		{"end token", "yes", engine.Request{}, "yes", "stop", 4},
		{"limit", "yes", engine.Request{MaxTokens: 2}, "ye", "length", 2},
		{"limit at the end token", "yes", engine.Request{MaxTokens: 4}, "yes", "stop", 4},
		{"end token at once", "", engine.Request{}, "", "stop", 1},
		{"end tokens ignored", "yes", engine.Request{MaxTokens: 6, IgnoreEnd: true}, "yes\x00\x00\x00", "length", 6},
		{"context full", strings.Repeat("x", 100), engine.Request{}, strings.Repeat("x", 61), "length", 61},
		{"limit beyond the context", strings.Repeat("x", 100), engine.Request{MaxTokens: 1000}, strings.Repeat("x", 61), "length", 61},
		{"stop string over tokens", "one END two", engine.Request{Stop: []string{"END"}}, "one ", "stop", 7},
		{"stop string in the first token", "one", engine.Request{Stop: []string{"o"}}, "", "stop", 1},
		{"earliest of two", "a,b.c", engine.Request{Stop: []string{".", ","}}, "a", "stop", 2},
		{"false start of a stop string", "aab aac", engine.Request{Stop: []string{"aac"}}, "aab ", "stop", 7},
		{"restart inside a stop string", "xaaab", engine.Request{Stop: []string{"aab"}}, "xa", "stop", 5},
		{"unfinished stop string", "one EN", engine.Request{Stop: []string{"END"}}, "one EN", "stop", 7},
		{"unfinished stop string at the limit", "one END", engine.Request{Stop: []string{"END"}, MaxTokens: 6}, "one EN", "length", 6},
		{"character over tokens", "é!", engine.Request{}, "é!", "stop", 4},
		{"stop string of several bytes", "a\u00e9b", engine.Request{Stop: []string{"é"}}, "a", "stop", 3},
		{"a character cut by the limit", "aé", engine.Request{MaxTokens: 2}, "a\xc3", "length", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.request.Prompt, tc.request.Decoder = []int32{1, 2, 3}, &enginetest.Bytes{}
			a := ask(t, scripted(t, tc.script), tc.request)
			if a.content != tc.content || a.outcome.Reason != tc.reason || len(a.outcome.Tokens) != tc.tokens {
				t.Errorf("%q, %s, %d tokens; want %q, %s, %d", a.content, a.outcome.Reason, len(a.outcome.Tokens), tc.content, tc.reason, tc.tokens)
			}
			if a.outcome.PromptTokens != 3 {
				t.Errorf("%d prompt tokens", a.outcome.PromptTokens)
			}
			if got := string(bytesOf(a.logprobs)); got != tc.content {
				t.Errorf("log-probabilities of %q for the content %q", got, tc.content)
			}
		})
	}
}

func bytesOf(ids []int32) []byte {
	text := make([]byte, len(ids))
	for i, id := range ids {
		text[i] = byte(id)
	}
	return text
}

// Whatever is held back, text is shown as soon as it cannot belong to a stop string.
func TestPiecesComeEarly(t *testing.T) {
	e := scripted(t, "ab END")
	stream, err := e.Submit(t.Context(), engine.Request{Prompt: []int32{1, 2, 3}, Decoder: &enginetest.Bytes{}, Stop: []string{"bx"}})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for {
		pieces, err := stream.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, piece := range pieces {
			texts = append(texts, piece.Text)
		}
	}
	if want := []string{"a", "b ", "E", "N", "D"}; !slices.Equal(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
}

func TestRequestErrors(t *testing.T) {
	e := scripted(t, "yes")
	var long *engine.TooLongError
	var bad *engine.InvalidError
	if _, err := e.Submit(t.Context(), engine.Request{Prompt: make([]int32, 64)}); !errors.As(err, &long) {
		t.Errorf("a prompt of the context's length: %v", err)
	}
	for _, prompt := range [][]int32{nil, {1, 256}, {-1}} {
		if _, err := e.Submit(t.Context(), engine.Request{Prompt: prompt}); !errors.As(err, &bad) {
			t.Errorf("prompt %v: %v", prompt, err)
		}
	}
	if a := ask(t, e, engine.Request{Prompt: make([]int32, 63), IgnoreEnd: true}); a.outcome.Reason != "length" || len(a.outcome.Tokens) != 1 {
		t.Errorf("a prompt that leaves room for one token: %+v", a.outcome)
	}
}

// The tokens of a request depend on nothing but the request. Mix depends on
// every token of the slot's sequence, so a mixed-up slot, a lost chunk or a
// reset that was forgotten shows.
func TestConcurrencyChangesNothing(t *testing.T) {
	const requests = 32
	want := make([][]int32, requests)
	prompt := func(i int) []int32 {
		ids := make([]int32, 1+i*7%60)
		for k := range ids {
			ids[k] = int32((i*31 + k) % 256)
		}
		return ids
	}
	for i := range want {
		sequence := prompt(i)
		for range 20 {
			sequence = append(sequence, enginetest.Mix(sequence, 256))
		}
		want[i] = sequence[len(sequence)-20:]
	}
	for _, slots := range []int{1, 5, 32} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			e := start(t, &enginetest.Stepper{Shape: shape(slots, 128, 16)}, engine.Config{})
			var group sync.WaitGroup
			for i := range want {
				group.Go(func() {
					stream, err := e.Submit(t.Context(), engine.Request{Prompt: prompt(i), MaxTokens: 20, IgnoreEnd: true})
					if err != nil {
						t.Error(err)
						return
					}
					a, err := read(t.Context(), stream)
					if err != nil || !slices.Equal(a.outcome.Tokens, want[i]) {
						t.Errorf("request %d: %v, %v; want %v", i, a.outcome.Tokens, err, want[i])
					}
				})
			}
			group.Wait()
			if m := e.Metrics(); m.Finished["length"] != requests || m.GeneratedTokens != requests*20 {
				t.Errorf("metrics: %+v", m)
			}
		})
	}
}

// A long prompt is read in chunks at absolute multiples, and a running sequence
// gets a token in every step meanwhile.
func TestPrefillInterleaves(t *testing.T) {
	stepper := &enginetest.Stepper{Shape: shape(3, 100, 8), Gate: make(chan struct{})}
	e := start(t, stepper, engine.Config{})
	submit := func(length, generate int) *engine.Stream {
		stream, err := e.Submit(t.Context(), engine.Request{Prompt: make([]int32, length), MaxTokens: generate, IgnoreEnd: true})
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	first := submit(3, 10)
	stepper.Gate <- struct{}{} // the first prompt is being read: the others join together
	second, third := submit(30, 2), submit(5, 2)
	close(stepper.Gate)
	for _, stream := range []*engine.Stream{first, second, third} {
		if _, err := read(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
	}
	var chunks [][]int
	for _, step := range stepper.Steps() {
		row := make([]int, 3)
		for _, work := range step {
			row[work.Slot] = len(work.Tokens)
		}
		chunks = append(chunks, row)
	}
	joined := slices.IndexFunc(chunks, func(row []int) bool { return row[1] > 0 })
	want := [][]int{{1, 8, 0}, {1, 0, 5}, {1, 8, 1}, {1, 8, 0}, {1, 6, 0}, {1, 1, 0}}
	if got := chunks[joined:min(len(chunks), joined+len(want))]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("tokens by step and slot: %v, want %v", got, want)
	}
}

func TestCancelFreesTheSlot(t *testing.T) {
	stepper := &enginetest.Stepper{Shape: shape(1, 64, 8), Gate: make(chan struct{})}
	e := start(t, stepper, engine.Config{})
	gone := errors.New("the client is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	endless := engine.Request{Prompt: []int32{1}, IgnoreEnd: true}
	running, err := e.Submit(ctx, endless)
	if err != nil {
		t.Fatal(err)
	}
	stepper.Gate <- struct{}{} // it holds the only slot
	queued, err := e.Submit(ctx, endless)
	if err != nil {
		t.Fatal(err)
	}
	next, err := e.Submit(t.Context(), engine.Request{Prompt: []int32{2}, MaxTokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	cancel(gone)
	close(stepper.Gate)
	if _, err := read(t.Context(), next); err != nil {
		t.Errorf("the request after the cancelled ones: %v", err)
	}
	for name, stream := range map[string]*engine.Stream{"running": running, "queued": queued} {
		if _, err := read(t.Context(), stream); !errors.Is(err, gone) {
			t.Errorf("%s: %v, want %v", name, err, gone)
		}
	}
	if steps := len(stepper.Steps()); steps > 3 {
		t.Errorf("%d steps: the cancelled request kept its slot", steps)
	}
	if m := e.Metrics(); m.Finished["cancelled"] != 2 {
		t.Errorf("metrics: %+v", m.Finished)
	}
}

func TestQueueFull(t *testing.T) {
	stepper := &enginetest.Stepper{Shape: shape(1, 64, 8), Gate: make(chan struct{})}
	e := start(t, stepper, engine.Config{Queue: 2})
	request := engine.Request{Prompt: []int32{1}, MaxTokens: 2, IgnoreEnd: true}
	var streams []*engine.Stream
	submit := func() error {
		stream, err := e.Submit(t.Context(), request)
		if err == nil {
			streams = append(streams, stream)
		}
		return err
	}
	if err := submit(); err != nil {
		t.Fatal(err)
	}
	stepper.Gate <- struct{}{} // the first has left the queue
	for range 2 {
		if err := submit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := submit(); !errors.Is(err, engine.ErrQueueFull) {
		t.Errorf("one too many: %v", err)
	}
	close(stepper.Gate)
	for _, stream := range streams {
		if _, err := read(t.Context(), stream); err != nil {
			t.Error(err)
		}
	}
	if err := submit(); err != nil {
		t.Errorf("after the queue emptied: %v", err)
	}
	if m := e.Metrics(); m.Finished["refused"] != 1 {
		t.Errorf("metrics: %+v", m.Finished)
	}
}

func TestStepFaults(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault func() error
		want  string
	}{
		{"error", func() error { return errors.New("no such kernel") }, "no such kernel"},
		{"panic", func() error { var none []int; _ = none[len(none)]; return nil }, "index out of range"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var lines []string
			stepper := &enginetest.Stepper{Shape: shape(2, 64, 8), Fault: func(step int) error {
				if step >= 2 && step < 5 {
					return tc.fault()
				}
				return nil
			}}
			e := start(t, stepper, engine.Config{Log: func(line string) { lines = append(lines, line) }})
			request := engine.Request{Prompt: []int32{1}, MaxTokens: 4, IgnoreEnd: true}
			for i := range 3 {
				stream, err := e.Submit(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				_, err = read(t.Context(), stream)
				if !errors.Is(err, engine.ErrStep) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("in flight at fault %d: %v", i, err)
				}
				if healthy := e.Healthy() == nil; healthy != (i < 2) {
					t.Errorf("healthy after %d faults: %v", i+1, e.Healthy())
				}
			}
			if a := ask(t, e, request); len(a.outcome.Tokens) != 4 || e.Healthy() != nil {
				t.Errorf("after the faults: %+v, %v", a.outcome, e.Healthy())
			}
			if len(lines) != 3 || strings.Contains(lines[0], "\n") {
				t.Errorf("log: %q", lines)
			}
			if m := e.Metrics(); m.FailedSteps != 3 || m.Finished["failed"] != 3 {
				t.Errorf("metrics: %+v", m)
			}
		})
	}
}

// Logits that are not numbers fail the sequence they belong to and no other.
func TestNotNumbers(t *testing.T) {
	stepper := &enginetest.Stepper{Shape: shape(2, 64, 8), Next: func(sequence []int32) int32 {
		if sequence[0] == 1 && len(sequence) == 3 {
			return enginetest.NotNumbers
		}
		return 7
	}}
	e := start(t, stepper, engine.Config{})
	bad, err := e.Submit(t.Context(), engine.Request{Prompt: []int32{1}, MaxTokens: 10})
	if err != nil {
		t.Fatal(err)
	}
	good := ask(t, e, engine.Request{Prompt: []int32{2}, MaxTokens: 10})
	if _, err := read(t.Context(), bad); !errors.Is(err, engine.ErrStep) || len(good.outcome.Tokens) != 10 {
		t.Errorf("%v, and the neighbour: %+v", err, good.outcome)
	}
}

func TestDrain(t *testing.T) {
	stepper := &enginetest.Stepper{Shape: shape(1, 64, 8), Gate: make(chan struct{})}
	e := start(t, stepper, engine.Config{Queue: 1 << 30})
	request := engine.Request{Prompt: []int32{1}, MaxTokens: 3, IgnoreEnd: true}
	var streams []*engine.Stream
	for range 2 { // one runs, one waits
		stream, err := e.Submit(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, stream)
	}
	stepper.Gate <- struct{}{}
	drained := make(chan error, 1)
	go func() { drained <- e.Drain(t.Context()) }()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for { // until the drain has begun
		if _, err := e.Submit(gone, request); errors.Is(err, engine.ErrDraining) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	close(stepper.Gate)
	for _, stream := range streams {
		if a, err := read(t.Context(), stream); err != nil || len(a.outcome.Tokens) != 3 {
			t.Errorf("accepted before the drain: %+v, %v", a.outcome, err)
		}
	}
	if err := <-drained; err != nil {
		t.Errorf("drain: %v", err)
	}
}

func TestDrainDeadline(t *testing.T) {
	stepper := &enginetest.Stepper{Shape: shape(1, 64, 8), Gate: make(chan struct{})}
	e := start(t, stepper, engine.Config{})
	var streams []*engine.Stream
	for range 2 {
		stream, err := e.Submit(t.Context(), engine.Request{Prompt: []int32{1}, IgnoreEnd: true})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, stream)
	}
	stepper.Gate <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("drain: %v", err)
	}
	close(stepper.Gate)
	for _, stream := range streams {
		if _, err := read(t.Context(), stream); !errors.Is(err, engine.ErrDraining) {
			t.Errorf("cut by the deadline: %v", err)
		}
	}
}

// A reader that never reads does not hold up the engine.
func TestUnreadStream(t *testing.T) {
	e := start(t, &enginetest.Stepper{Shape: shape(1, 4096, 8)}, engine.Config{})
	if _, err := e.Submit(t.Context(), engine.Request{Prompt: []int32{1}, MaxTokens: 4000, IgnoreEnd: true, Decoder: &enginetest.Bytes{}}); err != nil {
		t.Fatal(err)
	}
	if a := ask(t, e, engine.Request{Prompt: []int32{2}, MaxTokens: 1}); len(a.outcome.Tokens) != 1 {
		t.Errorf("%+v", a.outcome)
	}
}
