package engine

import (
	"sync"
	"time"
)

// StepBounds are the upper bounds of the step histogram's buckets, in seconds:
// a GPU's decode step to a CPU's long prefill. What is longer counts only in the total.
var StepBounds = [...]float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10}

// Metrics are counts since the engine started, and how it stands now, of all
// copies together.
type Metrics struct {
	Finished        map[string]int64 // requests by end: stop, length, cancelled, failed, refused
	PromptTokens    int64            // read for them
	GeneratedTokens int64            // generated for them
	Steps           int64
	FailedSteps     int64
	StepSeconds     float64
	StepBuckets     [len(StepBounds)]int64 // steps of at most StepBounds[i]
	Waiting         int
	Running         int
	Slots           int
}

type metrics struct {
	mutex  sync.Mutex
	counts Metrics
}

// Metrics returns a copy of the counts.
func (e *Engine) Metrics() Metrics {
	e.metrics.mutex.Lock()
	copied := e.metrics.counts
	copied.Finished = make(map[string]int64, len(e.metrics.counts.Finished))
	for end, count := range e.metrics.counts.Finished {
		copied.Finished[end] = count
	}
	e.metrics.mutex.Unlock()
	e.mutex.Lock()
	defer e.mutex.Unlock()
	copied.Waiting = len(e.queue)
	for _, l := range e.lanes {
		copied.Running += l.load()
		copied.Slots += len(l.slots)
	}
	return copied
}

func (m *metrics) end(end string, read, generated int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.counts.Finished == nil {
		m.counts.Finished = map[string]int64{}
	}
	m.counts.Finished[end]++
	m.counts.PromptTokens += int64(read)
	m.counts.GeneratedTokens += int64(generated)
}

func (m *metrics) refuse() { m.end("refused", 0, 0) }

func (m *metrics) finish(s *sequence, err error) {
	end := s.reason
	switch {
	case err != nil && s.context.Err() != nil:
		end = "cancelled"
	case err != nil:
		end = "failed"
	}
	m.end(end, s.read, len(s.tokens))
}

func (m *metrics) failStep() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.counts.FailedSteps++
}

func (m *metrics) step(took time.Duration) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.counts.Steps++
	m.counts.StepSeconds += took.Seconds()
	for i, bound := range StepBounds {
		if took.Seconds() <= bound {
			m.counts.StepBuckets[i]++
		}
	}
}
