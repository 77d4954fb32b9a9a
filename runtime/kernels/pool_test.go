package kernels

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// A task that panics, in a helper's part or in the caller's own, panics in the
// caller of Run, after everybody has ended; the pool goes on.
func TestPoolPanics(t *testing.T) {
	pool := NewPool(3)
	defer pool.Close()
	for _, tc := range []struct {
		name   string
		panics func(worker int) bool
	}{
		{"helper", func(worker int) bool { return worker != 0 }},
		{"caller", func(worker int) bool { return worker == 0 }},
		{"all", func(int) bool { return true }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var running, workers atomic.Int32
			met := make(chan struct{})
			value := catch(func() {
				pool.Run(3, 1, func(worker, _, _ int) {
					running.Add(1)
					defer running.Add(-1)
					if workers.Add(1) == 3 {
						close(met)
					}
					<-met // one item for each worker
					if tc.panics(worker) {
						var none []int
						_ = none[worker]
					}
				})
			})
			if value == nil || !strings.Contains(fmt.Sprint(value), "index out of range [") {
				t.Errorf("panic %v", value)
			}
			if tc.name == "helper" && !strings.Contains(fmt.Sprint(value), "kernels.TestPoolPanics") {
				t.Errorf("panic %v does not say where", value)
			}
			if n := running.Load(); n != 0 {
				t.Errorf("%d tasks were still running", n)
			}
			var items atomic.Int32
			pool.Run(100, 1, func(_, begin, end int) { items.Add(int32(end - begin)) })
			if items.Load() != 100 {
				t.Errorf("%d items of the next operation", items.Load())
			}
		})
	}
}

func catch(act func()) (value any) {
	defer func() { value = recover() }()
	act()
	return nil
}
