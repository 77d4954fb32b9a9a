// Package engine runs many requests through one model: it owns the model from
// one goroutine, gives each request a slot, and builds every step from one
// decoded token of each running sequence and the next chunks of the prompts
// that are still being read (continuous batching).
//
// Promises:
//   - The tokens of a request depend on the request alone: chunks of a prompt
//     start at absolute multiples of the model's prefill length whatever else
//     runs, and everything after the prompt is fed one token a step.
//   - A reader never blocks the engine: what a request produced waits in its
//     stream without bound (the length limit bounds it).
//   - A request whose context ends gives its slot back before the next step.
//   - A step that fails or panics fails the requests in flight, which are told
//     so, and the engine goes on with the next ones.
package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"slipway/runtime/model"
)

// Stepper is the model as the engine needs it. *model.Model is one. It is
// called from one goroutine at a time.
type Stepper interface {
	// Step appends each Work's tokens to its slot and returns one result for
	// each Work whose Sample is set, in order. Results may be overwritten by the
	// next call.
	Step(work []model.Work) ([]model.Result, error)
	// Reset forgets a slot's sequence.
	Reset(slot int)
	Vocabulary() int
	Limits() model.Limits
}

// DefaultQueue is how many requests wait for a slot before Submit refuses more.
// Some hundreds: a batch job's concurrency, yet no more than a client would wait for.
const DefaultQueue = 256

// failuresUntilUnhealthy is how many steps in a row may fail before Healthy
// says so: one may be a request's fault, three are the machine's.
const failuresUntilUnhealthy = 3

// Config is what an engine is made with.
type Config struct {
	EndTokens []int32           // tokens that end an answer
	Queue     int               // requests that may wait for a slot; 0: DefaultQueue
	Log       func(line string) // told of failed steps; nil: nobody
}

// Returned by Submit and by streams.
var (
	ErrQueueFull = errors.New("the queue is full")       // Submit: try again later
	ErrDraining  = errors.New("the server is stopping")  // Submit, or a stream that the drain's deadline cut
	ErrStep      = errors.New("the model's step failed") // a stream: the request was in flight when a step failed
)

// errNotNumbers ends a sequence whose logits hold NaN. The token drawn from
// them would look like an answer.
var errNotNumbers = fmt.Errorf("%w: logits are not numbers", ErrStep)

// Engine batches requests onto one model. Its methods may be called from any
// goroutine.
type Engine struct {
	stepper Stepper
	config  Config
	limits  model.Limits
	metrics metrics
	stopped chan struct{} // closed when the loop has ended

	mutex    sync.Mutex
	wake     *sync.Cond
	queue    []*sequence
	running  int // slots in use, as of the last admission
	draining bool
	aborted  bool
	failures int // steps that failed in a row

	// Owned by the loop.
	slots []*sequence
	first int // the slot whose prompt is next to be read
	work  []model.Work
}

// New starts an engine on a model that nobody else may call from then on.
// Drain ends it.
func New(stepper Stepper, config Config) *Engine {
	if config.Queue == 0 {
		config.Queue = DefaultQueue
	}
	if config.Log == nil {
		config.Log = func(string) {}
	}
	limits := stepper.Limits()
	if limits.Prefill == 0 {
		limits.Prefill = 256
	}
	e := &Engine{
		stepper: stepper, config: config, limits: limits,
		stopped: make(chan struct{}),
		slots:   make([]*sequence, limits.Slots),
		work:    make([]model.Work, 0, limits.Slots),
	}
	e.wake = sync.NewCond(&e.mutex)
	go e.loop()
	return e
}

// Context returns how many tokens a sequence may have, prompt and answer
// together.
func (e *Engine) Context() int { return e.limits.Context }

// Vocabulary returns the number of token ids.
func (e *Engine) Vocabulary() int { return e.stepper.Vocabulary() }

// Submit queues a request and returns the stream of what it produces. The
// request runs until it finishes or ctx ends. Errors: *TooLongError,
// *InvalidError, ErrQueueFull, ErrDraining.
func (e *Engine) Submit(ctx context.Context, request Request) (*Stream, error) {
	if err := request.check(e.limits.Context, e.Vocabulary()); err != nil {
		return nil, err
	}
	s := newSequence(ctx, request, e.limits.Context, e.config.EndTokens)
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.draining {
		return nil, ErrDraining
	}
	if free := len(e.slots) - e.running; len(e.queue) >= e.config.Queue+free {
		e.metrics.refuse()
		return nil, ErrQueueFull
	}
	e.queue = append(e.queue, s)
	e.wake.Signal()
	return s.stream, nil
}

// Healthy returns nil, or why the engine can probably serve nothing: its last
// steps all failed. It goes on trying.
func (e *Engine) Healthy() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.failures >= failuresUntilUnhealthy {
		return fmt.Errorf("the last %d steps failed", e.failures)
	}
	return nil
}

// Drain refuses new requests, lets the accepted ones finish, and ends the
// engine. If ctx ends first, the requests that are left end with ErrDraining
// after the step in progress, and Drain returns ctx's cause without waiting for it.
func (e *Engine) Drain(ctx context.Context) error {
	e.mutex.Lock()
	e.draining = true
	e.wake.Signal()
	e.mutex.Unlock()
	select {
	case <-e.stopped:
		return nil
	case <-ctx.Done():
	}
	e.mutex.Lock()
	e.aborted = true
	e.wake.Signal()
	e.mutex.Unlock()
	return context.Cause(ctx)
}

func (e *Engine) loop() {
	defer close(e.stopped)
	for e.wait() {
		e.turn()
	}
	e.failAll(ErrDraining)
}

// wait returns when there is something to do, or false when the engine is to
// end. On the way it drops what was cancelled and fills free slots, oldest
// request first.
func (e *Engine) wait() bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for {
		if e.aborted {
			return false
		}
		e.drop()
		e.admit()
		if e.running > 0 {
			return true
		}
		if e.draining {
			return false
		}
		e.wake.Wait()
	}
}

// drop ends the sequences whose client has gone away.
func (e *Engine) drop() {
	for slot, s := range e.slots {
		if s != nil && s.context.Err() != nil {
			e.finish(s, context.Cause(s.context))
			e.slots[slot] = nil
		}
	}
	e.queue = slices.DeleteFunc(e.queue, func(s *sequence) bool {
		if s.context.Err() == nil {
			return false
		}
		e.finish(s, context.Cause(s.context))
		return true
	})
}

func (e *Engine) admit() {
	e.running = 0
	for slot := range e.slots {
		if e.slots[slot] == nil && len(e.queue) > 0 {
			e.slots[slot] = e.queue[0]
			e.queue = slices.Delete(e.queue, 0, 1)
			e.slots[slot].fresh = true
		}
		if e.slots[slot] != nil {
			e.running++
		}
	}
}

// turn runs one step and hands out its results.
func (e *Engine) turn() {
	e.plan()
	results, err := e.step()
	e.mutex.Lock()
	if err != nil {
		e.failures++
	} else {
		e.failures = 0
	}
	e.mutex.Unlock()
	if err != nil {
		e.config.Log(fmt.Sprintf("step of %d sequences: %v", len(e.work), err))
		e.failAll(fmt.Errorf("%w: %w", ErrStep, err))
		return
	}
	for _, work := range e.work {
		s := e.slots[work.Slot]
		var result *model.Result
		if work.Sample {
			result, results = &results[0], results[1:]
		}
		switch {
		case result != nil && math.IsNaN(float64(result.Logprob)):
			e.finish(s, errNotNumbers)
			e.slots[work.Slot] = nil
		case s.settle(len(work.Tokens), result):
			e.finish(s, nil)
			e.slots[work.Slot] = nil
		}
	}
}

// step calls the model, and turns a panic or a wrong number of results into an
// error: one bad kernel must not take down the program that others are talking to.
func (e *Engine) step() (results []model.Result, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v (%s)", value, panicPlace())
			e.metrics.failStep()
		}
	}()
	for _, work := range e.work {
		if s := e.slots[work.Slot]; s.fresh {
			e.stepper.Reset(work.Slot)
			s.fresh = false
		}
	}
	start := time.Now()
	results, err = e.stepper.Step(e.work)
	if err == nil && len(results) != sampled(e.work) {
		err = fmt.Errorf("%d results for %d samples", len(results), sampled(e.work))
	}
	if err != nil {
		e.metrics.failStep()
		return nil, err
	}
	e.metrics.step(time.Since(start))
	return results, nil
}

// failAll ends every sequence in a slot, and if the engine is ending the
// queued ones too.
func (e *Engine) failAll(err error) {
	for slot, s := range e.slots {
		if s != nil {
			e.finish(s, err)
			e.slots[slot] = nil
		}
	}
	if !errors.Is(err, ErrDraining) {
		return
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for _, s := range e.queue {
		e.finish(s, err)
	}
	e.queue = nil
}

func (e *Engine) finish(s *sequence, err error) {
	e.metrics.finish(s, err)
	s.stream.finish(s.outcome(), err)
}
