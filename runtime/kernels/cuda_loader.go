//go:build cuda

package kernels

import (
	"errors"
	"sync"

	"slipway/runtime/gpu"
)

// loader fills device memory from files while the program is still being bound:
// readers take pieces in order, read each into pinned memory, and have it copied
// while they read the next.
type loader struct {
	device *gpu.Device
	stream *gpu.Stream
	group  sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	pieces  []piece
	added   int
	closed  bool
	err     error // of the first piece that has one, or of the device
	errOf   int   // that piece's number
}

// piece is bytes of a file and where they go.
type piece struct {
	number int
	at     gpu.Pointer
	read   func(dst []byte, offset int64) error
	offset int64
	bytes  int
}

const (
	readers    = 8
	pieceBytes = 4 << 20 // two for each reader are pinned
)

func newLoader(device *gpu.Device) *loader {
	l := &loader{device: device}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// start needs the device's thread.
func (l *loader) start() (err error) {
	if l.stream, err = l.device.Stream(); err != nil {
		return err
	}
	for range readers {
		l.group.Go(l.work)
	}
	return nil
}

// add has size bytes that read delivers copied to the device.
func (l *loader) add(at gpu.Pointer, size int64, read func(dst []byte, offset int64) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for offset := int64(0); offset < size; offset += pieceBytes {
		l.added++
		l.pieces = append(l.pieces, piece{l.added, at + gpu.Pointer(offset), read, offset, int(min(pieceBytes, size-offset))})
	}
	l.changed.Broadcast()
}

// next waits for a piece; false at the end, or after an error.
func (l *loader) next() (piece, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.pieces) == 0 && !l.closed && l.err == nil {
		l.changed.Wait()
	}
	if len(l.pieces) == 0 || l.err != nil {
		return piece{}, false
	}
	first := l.pieces[0]
	l.pieces = l.pieces[1:]
	return first, true
}

// fail keeps the error of the earliest piece. Pieces are taken in order, so that
// all before it are with some reader, and the same error is told every time.
func (l *loader) fail(number int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil || number < l.errOf {
		l.err, l.errOf = err, number
	}
	l.changed.Broadcast()
}

// slot is pinned memory and the end of the last copy out of it.
type slot struct {
	memory *gpu.Pinned
	copied *gpu.Event
}

func (l *loader) work() {
	var slots [2]slot
	defer l.release(&slots)
	for turn := 0; ; turn = 1 - turn {
		p, ok := l.next()
		if !ok {
			return
		}
		s := &slots[turn]
		if err := l.device.Do(func() error { return l.ready(s) }); err != nil {
			l.fail(p.number, err)
			return
		}
		data := s.memory.Bytes()[:p.bytes]
		if err := p.read(data, p.offset); err != nil {
			l.fail(p.number, &StoredError{err})
			return
		}
		err := l.device.Do(func() error {
			if err := l.stream.ToDevice(p.at, data); err != nil {
				return err
			}
			return l.stream.RecordIn(s.copied)
		})
		if err != nil {
			l.fail(p.number, err)
			return
		}
	}
}

// ready waits until a slot may be written; a new one is allocated.
func (l *loader) ready(s *slot) (err error) {
	if s.memory != nil {
		return s.copied.Synchronize()
	}
	if s.copied, err = l.device.Event(); err != nil {
		return err
	}
	s.memory, err = l.device.Pinned(pieceBytes)
	return err
}

func (l *loader) release(slots *[2]slot) {
	err := l.device.Do(func() error {
		all := []error{l.stream.Synchronize()}
		for _, s := range slots {
			if s.copied != nil {
				all = append(all, s.copied.Destroy())
			}
			if s.memory != nil {
				all = append(all, s.memory.Free())
			}
		}
		return errors.Join(all...)
	})
	if err != nil {
		l.fail(l.added, err)
	}
}

// finish waits until everything that was added is on the device. It may be
// called again, and must not be called on the device's thread.
func (l *loader) finish() error {
	if l.stream == nil {
		return l.err
	}
	l.mu.Lock()
	l.closed = true
	l.changed.Broadcast()
	l.mu.Unlock()
	l.group.Wait()
	err := l.device.Do(func() error {
		if err := l.stream.Synchronize(); err != nil {
			return err
		}
		return l.stream.Destroy()
	})
	l.stream = nil
	if l.err == nil {
		l.err = err
	}
	return l.err
}

// stop gives up what was not read yet.
func (l *loader) stop() {
	l.mu.Lock()
	l.pieces = nil
	l.mu.Unlock()
	_ = l.finish() // whoever stops has another error to tell, or none
}
