package embedded

import (
	"errors"
	"io/fs"
	"net/http"
	"time"
)

// serveBlob answers HEAD and GET, the latter with ranges.
func (r *Registry) serveBlob(w http.ResponseWriter, req *http.Request, to target) error {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return notAllowed(w, "GET, HEAD")
	}
	file, err := r.root.Open(to.blobs() + "/" + to.digest.Hex())
	if errors.Is(err, fs.ErrNotExist) {
		return refuse(http.StatusNotFound, "BLOB_UNKNOWN", "no such blob in this repository")
	}
	if err != nil {
		return err
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Docker-Content-Digest", to.digest.String())
	w.Header().Set("ETag", `"`+to.digest.String()+`"`)
	// The digest is the validator; a time would add nothing.
	http.ServeContent(w, req, "", time.Time{}, file)
	return nil
}

// blobSize returns the size of a blob of the repository.
func (r *Registry) blobSize(path string) (size int64, found bool, err error) {
	info, err := r.root.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	return info.Size(), true, nil
}
