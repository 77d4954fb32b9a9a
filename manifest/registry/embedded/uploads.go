package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"slipway/manifest"
)

// upload is a session: a file that grows, and the hash of what it holds.
type upload struct {
	mutex sync.Mutex // held while a request works on the session
	path  string
	size  int64
	hash  hash.Hash // of the file's bytes; nil: not known, the file has to be read
	ended bool
}

// serveUploads starts a session, or takes a whole blob with ?digest=. Mounts
// (?mount=) get a session, as the specification lets a registry answer.
func (r *Registry) serveUploads(w http.ResponseWriter, req *http.Request, to target) error {
	if req.Method != http.MethodPost {
		return notAllowed(w, "POST")
	}
	to.upload = newID()
	if err := r.root.MkdirAll(to.uploads(), 0o755); err != nil {
		return err
	}
	u := &upload{path: to.uploads() + "/" + to.upload, hash: manifest.NewHash()}
	file, err := r.root.OpenFile(u.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	r.mutex.Lock()
	r.uploads[u.path] = u
	r.mutex.Unlock()
	if !req.URL.Query().Has("digest") {
		return writeProgress(w, to, u, http.StatusAccepted)
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if err := r.finish(w, req, to, u); err != nil {
		return errors.Join(err, r.end(u)) // there is no session that the client knows of
	}
	return nil
}

// serveUpload works on a session: GET says how far it is, PATCH appends, PUT
// ends it, DELETE forgets it.
func (r *Registry) serveUpload(w http.ResponseWriter, req *http.Request, to target) error {
	u, err := r.findUpload(to)
	if err != nil {
		return err
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.ended {
		return refuse(http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "no such upload")
	}
	switch req.Method {
	case http.MethodGet:
		return writeProgress(w, to, u, http.StatusNoContent)
	case http.MethodPatch:
		if err := r.appendBody(w, req, to, u); err != nil {
			return err
		}
		return writeProgress(w, to, u, http.StatusAccepted)
	case http.MethodPut:
		return r.finish(w, req, to, u)
	case http.MethodDelete:
		if err := r.end(u); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return notAllowed(w, "GET, PATCH, PUT, DELETE")
}

// findUpload returns a session, also one of an earlier Registry on the folder.
func (r *Registry) findUpload(to target) (*upload, error) {
	path := to.uploads() + "/" + to.upload
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if u, found := r.uploads[path]; found {
		return u, nil
	}
	info, err := r.root.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "no such upload")
	}
	if err != nil {
		return nil, err
	}
	u := &upload{path: path, size: info.Size()}
	r.uploads[path] = u
	return u, nil
}

// appendBody adds a request's body to the session. Bytes of a body that breaks
// off stay, so that the client can go on behind them.
func (r *Registry) appendBody(w http.ResponseWriter, req *http.Request, to target, u *upload) error {
	length, err := chunkLength(req, u.size)
	if err != nil {
		if answer, ok := errors.AsType[refusal](err); ok && answer.status == http.StatusRequestedRangeNotSatisfiable {
			setProgress(w, to, u)
		}
		return err
	}
	body := io.Reader(req.Body)
	if length >= 0 {
		body = io.LimitReader(body, length+1)
	}
	if err := r.ensureHash(u); err != nil {
		return err
	}
	file, err := r.root.OpenFile(u.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	start := u.size
	n, err := copyAt(file, u, body)
	if err == nil && length >= 0 && n != length {
		u.hash, u.size = nil, start
		if err := file.Truncate(start); err != nil {
			return err
		}
		return refuse(http.StatusBadRequest, "SIZE_INVALID", fmt.Sprintf("Content-Range promised %d bytes and %d or more came", length, n))
	}
	return errors.Join(err, file.Close())
}

// copyAt appends body to the file and the session's hash. After an error the
// two may disagree, so the hash is forgotten and the file's size decides.
func copyAt(file *os.File, u *upload, body io.Reader) (int64, error) {
	if _, err := file.Seek(u.size, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.Copy(io.MultiWriter(file, u.hash), body)
	if err == nil {
		u.size += n
		return n, nil
	}
	u.hash = nil
	info, statErr := file.Stat()
	if statErr != nil {
		return n, statErr
	}
	u.size = info.Size()
	if _, ours := errors.AsType[*fs.PathError](err); ours {
		return n, err // the disk is full, say
	}
	return n, refuse(http.StatusBadRequest, "BLOB_UPLOAD_INVALID", "the body broke off")
}

// chunkLength returns the length that Content-Range ("start-end", both
// inclusive) promises, or -1 without the header. A chunk has to start where
// the session ends.
func chunkLength(req *http.Request, size int64) (int64, error) {
	header := req.Header.Get("Content-Range")
	if header == "" {
		return -1, nil
	}
	first, last, _ := strings.Cut(header, "-")
	start, err1 := strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	switch {
	case err1 != nil || err2 != nil || start < 0 || end < start:
		return 0, refuse(http.StatusBadRequest, "BLOB_UPLOAD_INVALID", "Content-Range is not START-END")
	case start != size:
		return 0, refuse(http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID", fmt.Sprintf("chunk starts at %d, the upload is at %d", start, size))
	case req.ContentLength >= 0 && req.ContentLength != end-start+1:
		return 0, refuse(http.StatusBadRequest, "SIZE_INVALID", "Content-Range and Content-Length disagree")
	}
	return end - start + 1, nil
}

// ensureHash reads the file again where the hash of its bytes is not known.
func (r *Registry) ensureHash(u *upload) error {
	if u.hash != nil {
		return nil
	}
	file, err := r.root.Open(u.path)
	if err != nil {
		return err
	}
	defer file.Close()
	h := manifest.NewHash()
	n, err := io.Copy(h, io.LimitReader(file, u.size))
	if err != nil {
		return err
	}
	if n != u.size {
		return fmt.Errorf("upload holds %d bytes, not %d", n, u.size)
	}
	u.hash = h
	return nil
}

// finish appends what PUT brings, compares the digest and lets the blob be
// seen. A digest that differs ends the session.
func (r *Registry) finish(w http.ResponseWriter, req *http.Request, to target, u *upload) error {
	want, err := parseDigest(req.URL.Query().Get("digest"))
	if err != nil {
		return err
	}
	if req.ContentLength != 0 {
		if err := r.appendBody(w, req, to, u); err != nil {
			return err
		}
	}
	if err := r.ensureHash(u); err != nil {
		return err
	}
	if got := manifest.FinishHash(u.hash); got != want {
		return errors.Join(refuse(http.StatusBadRequest, "DIGEST_INVALID", fmt.Sprintf("the bytes have digest %s", got)), r.end(u))
	}
	if err := r.keep(u, to.blobs(), want); err != nil {
		return err
	}
	w.Header().Set("Location", to.url("blobs/"+want.String()))
	w.Header().Set("Docker-Content-Digest", want.String())
	w.WriteHeader(http.StatusCreated)
	return nil
}

// keep gives a finished upload its blob's name. The bytes are on the disk
// before the name is.
func (r *Registry) keep(u *upload, folder string, digest manifest.Digest) error {
	file, err := r.root.OpenFile(u.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := r.root.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := r.root.Rename(u.path, folder+"/"+digest.Hex()); err != nil {
		return err
	}
	r.forget(u)
	return nil
}

// end removes a session and its file.
func (r *Registry) end(u *upload) error {
	r.forget(u)
	if err := r.root.Remove(u.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (r *Registry) forget(u *upload) {
	u.ended = true
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.uploads, u.path)
}

func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

func writeProgress(w http.ResponseWriter, to target, u *upload, status int) error {
	setProgress(w, to, u)
	w.WriteHeader(status)
	return nil
}

// setProgress says where a session goes on. Range names the last byte; an
// empty session says 0-0, as registries do.
func setProgress(w http.ResponseWriter, to target, u *upload) {
	w.Header().Set("Location", to.url("blobs/uploads/"+to.upload))
	w.Header().Set("Docker-Upload-UUID", to.upload)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(u.size-1, 0)))
}
