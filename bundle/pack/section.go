package pack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// section is the recipe of one tensor of a shard: what to write, made of what.
type section struct {
	tensor safetensors.Tensor // Begin and End are its place in the shard's data
	form   form
	from   place // of what it is made
	scales place // of a dense tensor, beside its codes

	// Of the dense tensor, where form is not copied:
	floats floats
	matrix matrix
	unit   Unit
}

// form says how a section follows from its source.
type form string

const (
	copied form = "copied"
	codes  form = "codes"  // of dense values
	scales form = "scales" // of dense values
	dense  form = "dense"  // values of codes and scales
)

// write writes the section's bytes.
func (s *section) write(ctx context.Context, files *sources, w io.Writer, progress func(int64)) error {
	counted := &countingWriter{w: w, progress: progress}
	var err error
	switch s.form {
	case copied:
		err = s.copy(ctx, files, counted)
	case codes:
		err = s.writeCodes(ctx, files, counted)
	case scales:
		err = s.writeScales(ctx, files, counted)
	case dense:
		buffered := bufio.NewWriterSize(counted, blockSize)
		if err = s.writeDense(ctx, files, buffered); err == nil {
			err = buffered.Flush()
		}
	}
	if err == nil && counted.n != s.tensor.Bytes() {
		err = changed(s.from.source)
	}
	if err != nil {
		return fmt.Errorf("tensor %q: %w", s.tensor.Name, err)
	}
	return nil
}

// countingWriter says what a failed write means, and counts.
type countingWriter struct {
	w        io.Writer
	n        int64
	progress func(int64)
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.progress(int64(n))
	if err != nil {
		err = content.WriteFault(err)
	}
	return n, err
}

func (s *section) copy(ctx context.Context, files *sources, w io.Writer) error {
	return files.eachBlock(ctx, s.from, 1, func(block []byte) error {
		_, err := w.Write(block)
		return err
	})
}

// tracker knows the magnitude of the unit under the cursor.
type tracker struct {
	floats
	granules  int64 // of a unit
	left      int64
	magnitude uint32
}

func (s *section) tracker() tracker {
	return tracker{floats: s.floats, granules: s.unit.size(s.matrix) / s.unit.granule(s.matrix)}
}

// next takes the next granule and reports whether a unit begins with it.
func (t *tracker) next(granule []byte) (begins bool) {
	if begins = t.left == 0; begins {
		t.left, t.magnitude = t.granules, 0
	}
	t.left--
	if t.magnitude == 0 {
		t.magnitude = t.first(granule)
	}
	return begins
}

// writeCodes packs values, and makes sure once more that they are ternary: what
// was looked at may have changed.
func (s *section) writeCodes(ctx context.Context, files *sources, w io.Writer) error {
	t, size := s.tracker(), s.granuleBytes()
	var out []byte
	return files.eachBlock(ctx, s.from, size, func(block []byte) error {
		out = grown(out, int64(len(block))/s.floats.bytes/4)
		for at := int64(0); at < int64(len(block)); at += size {
			granule := block[at : at+size]
			t.next(granule)
			if !t.encode(out[at/t.bytes/4:(at+size)/t.bytes/4], granule, t.magnitude) {
				return changed(s.from.source)
			}
		}
		_, err := w.Write(out)
		return err
	})
}

func (s *section) writeScales(ctx context.Context, files *sources, w io.Writer) error {
	t, size := s.tracker(), s.granuleBytes()
	var out []byte
	begun := false
	err := files.eachBlock(ctx, s.from, size, func(block []byte) error {
		out = out[:0]
		for ; len(block) > 0; block = block[size:] {
			before := t.magnitude
			if t.next(block[:size]) && begun {
				out = t.appendScale(out, before)
			}
			begun = true
		}
		_, err := w.Write(out)
		return err
	})
	if err != nil {
		return err
	}
	_, err = w.Write(t.appendScale(nil, t.magnitude))
	return err
}

// writeDense writes the values of codes and scales.
func (s *section) writeDense(ctx context.Context, files *sources, w io.Writer) error {
	stored, err := files.reader(s.scales)
	if err != nil {
		return err
	}
	each := bufio.NewReaderSize(stored, 1<<16)
	granule := s.unit.granule(s.matrix) / 4 // bytes of codes
	granules := s.unit.size(s.matrix) / s.unit.granule(s.matrix)
	scale := make([]byte, s.floats.bytes)
	left := int64(0)
	var out []byte
	return files.eachBlock(ctx, s.from, granule, func(block []byte) error {
		for ; len(block) > 0; block = block[granule:] {
			if left == 0 {
				if _, err := io.ReadFull(each, scale); err != nil {
					if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
						return changed(s.scales.source)
					}
					return err
				}
				left = granules
			}
			left--
			out = grown(out, 4*granule*s.floats.bytes)
			if !s.floats.decode(out, block[:granule], s.floats.scale(scale)) {
				return fmt.Errorf("%s holds code 3, which ternary weights do not have", s.from.source.Path)
			}
			if _, err := w.Write(out); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *section) granuleBytes() int64 { return s.unit.granule(s.matrix) * s.floats.bytes }

func grown(buffer []byte, size int64) []byte {
	if int64(cap(buffer)) < size {
		return make([]byte, size)
	}
	return buffer[:size]
}
