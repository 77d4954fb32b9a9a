package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sync"

	"slipway/manifest"
	"slipway/manifest/content"
)

// place is a range of a shard's bytes.
type place struct {
	source *Source
	offset int64
	bytes  int64
}

// sources are the shards of a checkpoint, opened when they are first read. Its
// methods may be called from many goroutines.
type sources struct {
	root *os.Root
	mu   sync.Mutex
	open map[*Source]steadyFile
}

func newSources(root *os.Root) *sources { return &sources{root: root, open: map[*Source]steadyFile{}} }

// file opens a shard. One that is not the file whose header was read is an error.
func (f *sources) file(s *Source) (steadyFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if file := f.open[s]; file != nil {
		return file, nil
	}
	file, stamp, err := openSteady(f.root, s.Path, s.Header.FileSize)
	if err != nil {
		return nil, err
	}
	if stamp != s.stamp {
		return nil, errors.Join(changed(s), file.Close())
	}
	f.open[s] = file
	return file, nil
}

// unchanged looks again whether a shard is what it was.
func (f *sources) unchanged(s *Source) error {
	file, err := f.file(s)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", s.Path, manifest.Cause(err))
	}
	if content.StampOf(info) != s.stamp {
		return changed(s)
	}
	return nil
}

func changed(s *Source) error {
	return manifest.WithHint(fmt.Errorf("read %s: %w", s.Path, content.ErrChanged), "wait until whatever writes it has finished, then run this again")
}

func (f *sources) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var faults []error
	for _, file := range f.open {
		faults = append(faults, file.Close())
	}
	clear(f.open)
	return errors.Join(faults...)
}

// reader reads a place from start to end.
func (f *sources) reader(p place) (io.Reader, error) {
	file, err := f.file(p.source)
	if err != nil {
		return nil, err
	}
	return &placeReader{io.NewSectionReader(file, p.offset, p.bytes), f, p.source}, nil
}

// placeReader names the file in errors, and ends only where it did not change.
type placeReader struct {
	section *io.SectionReader
	files   *sources
	source  *Source
}

func (r *placeReader) Read(p []byte) (int, error) {
	n, err := r.section.Read(p)
	switch {
	case err == io.EOF:
		if changed := r.files.unchanged(r.source); changed != nil {
			return n, changed
		}
	case err != nil:
		err = fmt.Errorf("read %s: %w", path.Clean(r.source.Path), manifest.Cause(err))
	}
	return n, err
}

// blockSize of reads, in bytes: large enough that system calls do not count,
// small enough for several a core.
const blockSize = 1 << 20

var blocks = sync.Pool{New: func() any { return new([]byte) }}

// eachBlock reads a place in blocks of whole granules.
func (f *sources) eachBlock(ctx context.Context, p place, granule int64, use func([]byte) error) error {
	r, err := f.reader(p)
	if err != nil {
		return err
	}
	size := max(granule, blockSize/granule*granule)
	buffer := blocks.Get().(*[]byte)
	defer blocks.Put(buffer)
	if int64(cap(*buffer)) < size {
		*buffer = make([]byte, size)
	}
	for left := p.bytes; left > 0; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		block := (*buffer)[:min(size, left)]
		if _, err := io.ReadFull(r, block); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return changed(p.source)
			}
			return err
		}
		left -= int64(len(block))
		if err := use(block); err != nil {
			return err
		}
	}
	return f.unchanged(p.source)
}
