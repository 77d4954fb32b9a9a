package registry

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway/manifest"
	"slipway/manifest/content"
)

// Put pushes a blob, or a manifest by its digest. A blob that the repository
// holds is not sent, and the source is not read then.
func (r *Repository) Put(ctx context.Context, blob manifest.Descriptor, source content.Source) error {
	if err := r.put(ctx, blob, source); err != nil {
		return fmt.Errorf("push %s: %w", named(blob), r.explain(ctx, err))
	}
	return nil
}

func (r *Repository) put(ctx context.Context, blob manifest.Descriptor, source content.Source) error {
	has, err := r.has(ctx, transport.PushScope, blob)
	switch {
	case err != nil:
		return err
	case has:
		r.progress(blob, blob.Size)
		return nil
	case isManifest(blob.MediaType):
		data, err := readSource(ctx, blob, source)
		if err != nil {
			return err
		}
		return r.putManifest(ctx, r.repo.Digest(blob.Digest.String()), blob.MediaType, data)
	case blob.Size > r.largeBlob:
		return r.upload(ctx, blob, source)
	}
	return r.putWhole(ctx, blob, source)
}

// putWhole sends a blob in one request. The body is verified while it streams
// and its last bytes are held back until it agreed.
func (r *Repository) putWhole(ctx context.Context, blob manifest.Descriptor, source content.Source) error {
	return r.retry(ctx, func(ctx context.Context) error {
		options, err := r.remoteOptions(ctx)
		if err != nil {
			return err
		}
		layer := &sourceLayer{ctx: ctx, blob: blob, source: source, progress: r.progress}
		err = remote.WriteLayer(r.repo, layer, options...)
		if failed := layer.failure(); failed != nil {
			return permanentError{failed}
		}
		return err
	})
}

// remoteOptions lets go-containerregistry use the connection and the
// credentials that are there, and leave retrying to this package.
func (r *Repository) remoteOptions(ctx context.Context) ([]remote.Option, error) {
	client, err := r.client(ctx, transport.PushScope)
	if err != nil {
		return nil, err
	}
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithTransport(client.Transport),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
	}, nil
}

// rawManifest is a manifest as go-containerregistry takes it.
type rawManifest struct {
	data      []byte
	mediaType string
}

func (m rawManifest) RawManifest() ([]byte, error)        { return m.data, nil }
func (m rawManifest) MediaType() (types.MediaType, error) { return types.MediaType(m.mediaType), nil }

// putManifest stores a manifest under a digest or tag. For one with a subject,
// go-containerregistry keeps the referrers tag where the registry has no
// referrers endpoint.
func (r *Repository) putManifest(ctx context.Context, ref name.Reference, mediaType string, data []byte) error {
	return r.retry(ctx, func(ctx context.Context) error {
		options, err := r.remoteOptions(ctx)
		if err != nil {
			return err
		}
		return remote.Put(ref, rawManifest{data, mediaType}, options...)
	})
}

// Tag lets a tag stand for a manifest that the repository holds.
func (r *Repository) Tag(ctx context.Context, target manifest.Descriptor, tag string) error {
	if !tagPattern.MatchString(tag) {
		return fmt.Errorf("tag %s: %q does not follow the grammar of tags", named(target), manifest.Clip(tag))
	}
	if !isManifest(target.MediaType) {
		return fmt.Errorf("tag %s: media type %q is not a manifest's", named(target), manifest.Clip(target.MediaType))
	}
	source := func(ctx context.Context, offset int64) (io.ReadCloser, error) { return r.open(ctx, target, offset) }
	var data []byte
	err := r.retry(ctx, func(ctx context.Context) (err error) {
		data, err = readAll(ctx, target, source)
		return err
	})
	if err == nil {
		err = r.putManifest(ctx, r.repo.Tag(tag), target.MediaType, data)
	}
	if err != nil {
		return fmt.Errorf("tag %s as %s: %w", named(target), tag, r.explain(ctx, err))
	}
	return nil
}

func readAll(ctx context.Context, blob manifest.Descriptor, source content.Source) ([]byte, error) {
	reader, err := source(ctx, 0)
	if err != nil {
		return nil, err
	}
	data, err := content.ReadAll(reader, blob, manifest.MaxManifestBytes)
	return data, errors.Join(err, reader.Close())
}

// readSource is readAll for what is being pushed.
func readSource(ctx context.Context, blob manifest.Descriptor, source content.Source) ([]byte, error) {
	data, err := readAll(ctx, blob, source)
	if err != nil {
		if wrong, ok := errors.AsType[*content.IntegrityError](err); ok {
			err = changed(wrong)
		}
		return nil, permanentError{err}
	}
	return data, nil
}

// changed is the error for a source that no longer yields the blob.
func changed(wrong *content.IntegrityError) error {
	return manifest.WithHint(fmt.Errorf("its source changed since build: %w", wrong), "build again")
}

var (
	_ content.Store   = (*Repository)(nil)
	_ v1.Layer        = (*sourceLayer)(nil)
	_ remote.Taggable = rawManifest{}
)
