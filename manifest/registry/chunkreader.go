package registry

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"

	"slipway/manifest"
	"slipway/manifest/content"
)

// chunkReader reads a source in order, a chunk at a time, and hashes every
// byte once. It holds one chunk, so that a chunk can be sent again.
type chunkReader struct {
	ctx      context.Context // of the one upload that it is made for
	blob     manifest.Descriptor
	source   content.Source
	progress func(blob manifest.Descriptor, sent int64)

	reader io.ReadCloser
	hash   hash.Hash // of the first read bytes
	read   int64
	buffer []byte // the last bytes of these
	agreed bool   // the source ended where it should, with the blob's digest
}

func newChunkReader(ctx context.Context, blob manifest.Descriptor, source content.Source, progress func(manifest.Descriptor, int64)) *chunkReader {
	return &chunkReader{ctx: ctx, blob: blob, source: source, progress: progress}
}

// chunk returns up to size bytes from offset, which is less than the blob's
// size. The last chunk is returned only after the whole source was verified.
func (c *chunkReader) chunk(offset, size int64) ([]byte, error) {
	if start := c.read - int64(len(c.buffer)); offset < start || offset >= c.read {
		if err := c.skipTo(offset); err != nil {
			return nil, err
		}
		if err := c.fill(min(size, c.blob.Size-offset)); err != nil {
			return nil, err
		}
	}
	start := c.read - int64(len(c.buffer))
	chunk := c.buffer[offset-start:]
	if int64(len(chunk)) > size {
		chunk = chunk[:size]
	}
	if offset+int64(len(chunk)) == c.blob.Size {
		return chunk, c.verify()
	}
	return chunk, nil
}

// verify reads and hashes what is left of the source and compares size and
// digest.
func (c *chunkReader) verify() error {
	if c.agreed {
		return nil
	}
	if c.read < c.blob.Size {
		if err := c.skipTo(c.blob.Size); err != nil {
			return err
		}
	}
	if err := c.open(); err != nil {
		return err
	}
	var one [1]byte
	switch n, err := io.ReadFull(c.reader, one[:]); {
	case n > 0:
		return c.wrong(c.blob.Size+1, manifest.Digest{})
	case !errors.Is(err, io.EOF):
		return c.failed(err)
	}
	if got := manifest.FinishHash(c.hash); got != c.blob.Digest {
		return c.wrong(c.blob.Size, got)
	}
	c.agreed = true
	return nil
}

// skipTo hashes up to offset, from the start where the reader is already past.
func (c *chunkReader) skipTo(offset int64) error {
	if offset < c.read {
		c.close()
	}
	if err := c.open(); err != nil {
		return err
	}
	c.buffer = c.buffer[:0]
	const step = 8 << 20 // between two words of progress
	for c.read < offset {
		n, err := io.CopyN(c.hash, c.reader, min(step, offset-c.read))
		c.read += n
		c.progress(c.blob, c.read)
		if err != nil {
			return c.ended(err)
		}
	}
	return nil
}

// fill reads and hashes the next size bytes into the buffer.
func (c *chunkReader) fill(size int64) error {
	if int64(cap(c.buffer)) < size {
		c.buffer = make([]byte, size)
	}
	n, err := io.ReadFull(c.reader, c.buffer[:size])
	c.buffer = c.buffer[:n]
	_, _ = c.hash.Write(c.buffer) // a hash never returns a write error
	c.read += int64(n)
	if err != nil {
		return c.ended(err)
	}
	return nil
}

func (c *chunkReader) open() error {
	if c.reader != nil {
		return nil
	}
	reader, err := c.source(c.ctx, 0)
	if err != nil {
		return c.failed(err)
	}
	c.reader, c.hash, c.read, c.agreed = reader, manifest.NewHash(), 0, false
	return nil
}

// close ends the reading; another call starts from the beginning.
func (c *chunkReader) close() {
	if c.reader != nil {
		_ = c.reader.Close() // the bytes that it gave are hashed; its end adds nothing
	}
	c.reader, c.buffer, c.read = nil, c.buffer[:0], 0
}

func (c *chunkReader) ended(err error) error {
	if errors.Is(err, io.EOF) || err == io.ErrUnexpectedEOF {
		return c.wrong(c.read, manifest.Digest{})
	}
	return c.failed(err)
}

func (c *chunkReader) wrong(size int64, got manifest.Digest) error {
	return permanentError{changed(&content.IntegrityError{Want: c.blob.Digest, Got: got, WantSize: c.blob.Size, GotSize: size})}
}

func (c *chunkReader) failed(err error) error {
	if wrong, ok := errors.AsType[*content.IntegrityError](err); ok {
		return permanentError{changed(wrong)}
	}
	return permanentError{fmt.Errorf("read its source: %w", err)}
}
