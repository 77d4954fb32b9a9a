package bundle

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"slipway/manifest"
	"slipway/manifest/content"
)

// Open implements content.Reader over the source files.
func (s *Sealed) Open(ctx context.Context, blob manifest.Descriptor, offset int64) (io.ReadCloser, error) {
	open, known := s.blobs[blob.Digest]
	if !known {
		return nil, fmt.Errorf("open blob %s of bundle %s: %w", blob.Digest, s.plan.Name, content.ErrNotFound)
	}
	name := blob.Annotations[manifest.AnnotationFilePath]
	source, err := open(ctx)
	if err != nil {
		return nil, changedSince(name, err)
	}
	if offset == 0 {
		return checkedFile{content.NewCheckedReader(source, blob), source, name}, nil
	}
	if _, err := io.CopyN(io.Discard, source, offset); err != nil {
		_ = source.Close()
		return nil, changedSince(name, err)
	}
	return source, nil
}

// Resolve implements content.Reader: whatever the name, there is one bundle.
func (s *Sealed) Resolve(context.Context, string) (manifest.Descriptor, error) {
	return s.Descriptor, nil
}

var _ content.Reader = (*Sealed)(nil)

// bytesReader reads data and need not be closed.
func bytesReader(data []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(data)) }
