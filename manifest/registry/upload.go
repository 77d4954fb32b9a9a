package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"slipway/manifest"
	"slipway/manifest/content"
)

// uploader sends one large blob in chunks (distribution-spec v1.1, "Pushing a
// blob in chunks"). The session that the registry keeps is recorded, so that
// another process can go on with it.
type uploader struct {
	*Repository
	blob    manifest.Descriptor
	source  *chunkReader
	session sessionFile

	location  *url.URL // of the session; nil: none is open
	offset    int64    // bytes that the registry holds
	chunkSize int64
	least     int64 // the smallest chunk that the registry takes; 0: it did not say
	lost      int   // sessions that the registry did not keep
	whole     bool  // the registry does not do chunks: send the blob in one piece
	done      bool  // the repository holds the blob
}

// upload pushes a large blob. Only tries that bring nothing new count, so a
// poor line may break any number of times as long as the blob grows.
func (r *Repository) upload(ctx context.Context, blob manifest.Descriptor, source content.Source) error {
	u := &uploader{
		Repository: r, blob: blob, chunkSize: r.chunkSize,
		source:  newChunkReader(ctx, blob, source, r.progress),
		session: newSessionFile(r.options.CacheDir, r.ref, blob),
	}
	defer u.source.close()
	if err := u.resume(ctx); err != nil {
		return err
	}
	furthest := u.offset
	for attempt := 1; !u.done; attempt++ {
		noted, note := withRetryAfter(ctx)
		err := u.push(noted)
		if err == nil {
			break
		}
		if u.offset > furthest {
			furthest, attempt = u.offset, 1
		}
		asked := time.Duration(note.Load())
		if attempt >= maxTries || !isTemporary(ctx, err, asked) && !isRefusal(err) {
			return u.giveUp(ctx, err)
		}
		if err := u.pause(ctx, attempt, asked); err != nil {
			return err
		}
		if err := u.recover(ctx, err); err != nil {
			return err
		}
		if u.whole {
			u.source.close()
			return u.putWhole(ctx, blob, source)
		}
	}
	u.session.remove()
	u.Repository.progress(blob, blob.Size)
	return nil
}

// push opens a session where there is none, sends what the registry lacks, and
// commits.
func (u *uploader) push(ctx context.Context) error {
	if u.location == nil {
		if err := u.begin(ctx); err != nil {
			return err
		}
	}
	for u.offset < u.blob.Size {
		if err := u.sendChunk(ctx); err != nil {
			return err
		}
		u.save()
		u.Repository.progress(u.blob, u.offset)
	}
	return u.commit(ctx)
}

func (u *uploader) begin(ctx context.Context) error {
	resp, err := u.request(ctx, http.MethodPost, u.url("blobs/uploads/"), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := checkStatus(resp, http.StatusAccepted); err != nil {
		if isRefusal(err) {
			return permanentError{err} // it concerns the repository, not how the blob is sent
		}
		return err
	}
	u.offset = 0
	if err := u.follow(resp); err != nil {
		return err
	}
	if least, err := strconv.ParseInt(resp.Header.Get("OCI-Chunk-Min-Length"), 10, 64); err == nil {
		u.least, u.chunkSize = least, max(u.chunkSize, least)
	}
	if u.chunkSize > maxChunkSize {
		return errNoChunks
	}
	u.save()
	return nil
}

// The ways in which a registry turns chunks down without an error status.
var (
	errNoChunks  = errors.New("the registry wants chunks that are too large to hold")
	errChunkLost = errors.New("the registry did not take the whole chunk")
	errEarlyEnd  = errors.New("the registry took a chunk for the whole blob")
)

// isRefusal reports whether the registry answered, and did not like the chunk
// or the session. Its status then says how to go on.
func isRefusal(err error) bool {
	if errors.Is(err, errNoChunks) || errors.Is(err, errChunkLost) || errors.Is(err, errEarlyEnd) {
		return true
	}
	if _, permanent := errors.AsType[permanentError](err); permanent {
		return false
	}
	status := statusOf(err)
	return status >= 400 && status < 500 && !denied(err) && !isTemporaryStatus(status)
}

func (u *uploader) sendChunk(ctx context.Context) error {
	chunk, err := u.source.chunk(u.offset, u.chunkSize)
	if err != nil {
		return err
	}
	end := u.offset + int64(len(chunk))
	header := http.Header{
		"Content-Type":  {"application/octet-stream"},
		"Content-Range": {fmt.Sprintf("%d-%d", u.offset, end-1)},
	}
	body := &loan{data: chunk}
	resp, err := u.request(ctx, http.MethodPatch, u.location.String(), header, body)
	body.end()
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusCreated && end < u.blob.Size {
		return errEarlyEnd
	}
	if err := checkStatus(resp, http.StatusAccepted, http.StatusNoContent, http.StatusCreated); err != nil {
		return err
	}
	// Registries differ on whether Range counts the blob or the chunk, and on
	// whether its end is the last byte or the one behind it.
	held, said := rangeEnd(resp.Header.Get("Range"))
	if said && held != end && held != end+1 && held != int64(len(chunk)) {
		return errChunkLost
	}
	u.offset = end
	return u.follow(resp)
}

// commit makes a blob of the session, after the source's digest agreed.
func (u *uploader) commit(ctx context.Context) error {
	if err := u.source.verify(); err != nil {
		return err
	}
	address := *u.location
	query := address.Query()
	query.Set("digest", u.blob.Digest.String())
	address.RawQuery = query.Encode()
	resp, err := u.request(ctx, http.MethodPut, address.String(), http.Header{"Content-Type": {"application/octet-stream"}}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := checkStatus(resp, http.StatusCreated, http.StatusNoContent, http.StatusOK); err != nil {
		return err
	}
	if err := checkDigestHeader(resp, u.blob.Digest); err != nil {
		return err
	}
	u.done = true
	return nil
}

// recover asks the registry how far it is after cause, and decides how the
// next try starts: behind what the registry holds, with smaller chunks, from
// the start, or in one piece.
func (u *uploader) recover(ctx context.Context, cause error) error {
	if errors.Is(cause, errNoChunks) {
		u.whole = true
		u.forget()
		return nil
	}
	before, committing := u.offset, u.offset == u.blob.Size
	held, err := u.status(ctx)
	if err != nil && !isRefusal(err) {
		return err
	}
	if live := err == nil && held <= u.blob.Size; live {
		switch {
		case !isRefusal(cause), held != before && !committing:
			u.offset = held
			return nil
		case !committing && u.chunkSize > max(smallChunkSize, u.least) && !errors.Is(cause, errEarlyEnd):
			u.chunkSize = max(smallChunkSize, u.least)
			return nil
		}
	}
	// Whoever ended the session may have committed it.
	if u.done, err = u.has(ctx, transport.PushScope, u.blob); err != nil || u.done {
		return err
	}
	u.lost++
	u.whole = isRefusal(cause) && !committing && (u.lost > 1 || statusOf(cause) != http.StatusNotFound)
	u.forget()
	return nil
}

// status asks how many bytes the session holds.
func (u *uploader) status(ctx context.Context) (held int64, err error) {
	if u.location == nil {
		return 0, &StatusError{Code: http.StatusNotFound}
	}
	err = u.retry(ctx, func(ctx context.Context) error {
		resp, err := u.request(ctx, http.MethodGet, u.location.String(), nil, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if err := checkStatus(resp, http.StatusNoContent, http.StatusOK, http.StatusAccepted); err != nil {
			return err
		}
		held, _ = rangeEnd(resp.Header.Get("Range"))
		return u.follow(resp)
	})
	return held, err
}

// rangeEnd reads "0-LAST" and returns the number of bytes that it stands for.
// "0-0" is what registries say of an empty session.
func rangeEnd(header string) (held int64, said bool) {
	_, last, found := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	end, err := strconv.ParseInt(last, 10, 64)
	if !found || err != nil || end < 0 {
		return 0, false
	}
	if end == 0 {
		return 0, true
	}
	return end + 1, true
}

// resume takes up the session that an earlier push left, if the registry still
// knows it.
func (u *uploader) resume(ctx context.Context) error {
	location := u.session.load()
	if location == nil || u.checkHop(location) != nil {
		return nil
	}
	u.location = location
	held, err := u.status(ctx)
	switch {
	case err != nil && !isRefusal(err):
		return err
	case err != nil || held > u.blob.Size:
		u.forget()
	default:
		u.offset = held
	}
	return nil
}

// giveUp ends a session whose bytes are of no use any more; others stay for
// the next push.
func (u *uploader) giveUp(ctx context.Context, cause error) error {
	if _, ok := errors.AsType[*content.IntegrityError](cause); ok && u.location != nil {
		if resp, err := u.request(ctx, http.MethodDelete, u.location.String(), nil, nil); err == nil {
			_ = resp.Body.Close() // the registry forgets unfinished sessions by itself, too
		}
		u.forget()
	}
	return cause
}

func (u *uploader) forget() {
	u.location, u.offset = nil, 0
	u.session.remove()
}

func (u *uploader) save() {
	if err := u.session.save(u.location, u.offset); err != nil {
		u.warn("cannot record the upload of %s, a push that is cut will start again: %v", named(u.blob), err)
		u.session = sessionFile{}
	}
}

// follow takes the address of the next request from an answer.
func (u *uploader) follow(resp *http.Response) error {
	header := resp.Header.Get("Location")
	if header == "" {
		if u.location == nil {
			return permanentError{errors.New("the registry's answer has no Location")}
		}
		return nil
	}
	next, err := resp.Request.URL.Parse(header)
	if err != nil {
		return permanentError{errors.New("the registry's answer has a malformed Location")}
	}
	if err := u.checkHop(next); err != nil {
		return permanentError{err}
	}
	u.location = next
	return nil
}

func (u *uploader) checkHop(next *url.URL) error {
	registry, err := url.Parse(u.url(""))
	if err != nil {
		return err
	}
	return checkHop(registry, next)
}

func (u *uploader) request(ctx context.Context, method, address string, header http.Header, body *loan) (*http.Response, error) {
	return u.Repository.send(ctx, call{action: transport.PushScope, method: method, url: address, header: header, body: body})
}
