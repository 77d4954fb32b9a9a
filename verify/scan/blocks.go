package scan

import (
	"context"
	"errors"
	"hash"
	"io"
)

// What is in memory of one file while it is read. A block is hashed and looked
// into while it is still in the second-level cache.
const (
	blockBytes     = 256 << 10
	blocksInFlight = 6
)

// newBlocks returns a worker's buffers, each made when it is first needed.
func newBlocks() chan []byte {
	free := make(chan []byte, blocksInFlight)
	for range blocksInFlight {
		free <- nil
	}
	return free
}

// hashingReader reads a file once, from start to end.
type hashingReader struct {
	source io.Reader
	hash   hash.Hash // nil where the source proves the digest
	head   []byte
	size   int64
}

func (r *hashingReader) Read(p []byte) (int, error) {
	n, err := r.source.Read(p)
	if r.hash != nil {
		_, _ = r.hash.Write(p[:n]) // a hash never returns a write error
	}
	if missing := HeadBytes - len(r.head); missing > 0 {
		r.head = append(r.head, p[:min(missing, n)]...)
	}
	r.size += int64(n)
	return n, err
}

// blocks reads to the end of the source. It takes buffers from free, which
// always gets them all back, and sends them filled.
func (r *hashingReader) blocks(ctx context.Context, free, full chan []byte) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		block := <-free
		if block == nil {
			block = make([]byte, blockBytes)
		}
		n, err := r.fill(block)
		full <- block[:n]
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// fill reads until block is full or the source ends. Unlike io.ReadFull it
// hands on the source's own error, of which only io.EOF is a good end.
func (r *hashingReader) fill(block []byte) (int, error) {
	n := 0
	for n < len(block) {
		read, err := r.Read(block[n:])
		n += read
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
