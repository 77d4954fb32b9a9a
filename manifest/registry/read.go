package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"slipway/manifest"
	"slipway/manifest/content"
)

// The manifest types of image-spec and of docker, which registries keep apart
// from blobs.
var manifestTypes = []string{
	manifest.MediaTypeManifest,
	manifest.MediaTypeIndex,
	"application/vnd.docker.distribution.manifest.v2+json",
	"application/vnd.docker.distribution.manifest.list.v2+json",
}

func isManifest(mediaType string) bool {
	for _, known := range manifestTypes {
		if mediaType == known {
			return true
		}
	}
	return false
}

// path returns where a registry keeps a blob.
func path(blob manifest.Descriptor) string {
	if isManifest(blob.MediaType) {
		return "manifests/" + blob.Digest.String()
	}
	return "blobs/" + blob.Digest.String()
}

// accept returns the header that asks for a manifest as it is. Blobs have no
// type of their own in a registry, so nothing is asked for them.
func accept(blob manifest.Descriptor) http.Header {
	if isManifest(blob.MediaType) {
		return http.Header{"Accept": {blob.MediaType}}
	}
	return http.Header{}
}

// Has asks the registry with a HEAD request. An answer of another digest or
// size than the blob's is an error.
func (r *Repository) Has(ctx context.Context, blob manifest.Descriptor) (bool, error) {
	has, err := r.has(ctx, transport.PullScope, blob)
	if denied(err) {
		// Registries answer so for a repository that a first push would make.
		if again, retryErr := r.has(ctx, transport.PushScope, blob); retryErr == nil {
			has, err = again, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("look up %s in %s/%s: %w", named(blob), r.ref.Host, r.ref.Repository, r.explain(ctx, err))
	}
	return has, nil
}

func denied(err error) bool {
	status := statusOf(err)
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

func (r *Repository) has(ctx context.Context, action string, blob manifest.Descriptor) (has bool, err error) {
	err = r.retry(ctx, func(ctx context.Context) error {
		resp, err := r.send(ctx, call{action: action, method: http.MethodHead, url: r.url(path(blob)), header: accept(blob)})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if has = resp.StatusCode != http.StatusNotFound; !has {
			return nil
		}
		if err := checkStatus(resp, http.StatusOK); err != nil {
			return err
		}
		return checkAnswer(resp, blob)
	})
	return has && err == nil, err
}

// checkAnswer compares what the headers say of a blob with the descriptor.
func checkAnswer(resp *http.Response, blob manifest.Descriptor) error {
	if err := checkDigestHeader(resp, blob.Digest); err != nil {
		return err
	}
	if resp.ContentLength >= 0 && resp.ContentLength != blob.Size {
		return &content.IntegrityError{Want: blob.Digest, WantSize: blob.Size, GotSize: resp.ContentLength}
	}
	return nil
}

func checkDigestHeader(resp *http.Response, want manifest.Digest) error {
	if header := resp.Header.Get("Docker-Content-Digest"); header != "" && header != want.String() {
		return permanentError{fmt.Errorf("the registry says digest %s", manifest.Clip(printable(header)))}
	}
	return nil
}

// Open reads a blob, with a Range request where offset is not 0. A registry
// that ignores ranges is warned about, and the bytes before offset are read
// and dropped.
func (r *Repository) Open(ctx context.Context, blob manifest.Descriptor, offset int64) (io.ReadCloser, error) {
	if offset < 0 || offset > blob.Size {
		return nil, fmt.Errorf("open %s: offset %d is outside its %d bytes", named(blob), offset, blob.Size)
	}
	var reader io.ReadCloser
	err := r.retry(ctx, func(ctx context.Context) (err error) {
		reader, err = r.open(ctx, blob, offset)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", named(blob), r.explain(ctx, err))
	}
	return reader, nil
}

func (r *Repository) open(ctx context.Context, blob manifest.Descriptor, offset int64) (io.ReadCloser, error) {
	header := accept(blob)
	ranged := offset > 0 && offset < blob.Size
	if ranged {
		header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := r.send(ctx, call{action: transport.PullScope, method: http.MethodGet, url: r.url(path(blob)), header: header})
	if err != nil {
		return nil, err
	}
	reader, err := r.body(resp, blob, offset, ranged)
	if err != nil {
		_ = resp.Body.Close() // the answer is the error to report
		return nil, err
	}
	return reader, nil
}

// body turns an answer to a GET into the reader that Open promises.
func (r *Repository) body(resp *http.Response, blob manifest.Descriptor, offset int64, ranged bool) (io.ReadCloser, error) {
	if ranged && resp.StatusCode == http.StatusPartialContent {
		if err := checkContentRange(resp.Header.Get("Content-Range"), blob, offset); err != nil {
			return nil, err
		}
		return &rest{resp.Body, blob, offset}, nil
	}
	if err := checkStatus(resp, http.StatusOK); err != nil {
		return nil, err
	}
	if err := checkAnswer(resp, blob); err != nil {
		return nil, err
	}
	if offset == 0 {
		return checkedBody{content.NewCheckedReader(resp.Body, blob), resp.Body}, nil
	}
	if ranged && !isManifest(blob.MediaType) {
		r.warn("%s ignores ranges: reading %s from its start to go on at byte %d", r.ref.Host, named(blob), offset)
	}
	if _, err := io.CopyN(io.Discard, resp.Body, offset); err != nil {
		return nil, err
	}
	return &rest{resp.Body, blob, offset}, nil
}

// checkContentRange refuses a part that is not the one asked for ("bytes
// START-END/SIZE", RFC 9110, 14.4).
func checkContentRange(header string, blob manifest.Descriptor, offset int64) error {
	span, size, _ := strings.Cut(strings.TrimPrefix(header, "bytes "), "/")
	if span == fmt.Sprintf("%d-%d", offset, blob.Size-1) && (size == "*" || size == strconv.FormatInt(blob.Size, 10)) {
		return nil
	}
	return permanentError{fmt.Errorf("the registry sent range %q for bytes %d to %d", manifest.Clip(printable(header)), offset, blob.Size-1)}
}

type checkedBody struct {
	io.Reader
	io.Closer
}

// rest reads a blob from somewhere inside: not verified, but to the last byte
// and no further.
type rest struct {
	io.ReadCloser
	blob manifest.Descriptor
	read int64 // bytes of the blob up to here
}

func (b *rest) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if b.read > b.blob.Size || errors.Is(err, io.EOF) && b.read != b.blob.Size {
		return 0, &content.IntegrityError{Want: b.blob.Digest, WantSize: b.blob.Size, GotSize: b.read}
	}
	return n, err
}

// Resolve reads the manifest that a tag or digest stands for and describes the
// bytes that came. A registry whose own word for the digest differs from them
// is not believed.
func (r *Repository) Resolve(ctx context.Context, name string) (manifest.Descriptor, error) {
	var found manifest.Descriptor
	if _, err := manifest.ParseDigest(name); err != nil && !tagPattern.MatchString(name) {
		return found, fmt.Errorf("resolve %q: not a tag or digest", manifest.Clip(name))
	}
	err := r.retry(ctx, func(ctx context.Context) (err error) {
		found, err = r.resolve(ctx, name)
		return err
	})
	if err != nil {
		err = fmt.Errorf("look for %s in %s/%s: %w", name, r.ref.Host, r.ref.Repository, r.explain(ctx, err))
		if statusOf(err) == http.StatusNotFound {
			err = manifest.WithHint(err, "check name and tag; some registries answer so where a login is missing: slipway login "+r.ref.Host)
		}
		return manifest.Descriptor{}, err
	}
	return found, nil
}

func (r *Repository) resolve(ctx context.Context, name string) (manifest.Descriptor, error) {
	var none manifest.Descriptor
	resp, err := r.send(ctx, call{action: transport.PullScope, method: http.MethodGet, url: r.url("manifests/" + name), header: http.Header{"Accept": manifestTypes}})
	if err != nil {
		return none, err
	}
	defer resp.Body.Close()
	if err := checkStatus(resp, http.StatusOK); err != nil {
		return none, err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, manifest.MaxManifestBytes+1))
	if err != nil {
		return none, err
	}
	if len(data) > manifest.MaxManifestBytes {
		return none, permanentError{fmt.Errorf("manifest is larger than %d bytes", manifest.MaxManifestBytes)}
	}
	mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return none, permanentError{errors.New("the registry does not say the manifest's media type")}
	}
	found := manifest.DescribeBytes(mediaType, data)
	if wanted, err := manifest.ParseDigest(name); err == nil && wanted != found.Digest {
		return none, &content.IntegrityError{Want: wanted, Got: found.Digest, WantSize: found.Size, GotSize: found.Size}
	}
	if err := checkDigestHeader(resp, found.Digest); err != nil {
		return none, fmt.Errorf("the manifest has digest %s: %w", found.Digest, err)
	}
	return found, nil
}
