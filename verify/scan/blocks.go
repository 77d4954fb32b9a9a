package scan

import (
	"context"
	"errors"
	"hash"
	"io"
)

// blockBytes is what is in memory of one file while it is read: a block is
// hashed and looked into, by one goroutine, while it is in the second-level
// cache.
const blockBytes = 128 << 10

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

// blocks reads to the end of the source and hands what it reads to look, block
// by block.
func (r *hashingReader) blocks(ctx context.Context, block []byte, look func([]byte)) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.fill(block)
		look(block[:n])
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
