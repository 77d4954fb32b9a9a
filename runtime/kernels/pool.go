package kernels

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// Task computes items begin..end-1 of an operation. worker, below
// Pool.Workers, says whose scratch it may use.
type Task func(worker, begin, end int)

// Pool is a fixed set of goroutines that share the items of an operation. An
// operation's result does not depend on how its items are shared.
type Pool struct {
	mu    sync.Mutex // one operation at a time
	wake  []chan struct{}
	done  sync.WaitGroup
	task  Task
	items int
	grain int
	next  atomic.Int64
	fault atomic.Pointer[TaskPanic] // the first of a helper, in this operation
}

// TaskPanic is what Run panics with when a task panicked on another goroutine
// than its caller's: there it would end the process.
type TaskPanic struct {
	Value any
	Place string // function and line that panicked
}

func (p *TaskPanic) Error() string { return fmt.Sprintf("%v at %s", p.Value, p.Place) }

// SharedPool returns the pool of this process: one worker for each processor
// that it may use when it is first asked for.
var SharedPool = sync.OnceValue(func() *Pool { return NewPool(runtime.GOMAXPROCS(0)) })

// NewPool starts a pool of that many workers, of which the caller of Run is
// one.
func NewPool(workers int) *Pool {
	p := &Pool{wake: make([]chan struct{}, max(workers, 1)-1)}
	for i := range p.wake {
		p.wake[i] = make(chan struct{}, 1)
		go p.work(i + 1)
	}
	return p
}

// Close ends the workers. Run must not be called afterwards.
func (p *Pool) Close() {
	for _, wake := range p.wake {
		close(wake)
	}
}

// Workers returns how many workers there are, the caller of Run included.
func (p *Pool) Workers() int { return len(p.wake) + 1 }

func (p *Pool) work(worker int) {
	for range p.wake[worker-1] {
		p.help(worker)
	}
}

// help is take for a helper: a panic is kept for Run's caller.
func (p *Pool) help(worker int) {
	defer p.done.Done()
	defer func() {
		if value := recover(); value != nil {
			p.fault.CompareAndSwap(nil, &TaskPanic{value, panicPlace()})
		}
	}()
	p.take(worker)
}

// panicPlace names the line that panicked, in a deferred call that recovers.
func panicPlace() string {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	raised := false
	for {
		frame, more := frames.Next()
		if raised && !strings.HasPrefix(frame.Function, "runtime.") || !more {
			return fmt.Sprintf("%s line %d", frame.Function, frame.Line)
		}
		raised = raised || frame.Function == "runtime.gopanic"
	}
}

// take computes grains until none is left.
func (p *Pool) take(worker int) {
	for {
		end := int(p.next.Add(int64(p.grain)))
		begin := end - p.grain
		if begin >= p.items {
			return
		}
		p.task(worker, begin, min(end, p.items))
	}
}

// Run calls task until items items are computed and returns then. Grains of
// that many items go to whoever is free; one grain or less is computed by the
// caller. If another goroutine is using the pool, the caller computes alone.
// A task's panic becomes the caller's once nobody computes any more, and the
// pool stays fit for use.
func (p *Pool) Run(items, grain int, task Task) {
	grain = max(grain, 1)
	helpers := min(len(p.wake), (items-1)/grain)
	if helpers <= 0 || !p.mu.TryLock() {
		if items > 0 {
			task(0, 0, items)
		}
		return
	}
	defer p.mu.Unlock()
	p.task, p.items, p.grain = task, items, grain
	p.next.Store(0)
	p.fault.Store(nil)
	p.done.Add(helpers)
	for _, wake := range p.wake[:helpers] {
		wake <- struct{}{}
	}
	defer p.join()
	p.take(0)
}

// join waits for the helpers, also while the caller's own part panics.
func (p *Pool) join() {
	p.done.Wait()
	if fault := p.fault.Load(); fault != nil {
		panic(fault)
	}
}
