package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"slipway/runtime/model"
)

// lane is one copy of the model, its slots, and the goroutine that steps it.
type lane struct {
	engine  *Engine
	stepper Stepper

	// Guarded by the engine's mutex.
	incoming []*sequence // that no slot has yet
	running  int         // slots in use, as of the last admission
	failures int         // steps that failed in a row
	ended    bool
	began    time.Time // of the step in progress; zero between steps

	watch *time.Timer // ends a step that takes too long; nil: none does

	// Owned by the loop; once the device is lost, by whoever notices.
	slots []*sequence
	first int // the slot whose prompt is next to be read
	work  []model.Work
}

func newLane(e *Engine, stepper Stepper) *lane {
	slots := stepper.Limits().Slots
	l := &lane{engine: e, stepper: stepper, slots: make([]*sequence, slots), work: make([]model.Work, 0, slots)}
	if e.config.StepLimit > 0 {
		l.watch = time.AfterFunc(time.Hour, l.checkStep)
		l.watch.Stop()
	}
	return l
}

// load is how many requests the lane has, as far as is known outside its loop.
func (l *lane) load() int { return l.running + len(l.incoming) }

func (l *lane) failing() bool { return l.failures >= failuresUntilUnhealthy }

func (l *lane) loop() {
	defer l.engine.laneEnded(l)
	for l.wait() {
		if !l.turn() {
			return
		}
	}
}

// wait returns when there is something to do, or false when the loop is to end.
// On the way it drops what was cancelled and fills free slots, oldest request
// first.
func (l *lane) wait() bool {
	e := l.engine
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for {
		if e.aborted || e.loss != nil {
			l.failAll(l.engine.ending())
			return false
		}
		l.admit()
		if l.running > 0 {
			return true
		}
		if e.draining {
			return false
		}
		e.wake.Wait()
	}
}

// admit drops what was cancelled, takes what there is room for, and gives it
// slots.
func (l *lane) admit() {
	e := l.engine
	cancelled := func(s *sequence) bool {
		if s.context.Err() == nil {
			return false
		}
		e.finish(s, context.Cause(s.context))
		return true
	}
	l.running = 0
	for slot, s := range l.slots {
		if s != nil && cancelled(s) {
			l.slots[slot] = nil
		}
		if l.slots[slot] != nil {
			l.running++
		}
	}
	l.incoming = slices.DeleteFunc(l.incoming, cancelled)
	e.queue = slices.DeleteFunc(e.queue, cancelled)
	e.dispatch()
	for slot := range l.slots {
		if l.slots[slot] == nil && len(l.incoming) > 0 {
			l.slots[slot] = l.incoming[0]
			l.incoming = slices.Delete(l.incoming, 0, 1)
			l.slots[slot].fresh = true
			l.running++
		}
	}
}

// turn runs one step and hands out its results. It returns false when the device
// is lost.
func (l *lane) turn() bool {
	l.plan()
	results, err := l.step()
	if !l.settleStep(err) {
		return false
	}
	if err != nil {
		return true
	}
	for _, work := range l.work {
		s := l.slots[work.Slot]
		var result *model.Result
		if work.Sample {
			result, results = &results[0], results[1:]
		}
		switch {
		case result != nil && math.IsNaN(float64(result.Logprob)):
			l.engine.finish(s, errNotNumbers)
			l.slots[work.Slot] = nil
		case s.settle(len(work.Tokens), result):
			l.engine.finish(s, nil)
			l.slots[work.Slot] = nil
		}
	}
	return true
}

// settleStep notes how a step ended. It returns false when the device is lost;
// then nothing is left in the slots.
func (l *lane) settleStep(err error) bool {
	e := l.engine
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if l.began.IsZero() { // it took too long, and its requests have been ended
		return false
	}
	l.began = time.Time{}
	if err != nil {
		l.failures++
		e.config.Log(fmt.Sprintf("step of %d sequences: %v", len(l.work), err))
		if e.config.Lost(err) {
			e.lose(err)
		}
	} else {
		l.failures = 0
	}
	switch {
	case e.loss != nil:
		l.failAll(e.ending())
		return false
	case err != nil:
		l.failSlots(fmt.Errorf("%w: %w", ErrStep, err))
	}
	return true
}

// checkStep ends the engine if the lane's step has taken too long. It may be
// called late, when another step runs.
func (l *lane) checkStep() {
	e := l.engine
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if l.began.IsZero() || time.Since(l.began) < e.config.StepLimit {
		return
	}
	err := fmt.Errorf("a step of %d sequences has not ended after %v", len(l.work), e.config.StepLimit)
	e.config.Log(err.Error())
	e.metrics.failStep()
	e.lose(err)
	l.began = time.Time{}
	l.failAll(e.ending())
}

// begin starts the clock of a step and empties the slots that have a new sequence.
// From then on whoever notices that the step does not end may end its sequences.
func (l *lane) begin() {
	l.engine.mutex.Lock()
	defer l.engine.mutex.Unlock()
	l.began = time.Now()
	if l.watch != nil {
		l.watch.Reset(l.engine.config.StepLimit)
	}
	for _, work := range l.work {
		if s := l.slots[work.Slot]; s.fresh {
			l.stepper.Reset(work.Slot)
			s.fresh = false
		}
	}
}

// step calls the model, and turns a panic or a wrong number of results into an
// error: one bad kernel must not take down the program that others are talking to.
func (l *lane) step() (results []model.Result, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v (%s)", value, panicPlace())
			l.engine.metrics.failStep()
		}
		if l.watch != nil {
			l.watch.Stop()
		}
	}()
	l.begin()
	start := time.Now()
	results, err = l.stepper.Step(l.work)
	if err == nil && len(results) != sampled(l.work) {
		err = fmt.Errorf("%d results for %d samples", len(results), sampled(l.work))
	}
	if err != nil {
		l.engine.metrics.failStep()
		return nil, err
	}
	l.engine.metrics.step(time.Since(start))
	return results, nil
}

// failSlots ends every sequence in a slot.
func (l *lane) failSlots(err error) {
	for slot, s := range l.slots {
		if s != nil {
			l.engine.finish(s, err)
			l.slots[slot] = nil
		}
	}
}

// failAll ends all that the lane has.
func (l *lane) failAll(err error) {
	l.failSlots(err)
	for _, s := range l.incoming {
		l.engine.finish(s, err)
	}
	l.incoming, l.running = nil, 0
}
