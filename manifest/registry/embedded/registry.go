// Package embedded is a registry of the OCI distribution-spec v1.1 in one
// folder. It streams every body, so that memory stays the same whatever a blob
// weighs; it lets a blob or manifest be seen only after its digest agreed; and
// it never touches a file outside its folder.
//
// It serves rehearsals and tests. Blobs belong to the repository that they
// were pushed to; mounts are answered by an upload session, deletion of blobs
// and manifests is not offered.
package embedded

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
)

// Options are what a Registry may be asked for. With a user name it demands
// HTTP basic authentication.
type Options struct {
	Username, Password string
}

// Registry is the HTTP handler. It is safe for concurrent use; one folder
// belongs to one Registry at a time.
type Registry struct {
	root    *os.Root
	options Options

	mutex   sync.Mutex // guards uploads, and the tags files
	uploads map[string]*upload
}

// New opens a registry in dir, which is made where it is missing. What an
// earlier Registry stored there, unfinished uploads included, is served on.
func New(dir string, options Options) (*Registry, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	return &Registry{root: root, options: options, uploads: map[string]*upload{}}, nil
}

// Close releases the folder. Requests that still run fail.
func (r *Registry) Close() error { return r.root.Close() }

// ServeHTTP answers one request of the distribution API.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if err := r.serve(w, req); err != nil {
		writeError(w, err)
	}
}

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) error {
	if !r.authorized(req) {
		w.Header().Set("WWW-Authenticate", `Basic realm="slipway"`)
		return refuse(http.StatusUnauthorized, "UNAUTHORIZED", "authentication is required")
	}
	rest, found := strings.CutPrefix(req.URL.Path, "/v2/")
	switch {
	case !found:
		return refuse(http.StatusNotFound, "UNSUPPORTED", "paths start with /v2/")
	case rest == "":
		w.Header().Set("Content-Type", "application/json")
		_, err := w.Write([]byte("{}"))
		return err
	}
	to, err := parseTarget(rest)
	if err != nil {
		return err
	}
	switch to.kind {
	case targetUploads:
		return r.serveUploads(w, req, to)
	case targetUpload:
		return r.serveUpload(w, req, to)
	case targetBlob:
		return r.serveBlob(w, req, to)
	case targetManifest:
		return r.serveManifest(w, req, to)
	case targetTags:
		return r.serveTags(w, req, to)
	default:
		return r.serveReferrers(w, req, to)
	}
}

// authorized compares hashes, so that the time taken tells nothing about the
// password, its length included.
func (r *Registry) authorized(req *http.Request) bool {
	if r.options.Username == "" {
		return true
	}
	user, password, given := req.BasicAuth()
	got := sha256.Sum256([]byte(user + "\x00" + password))
	want := sha256.Sum256([]byte(r.options.Username + "\x00" + r.options.Password))
	return given && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func notAllowed(w http.ResponseWriter, methods string) error {
	w.Header().Set("Allow", methods)
	return refuse(http.StatusMethodNotAllowed, "UNSUPPORTED", "method is not one of "+methods)
}
