package boot

import "sync"

// logBytes is how much of a server's output is kept, from its end.
const logBytes = 16 << 10

// tail keeps the last bytes that were written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	data  []byte
}

func newTail(limit int) *tail { return &tail{limit: limit} }

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if excess := len(t.data) - t.limit; excess > 0 {
		t.data = append(t.data[:0], t.data[excess:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}
