package registry

import (
	"context"
	"errors"
	"io"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway/manifest"
	"slipway/manifest/content"
)

// sourceLayer shows a blob to go-containerregistry. It remembers why its body
// failed, since the library and the connection word that in their own ways.
type sourceLayer struct {
	ctx      context.Context // of the one upload that it is made for
	blob     manifest.Descriptor
	source   content.Source
	progress func(blob manifest.Descriptor, sent int64)

	mutex  sync.Mutex
	failed error
}

func (l *sourceLayer) Digest() (v1.Hash, error) { return v1.NewHash(l.blob.Digest.String()) }
func (l *sourceLayer) DiffID() (v1.Hash, error) { return l.Digest() }
func (l *sourceLayer) Size() (int64, error)     { return l.blob.Size, nil }

// MediaType is the body's. The blob's own would only make the library skip
// those types that it takes for undistributable.
func (l *sourceLayer) MediaType() (types.MediaType, error) { return "application/octet-stream", nil }

func (l *sourceLayer) Uncompressed() (io.ReadCloser, error) { return l.Compressed() }

// Compressed opens the blob's bytes as they are.
func (l *sourceLayer) Compressed() (io.ReadCloser, error) {
	source, err := l.source(l.ctx, 0)
	if err != nil {
		l.fail(err)
		return nil, err
	}
	return &verifiedBody{layer: l, source: source, checked: content.NewCheckedReader(source, l.blob)}, nil
}

func (l *sourceLayer) fail(err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.failed == nil {
		l.failed = err
	}
}

func (l *sourceLayer) failure() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.failed
}

// verifiedBody is the body of a request. It gives the blob's last bytes away
// only once the source has ended and size and digest agreed: otherwise a
// registry could hold a complete blob before the fault shows.
type verifiedBody struct {
	layer   *sourceLayer
	source  io.ReadCloser
	checked *content.CheckedReader
	sent    int64

	mutex  sync.Mutex // the connection may close a body while it reads it
	closed bool
}

func (b *verifiedBody) Read(p []byte) (int, error) {
	n, err := b.checked.Read(p)
	for err == nil && b.sent+int64(n) == b.layer.blob.Size {
		var one [1]byte
		_, err = b.checked.Read(one[:])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.report(err)
		return 0, err
	}
	b.sent += int64(n)
	b.layer.progress(b.layer.blob, b.sent)
	return n, err
}

// report tells the layer why the body failed, unless it failed because the
// connection had already closed it.
func (b *verifiedBody) report(err error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.closed {
		return
	}
	if wrong, ok := errors.AsType[*content.IntegrityError](err); ok {
		err = changed(wrong)
	}
	b.layer.fail(err)
}

func (b *verifiedBody) Close() error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.closed = true
	return b.source.Close()
}
