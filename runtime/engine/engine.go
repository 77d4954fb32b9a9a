// Package engine runs many requests through a model, or through copies of it on
// several devices: it owns each copy from one goroutine, gives each request a slot
// of the copy that has the most free ones, and builds every step from one decoded
// token of each running sequence and the next chunks of the prompts that are still
// being read (continuous batching). Copies share one queue.
//
// Promises:
//   - The tokens of a request depend on the request alone: chunks of a prompt
//     start at absolute multiples of the model's prefill length whatever else
//     runs, and everything after the prompt is fed one token a step.
//   - A reader never blocks the engine: what a request produced waits in its
//     stream without bound (the length limit bounds it).
//   - A request whose context ends gives its slot back before the next step.
//   - A step that fails or panics fails the requests in flight in its copy, which
//     are told so, and the engine goes on with the next ones. A copy whose steps
//     keep failing gets no request while another works.
//   - A step that loses the device, or does not end, ends the engine: the requests
//     in flight fail at once, new ones are refused, and Lost tells.
package engine

import (
	"context"
	"errors"
	"fmt"
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

	Lost      func(error) bool // says of a step's error that no further step can succeed; nil: of none
	StepLimit time.Duration    // how long a step may take before the device counts as lost; 0: as long as it likes
}

// Returned by Submit and by streams.
var (
	ErrQueueFull = errors.New("the queue is full")       // Submit: try again later
	ErrDraining  = errors.New("the server is stopping")  // Submit, or a stream that the drain's deadline cut
	ErrLost      = errors.New("the device is lost")      // Submit: no step will succeed any more
	ErrStep      = errors.New("the model's step failed") // a stream: the request was in flight when a step failed
)

// errNotNumbers ends a sequence whose logits hold NaN. The token drawn from
// them would look like an answer.
var errNotNumbers = fmt.Errorf("%w: logits are not numbers", ErrStep)

// Engine batches requests onto copies of one model. Its methods may be called
// from any goroutine.
type Engine struct {
	config  Config
	limits  model.Limits
	metrics metrics
	lanes   []*lane
	stopped chan struct{} // closed when all loops have ended
	lost    chan struct{} // closed when a device is lost

	mutex    sync.Mutex
	wake     *sync.Cond
	queue    []*sequence // that no lane has taken
	draining bool
	aborted  bool
	loss     error // why the device counts as lost; nil: it does not
	ended    int   // loops
}

// New starts an engine on copies of a model, at least one and all alike, that
// nobody else may call from then on. Drain ends it.
func New(config Config, steppers ...Stepper) *Engine {
	if config.Queue == 0 {
		config.Queue = DefaultQueue
	}
	if config.Log == nil {
		config.Log = func(string) {}
	}
	if config.Lost == nil {
		config.Lost = func(error) bool { return false }
	}
	limits := steppers[0].Limits()
	if limits.Prefill == 0 {
		limits.Prefill = 256
	}
	e := &Engine{config: config, limits: limits, stopped: make(chan struct{}), lost: make(chan struct{})}
	e.wake = sync.NewCond(&e.mutex)
	for _, stepper := range steppers {
		e.lanes = append(e.lanes, newLane(e, stepper))
	}
	for _, l := range e.lanes {
		go l.loop()
	}
	return e
}

// Context returns how many tokens a sequence may have, prompt and answer
// together.
func (e *Engine) Context() int { return e.limits.Context }

// Vocabulary returns the number of token ids.
func (e *Engine) Vocabulary() int { return e.lanes[0].stepper.Vocabulary() }

// Submit queues a request and returns the stream of what it produces. The
// request runs until it finishes or ctx ends. Errors: *TooLongError,
// *InvalidError, ErrQueueFull, ErrDraining, ErrLost.
func (e *Engine) Submit(ctx context.Context, request Request) (*Stream, error) {
	if err := request.check(e.limits.Context, e.Vocabulary()); err != nil {
		return nil, err
	}
	s := newSequence(ctx, request, e.limits.Context, e.config.EndTokens)
	e.mutex.Lock()
	defer e.mutex.Unlock()
	switch {
	case e.draining:
		return nil, ErrDraining
	case e.loss != nil:
		return nil, ErrLost
	}
	e.dispatch()
	if lane := e.leastLoaded(); lane == nil && len(e.queue) >= e.config.Queue {
		e.metrics.refuse()
		return nil, ErrQueueFull
	}
	e.queue = append(e.queue, s)
	e.dispatch()
	e.wake.Broadcast()
	return s.stream, nil
}

// dispatch gives the queue's oldest requests to lanes that have room.
func (e *Engine) dispatch() {
	for len(e.queue) > 0 {
		l := e.leastLoaded()
		if l == nil {
			return
		}
		l.incoming = append(l.incoming, e.queue[0])
		e.queue = slices.Delete(e.queue, 0, 1)
	}
}

// leastLoaded returns the lane with the fewest requests that has room for one
// more, nil if there is none. Where a lane works, one that keeps failing gets
// nothing: it would be idle always, and draw every request.
func (e *Engine) leastLoaded() *lane {
	someWork := slices.ContainsFunc(e.lanes, func(l *lane) bool { return !l.failing() && !l.ended })
	var best *lane
	for _, l := range e.lanes {
		if l.load() == len(l.slots) || l.ended || someWork && l.failing() {
			continue
		}
		if best == nil || l.load() < best.load() {
			best = l
		}
	}
	return best
}

// Healthy returns nil, or why the engine can probably serve nothing: the device
// is lost, or the last steps of every copy all failed, and it goes on trying.
func (e *Engine) Healthy() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.loss != nil {
		return fmt.Errorf("%w: %w", ErrLost, e.loss)
	}
	failures := e.lanes[0].failures
	for _, l := range e.lanes {
		failures = min(failures, l.failures)
	}
	if failures >= failuresUntilUnhealthy {
		return fmt.Errorf("the last %d steps failed", failures)
	}
	return nil
}

// Lost is closed when a device is lost; Healthy says why. Only another process
// helps.
func (e *Engine) Lost() <-chan struct{} { return e.lost }

// lose ends the engine for a step's sake.
func (e *Engine) lose(err error) {
	if e.loss != nil {
		return
	}
	e.loss = err
	for _, s := range e.queue {
		e.finish(s, e.ending())
	}
	e.queue = nil
	close(e.lost)
	e.wake.Broadcast()
}

// Drain refuses new requests, lets the accepted ones finish, and ends the
// engine. If ctx ends first, the requests that are left end with ErrDraining
// after the step in progress, and Drain returns ctx's cause without waiting for it.
func (e *Engine) Drain(ctx context.Context) error {
	e.mutex.Lock()
	e.draining = true
	e.wake.Broadcast()
	e.mutex.Unlock()
	select {
	case <-e.stopped:
		return nil
	case <-ctx.Done():
	}
	e.mutex.Lock()
	e.aborted = true
	e.wake.Broadcast()
	e.mutex.Unlock()
	return context.Cause(ctx)
}

// ending is what requests are told that the engine's end cuts.
func (e *Engine) ending() error {
	if e.loss != nil {
		return fmt.Errorf("%w: %w", ErrStep, e.loss)
	}
	return ErrDraining
}

// laneEnded is told by a loop that ends. The last one ends the queue.
func (e *Engine) laneEnded(l *lane) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	l.ended = true
	if e.ended++; e.ended < len(e.lanes) {
		return
	}
	for _, s := range e.queue {
		e.finish(s, ErrDraining)
	}
	e.queue = nil
	close(e.stopped)
}

func (e *Engine) finish(s *sequence, err error) {
	e.metrics.finish(s, err)
	s.stream.finish(s.outcome(), err)
}
