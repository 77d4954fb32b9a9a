package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/runtime/engine"
	"slipway/runtime/engine/enginetest"
	"slipway/runtime/model"
)

// copies returns alike models, each of which waits for a token of its gate before
// each step.
func copies(n, slots int, fault func(copy, step int) error) (steppers []engine.Stepper, all []*enginetest.Stepper) {
	for i := range n {
		s := &enginetest.Stepper{Shape: shape(slots, 64, 16)}
		if fault != nil {
			s.Fault = func(step int) error { return fault(i, step) }
		}
		steppers, all = append(steppers, s), append(all, s)
	}
	return steppers, all
}

func submit(t *testing.T, e *engine.Engine, prompt string, tokens int) *engine.Stream {
	t.Helper()
	stream, err := e.Submit(t.Context(), engine.Request{Prompt: enginetest.IDs(prompt), MaxTokens: tokens, IgnoreEnd: true})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// Requests are spread over the copies, answered as one copy alone would, and the
// counts are of all.
func TestCopiesShareTheWork(t *testing.T) {
	alone := start(t, &enginetest.Stepper{Shape: shape(1, 64, 16)}, engine.Config{})
	steppers, all := copies(2, 2, nil)
	for _, s := range all {
		s.Gate = make(chan struct{})
	}
	e := engine.New(engine.Config{}, steppers...)
	var streams []*engine.Stream
	for i := range 6 { // four get slots, two wait
		streams = append(streams, submit(t, e, fmt.Sprint("prompt ", i), 8))
	}
	if m := e.Metrics(); m.Slots != 4 || m.Running != 4 || m.Waiting != 2 {
		t.Errorf("%d slots, %d running, %d waiting", m.Slots, m.Running, m.Waiting)
	}
	for _, s := range all {
		close(s.Gate)
	}
	for i, stream := range streams {
		got, err := read(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		want, err := read(t.Context(), submit(t, alone, fmt.Sprint("prompt ", i), 8))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.outcome.Tokens) != fmt.Sprint(want.outcome.Tokens) {
			t.Errorf("request %d: %v, alone %v", i, got.outcome.Tokens, want.outcome.Tokens)
		}
	}
	if err := e.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, s := range all {
		if slots := distinctSlots(s.Steps()); slots != 2 {
			t.Errorf("copy %d used %d slots, want 2: the first requests are spread evenly", i, slots)
		}
	}
	m := e.Metrics()
	if m.Finished["length"] != 6 || m.GeneratedTokens != 48 || m.Steps != int64(len(all[0].Steps())+len(all[1].Steps())) || m.Running != 0 {
		t.Errorf("counts %+v", m)
	}
}

func distinctSlots(steps [][]model.Work) int {
	seen := map[int]bool{}
	for _, step := range steps {
		for _, work := range step {
			seen[work.Slot] = true
		}
	}
	return len(seen)
}

// A copy whose steps fail costs the requests that it has, and is avoided while the
// other works. Where it is the only one left, it is tried again.
func TestOneCopyFails(t *testing.T) {
	broken := errors.New("broken")
	steppers, _ := copies(2, 1, func(copy, _ int) error {
		if copy == 0 {
			return broken
		}
		return nil
	})
	e := engine.New(engine.Config{}, steppers...)
	failed := 0
	for range 20 {
		if _, err := read(t.Context(), submit(t, e, "a", 4)); errors.Is(err, broken) {
			failed++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if failed != 3 { // until it counts as failing
		t.Errorf("%d requests failed, want 3", failed)
	}
	if err := e.Healthy(); err != nil {
		t.Errorf("not healthy: %v", err)
	}
	if err := e.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// What is cancelled in one copy frees its slot there.
func TestCancelInACopy(t *testing.T) {
	steppers, all := copies(2, 1, nil)
	for _, s := range all {
		s.Gate = make(chan struct{})
	}
	e := engine.New(engine.Config{}, steppers...)
	ctx, cancel := context.WithCancel(t.Context())
	cut, err := e.Submit(ctx, engine.Request{Prompt: enginetest.IDs("cut"), MaxTokens: 50, IgnoreEnd: true})
	if err != nil {
		t.Fatal(err)
	}
	other, waiting := submit(t, e, "other", 2), submit(t, e, "waiting", 2)
	all[0].Gate <- struct{}{} // the first copy has the first request
	cancel()
	for _, s := range all {
		close(s.Gate)
	}
	if _, err := read(t.Context(), cut); !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled one ended with %v", err)
	}
	for _, stream := range []*engine.Stream{other, waiting} {
		if _, err := read(t.Context(), stream); err != nil {
			t.Error(err)
		}
	}
	if err := e.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// An error that loses the device ends everything: what runs, in every copy, what
// waits, and what comes.
func TestLostDevice(t *testing.T) {
	sticky := errors.New("sticky")
	steppers, all := copies(2, 1, func(copy, step int) error {
		if copy == 1 && step == 2 {
			return sticky
		}
		return nil
	})
	for _, s := range all {
		s.Gate = make(chan struct{})
	}
	e := engine.New(engine.Config{Lost: func(err error) bool { return errors.Is(err, sticky) }}, steppers...)
	streams := []*engine.Stream{submit(t, e, "first", 40), submit(t, e, "second", 40), submit(t, e, "waits", 40)}
	select {
	case <-e.Lost():
		t.Fatal("lost at once")
	default:
	}
	close(all[1].Gate)
	<-e.Lost()
	close(all[0].Gate)
	for i, stream := range streams {
		if _, err := read(t.Context(), stream); !errors.Is(err, engine.ErrStep) || !errors.Is(err, sticky) {
			t.Errorf("request %d ended with %v", i, err)
		}
	}
	if _, err := e.Submit(t.Context(), engine.Request{Prompt: []int32{1}}); !errors.Is(err, engine.ErrLost) {
		t.Errorf("a new one: %v", err)
	}
	if err := e.Healthy(); !errors.Is(err, engine.ErrLost) || !errors.Is(err, sticky) {
		t.Errorf("healthy: %v", err)
	}
	if err := e.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if m := e.Metrics(); m.Finished["failed"] != 3 || m.Waiting != 0 || m.Running != 0 {
		t.Errorf("counts %+v", m)
	}
}

// A step that does not end loses the device, and its requests end at once; if it
// ends later, nothing comes of it.
func TestHungStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steppers, all := copies(2, 1, nil)
		hangs := make(chan struct{})
		all[1].Gate = hangs
		e := engine.New(engine.Config{StepLimit: time.Minute}, steppers...)
		for range 3 { // idle times and steps that end are no reason
			if _, err := read(t.Context(), submit(t, e, "before", 3)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		began := time.Now()
		var group sync.WaitGroup
		errs := make([]error, 2)
		for i, stream := range []*engine.Stream{submit(t, e, "first", 40), submit(t, e, "second", 40)} {
			group.Go(func() { _, errs[i] = read(t.Context(), stream) })
		}
		group.Wait()
		if errs[0] != nil || !errors.Is(errs[1], engine.ErrStep) {
			t.Errorf("ended with %v", errs)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("after %v", took)
		}
		<-e.Lost()
		close(hangs) // the step ends after all
		if err := e.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if m := e.Metrics(); m.FailedSteps != 1 || m.Finished["failed"] != 1 || m.Finished["length"] != 4 {
			t.Errorf("counts %+v", m)
		}
	})
}

// The drain of several copies lets all finish, and its deadline cuts all.
func TestDrainCopies(t *testing.T) {
	steppers, all := copies(3, 1, nil)
	for _, s := range all {
		s.Gate = make(chan struct{})
	}
	e := engine.New(engine.Config{}, steppers...)
	var streams []*engine.Stream
	for range 4 {
		streams = append(streams, submit(t, e, "x", 30))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("late")
	cancel(late)
	if err := e.Drain(ctx); !errors.Is(err, late) {
		t.Errorf("drained: %v", err)
	}
	for _, s := range all {
		close(s.Gate)
	}
	for i, stream := range streams {
		if _, err := read(t.Context(), stream); !errors.Is(err, engine.ErrDraining) {
			t.Errorf("request %d ended with %v", i, err)
		}
	}
	if err := e.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}
