package content

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"slipway/manifest"
)

// CopyOptions tune Copy; the zero value works.
type CopyOptions struct {
	Workers  int                                         // blobs at a time; 0: DefaultCopyWorkers
	Progress func(blob manifest.Descriptor, bytes int64) // called with bytes moved since the last call, by several goroutines; may be nil
	Skipped  func(blob manifest.Descriptor)              // called for blobs that were there already, by several goroutines; may be nil
	Remedy   string                                      // what to do when the source's bytes are not the ones its manifest names
}

// DefaultCopyWorkers is enough to hide a registry's latency on small layers
// without splitting a home connection too finely on large ones.
const DefaultCopyWorkers = 4

// Copy moves the bundle that fromName stands for into another store: first the
// blobs that are not there, then the manifest, and last the tag, so that an
// interrupted copy is never visible under a name. An empty toName writes no
// tag. It returns the manifest's descriptor.
func Copy(ctx context.Context, from Reader, fromName string, to Store, toName string, options CopyOptions) (manifest.Descriptor, error) {
	view, err := readView(ctx, from, fromName)
	if err != nil {
		return manifest.Descriptor{}, err
	}
	workers := options.Workers
	if workers == 0 {
		workers = DefaultCopyWorkers
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, blob := range distinctBlobs(view.Manifest) {
		group.Go(func() error { return copyBlob(inner, from, to, blob, options) })
	}
	if err := group.Wait(); err != nil {
		return manifest.Descriptor{}, err
	}
	if err := copyBlob(ctx, from, to, view.Descriptor, options); err != nil {
		return manifest.Descriptor{}, err
	}
	if toName == "" {
		return view.Descriptor, nil
	}
	return view.Descriptor, to.Tag(ctx, view.Descriptor, toName)
}

// distinctBlobs lists config and layers once each: two equal files are one blob.
func distinctBlobs(artifact manifest.Artifact) []manifest.Descriptor {
	var blobs []manifest.Descriptor
	seen := map[manifest.Digest]bool{}
	for _, blob := range append([]manifest.Descriptor{artifact.Config}, artifact.Layers...) {
		if !seen[blob.Digest] {
			seen[blob.Digest] = true
			blobs = append(blobs, blob)
		}
	}
	return blobs
}

func copyBlob(ctx context.Context, from Reader, to Store, blob manifest.Descriptor, options CopyOptions) error {
	present, err := to.Has(ctx, blob)
	if err != nil {
		return err
	}
	if present {
		if options.Skipped != nil {
			options.Skipped(blob)
		}
		return nil
	}
	source := func(ctx context.Context, offset int64) (io.ReadCloser, error) {
		open := func(ctx context.Context, at int64) (io.ReadCloser, error) { return from.Open(ctx, blob, at) }
		return newResumingReader(ctx, open, blob, offset, options.Progress)
	}
	if err := to.Put(ctx, blob, source); err != nil {
		var integrity *IntegrityError
		if errors.As(err, &integrity) || errors.Is(err, ErrChanged) {
			err = manifest.WithHint(err, options.Remedy)
		}
		return fmt.Errorf("copy %s: %w", blobName(blob), err)
	}
	return nil
}

// blobName names a blob as a person knows it.
func blobName(blob manifest.Descriptor) string {
	switch {
	case blob.Annotations[manifest.AnnotationFilePath] != "":
		return blob.Annotations[manifest.AnnotationFilePath]
	case blob.MediaType == manifest.MediaTypeManifest:
		return "the manifest"
	case blob.MediaType == manifest.MediaTypeConfig:
		return "the config"
	}
	return blob.Digest.String()
}

// resumeTries is how often in a row a transfer may stop without having moved a
// byte before its error is reported.
const resumeTries = 3

// resumingReader reads a blob and, when the connection breaks, goes on at the
// byte where it broke. Wrong bytes are never retried.
type resumingReader struct {
	ctx      context.Context
	open     Source
	blob     manifest.Descriptor
	offset   int64
	current  io.ReadCloser
	stalled  int
	progress func(manifest.Descriptor, int64)
}

func newResumingReader(ctx context.Context, open Source, blob manifest.Descriptor, offset int64, progress func(manifest.Descriptor, int64)) (*resumingReader, error) {
	r := &resumingReader{ctx: ctx, open: open, blob: blob, offset: offset, progress: progress}
	current, err := open(ctx, offset)
	if err != nil {
		return nil, err
	}
	r.current = current
	return r, nil
}

func (r *resumingReader) Read(p []byte) (int, error) {
	for {
		n, err := r.current.Read(p)
		r.offset += int64(n)
		if n > 0 {
			r.stalled = 0
			if r.progress != nil {
				r.progress(r.blob, int64(n))
			}
		}
		if err == nil || errors.Is(err, io.EOF) || !r.worthRetry(err) {
			return n, err
		}
		if r.offset == r.blob.Size { // it broke behind the last byte
			return n, io.EOF
		}
		if err := r.reopen(err); err != nil {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
	}
}

func (r *resumingReader) worthRetry(err error) bool {
	var integrity *IntegrityError
	return r.ctx.Err() == nil && !errors.As(err, &integrity) && !errors.Is(err, ErrChanged) && r.offset <= r.blob.Size
}

// reopen replaces a broken reader by one that starts where it broke.
func (r *resumingReader) reopen(broken error) error {
	_ = r.current.Close()
	r.current = io.NopCloser(brokenReader{broken})
	for ; r.stalled < resumeTries; r.stalled++ {
		next, err := r.open(r.ctx, r.offset)
		if err == nil {
			r.stalled++ // until a byte arrives
			r.current = next
			return nil
		}
		broken = err
	}
	return fmt.Errorf("read %s: stopped after %d of %d bytes: %w", r.blob.Digest, r.offset, r.blob.Size, broken)
}

// resumingStore reads blobs from their start through connections that break.
// What was resumed the store below no longer verifies, so it is done here.
type resumingStore struct{ Reader }

func (s resumingStore) Open(ctx context.Context, blob manifest.Descriptor, offset int64) (io.ReadCloser, error) {
	open := func(ctx context.Context, at int64) (io.ReadCloser, error) { return s.Reader.Open(ctx, blob, at) }
	resuming, err := newResumingReader(ctx, open, blob, offset, nil)
	if err != nil || offset > 0 {
		return resuming, err
	}
	return struct {
		io.Reader
		io.Closer
	}{NewCheckedReader(resuming, blob), resuming}, nil
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

func (r *resumingReader) Close() error { return r.current.Close() }
