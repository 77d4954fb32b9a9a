package boot

import "sync"

// logBytes is how much of a server's output is kept, from its end.
const logBytes = 16 << 10

// tail keeps the last bytes that were written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	data  []byte
	total int // bytes written
}

func newTail(limit int) *tail { return &tail{limit: limit} }

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += len(p)
	t.data = append(t.data, p...)
	if excess := len(t.data) - t.limit; excess > 0 {
		t.data = append(t.data[:0], t.data[excess:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return t.since(0) }

// written returns how many bytes were written.
func (t *tail) written() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// since returns what is kept of the bytes after the first n.
func (t *tail) since(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data[max(0, len(t.data)-max(0, t.total-n)):])
}
