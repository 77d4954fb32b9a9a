package pack

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sync/errgroup"

	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// Shard is the recipe of one file of the output.
type Shard struct {
	Name      string  // of the file, without folder
	Size      int64   // bytes
	Unchanged *Source // where it is a shard of the checkpoint as it was

	header   []byte
	sections []section
}

// newShard lays sections out one after the other.
func newShard(name string, sections []section, metadata map[string]string) (*Shard, error) {
	tensors := make([]safetensors.Tensor, len(sections))
	for i := range sections {
		tensors[i] = sections[i].tensor
	}
	placed, err := safetensors.Layout(tensors)
	if err != nil {
		return nil, err
	}
	header, err := safetensors.EncodeHeader(tensors, metadata)
	if err != nil {
		return nil, err
	}
	s := &Shard{Name: name, Size: int64(len(header)), header: header, sections: sections}
	for i, t := range placed {
		s.sections[i].tensor = t
		s.Size += t.Bytes()
	}
	return s, nil
}

// Open makes the shard's bytes, from sources below root, as they are read. A
// source that is no longer what it was ends them in an error. Close it.
func (s *Shard) Open(ctx context.Context, root *os.Root) io.ReadCloser {
	if s.Unchanged != nil {
		opened, err := content.OpenRegular(root, s.Unchanged.Path, s.Size)
		if err != nil {
			return failed{err}
		}
		return opened
	}
	reader, writer := io.Pipe()
	go func() {
		files := newSources(root)
		buffered := bufio.NewWriterSize(writer, blockSize)
		err := s.stream(ctx, files, buffered)
		if err == nil {
			err = buffered.Flush()
		}
		writer.CloseWithError(errors.Join(err, files.close()))
	}()
	return reader
}

type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }
func (f failed) Close() error             { return nil }

func (s *Shard) stream(ctx context.Context, files *sources, w io.Writer) error {
	if _, err := w.Write(s.header); err != nil {
		return err
	}
	for i := range s.sections {
		if err := s.sections[i].write(ctx, files, w, func(int64) {}); err != nil {
			return err
		}
	}
	return nil
}

// fill writes the shard into an empty file, several tensors at a time.
func (s *Shard) fill(ctx context.Context, files *sources, target *os.File, options Options) error {
	if err := target.Truncate(s.Size); err != nil {
		return content.WriteFault(err)
	}
	if _, err := target.WriteAt(s.header, 0); err != nil {
		return content.WriteFault(err)
	}
	options.report(int64(len(s.header)))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(options.workers())
	for i := range s.sections {
		section := &s.sections[i]
		group.Go(func() error {
			at := io.NewOffsetWriter(target, int64(len(s.header))+section.tensor.Begin)
			return section.write(inner, files, at, options.report)
		})
	}
	return group.Wait()
}
