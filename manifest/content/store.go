// Package content moves blobs without ever trusting one that it has not
// hashed: a byte gets its final name, or is handed to a caller as an artifact's,
// only after its digest agreed with the descriptor that asked for it.
package content

import (
	"context"
	"errors"
	"io"

	"slipway/manifest"
)

// ErrNotFound is returned by Open and Resolve when a store has no such blob or
// name.
var ErrNotFound = errors.New("not found")

// Source opens a blob's bytes, starting at an offset. Every call starts a new
// reader, so that an interrupted transfer can go on where it stopped.
type Source func(ctx context.Context, offset int64) (io.ReadCloser, error)

// Reader is the half of a Store that a bundle is read from.
type Reader interface {
	// Open reads the blob from an offset. From offset 0 the reader returns
	// io.EOF only after size and digest agreed; from elsewhere the bytes are
	// unverified and the caller completes a hash of its own.
	// Returns ErrNotFound when the store has no such blob.
	Open(ctx context.Context, blob manifest.Descriptor, offset int64) (io.ReadCloser, error)

	// Resolve returns the descriptor of the manifest that name (a tag or a
	// digest in text form) stands for, or ErrNotFound.
	Resolve(ctx context.Context, name string) (manifest.Descriptor, error)
}

// Store holds blobs by digest and names (tags) for manifests. All
// implementations pass contenttest.
type Store interface {
	Reader

	// Has reports whether the store holds the blob, whole: a store on disk has
	// hashed it, a registry has answered for digest and size.
	Has(ctx context.Context, blob manifest.Descriptor) (bool, error)

	// Put stores the blob. Unless it is there already, it reads the source at
	// least once, verifies size and digest before the blob becomes visible, and
	// leaves nothing behind when it fails. Putting a blob that is there is not
	// an error.
	Put(ctx context.Context, blob manifest.Descriptor, source Source) error

	// Tag lets name stand for a manifest that the store holds.
	Tag(ctx context.Context, manifest manifest.Descriptor, name string) error
}
