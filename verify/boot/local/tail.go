package local

import "sync"

// logBytes is how much of a server's output is kept, from its end.
const logBytes = 16 << 10

// Tail keeps the last bytes that were written to it.
type Tail struct {
	mu    sync.Mutex
	limit int
	data  []byte
	total int // bytes written
}

func NewTail() *Tail { return &Tail{limit: logBytes} }

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += len(p)
	t.data = append(t.data, p...)
	if excess := len(t.data) - t.limit; excess > 0 {
		t.data = append(t.data[:0], t.data[excess:]...)
	}
	return len(p), nil
}

func (t *Tail) String() string { return t.Since(0) }

// Written returns how many bytes were written.
func (t *Tail) Written() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// Since returns what is kept of the bytes after the first n.
func (t *Tail) Since(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data[max(0, len(t.data)-max(0, t.total-n)):])
}
