package kernels

import (
	"runtime"
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
}

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
		p.take(worker)
		p.done.Done()
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
	p.done.Add(helpers)
	for _, wake := range p.wake[:helpers] {
		wake <- struct{}{}
	}
	p.take(0)
	p.done.Wait()
}
