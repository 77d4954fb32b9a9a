package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"

	"slipway/manifest"
)

// document is what a registry has to know of an image manifest or an index.
type document struct {
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Config       *reference        `json:"config"`
	Layers       []reference       `json:"layers"`
	Manifests    []reference       `json:"manifests"`
	Subject      *reference        `json:"subject"`
	Annotations  map[string]string `json:"annotations"`
}

type reference struct {
	MediaType string          `json:"mediaType"`
	Digest    manifest.Digest `json:"digest"`
	Size      int64           `json:"size"`
}

// parseDocument reads a manifest. Where it names no media type itself, its
// shape decides between the two of image-spec.
func parseDocument(data []byte) (document, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return d, refuse(http.StatusBadRequest, "MANIFEST_INVALID", err.Error())
	}
	if d.Config == nil && d.Manifests == nil {
		return d, refuse(http.StatusBadRequest, "MANIFEST_INVALID", "neither config nor manifests")
	}
	if d.MediaType == "" {
		d.MediaType = manifest.MediaTypeManifest
		if d.Manifests != nil {
			d.MediaType = manifest.MediaTypeIndex
		}
	}
	return d, nil
}

func (r *Registry) serveManifest(w http.ResponseWriter, req *http.Request, to target) error {
	switch req.Method {
	case http.MethodGet, http.MethodHead:
		return r.getManifest(w, req, to)
	case http.MethodPut:
		return r.putManifest(w, req, to)
	}
	return notAllowed(w, "GET, HEAD, PUT")
}

func (r *Registry) getManifest(w http.ResponseWriter, req *http.Request, to target) error {
	digest := to.digest
	if digest.IsZero() {
		tags, err := r.readTags(to)
		if err != nil {
			return err
		}
		digest = tags[to.tag]
	}
	unknown := refuse(http.StatusNotFound, "MANIFEST_UNKNOWN", "no such manifest in this repository")
	if digest.IsZero() {
		return unknown
	}
	data, err := r.root.ReadFile(to.manifests() + "/" + digest.Hex())
	if errors.Is(err, fs.ErrNotExist) {
		return unknown
	}
	if err != nil {
		return err
	}
	d, err := parseDocument(data)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", d.MediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("Docker-Content-Digest", digest.String())
	if req.Method == http.MethodGet {
		_, _ = w.Write(data) // a client that went away is told nothing
	}
	return nil
}

// putManifest stores a manifest whose blobs the repository holds, and lets a
// tag stand for it.
func (r *Registry) putManifest(w http.ResponseWriter, req *http.Request, to target) error {
	data, err := io.ReadAll(io.LimitReader(req.Body, manifest.MaxManifestBytes+1))
	if err != nil {
		return refuse(http.StatusBadRequest, "MANIFEST_INVALID", "the body broke off")
	}
	if len(data) > manifest.MaxManifestBytes {
		return refuse(http.StatusRequestEntityTooLarge, "SIZE_INVALID", fmt.Sprintf("manifest is larger than %d bytes", manifest.MaxManifestBytes))
	}
	digest := manifest.DigestBytes(data)
	if !to.digest.IsZero() && to.digest != digest {
		return refuse(http.StatusBadRequest, "DIGEST_INVALID", fmt.Sprintf("the bytes have digest %s", digest))
	}
	d, err := parseDocument(data)
	if err != nil {
		return err
	}
	if got := req.Header.Get("Content-Type"); got != d.MediaType {
		return refuse(http.StatusBadRequest, "MANIFEST_INVALID", fmt.Sprintf("Content-Type %q is not the manifest's media type %q", got, d.MediaType))
	}
	if err := r.checkReferences(to, d); err != nil {
		return err
	}
	if err := r.writeFile(to.manifests(), digest.Hex(), data); err != nil {
		return err
	}
	if to.tag != "" {
		if err := r.writeTag(to, digest); err != nil {
			return err
		}
	}
	if d.Subject != nil {
		w.Header().Set("OCI-Subject", d.Subject.Digest.String())
	}
	w.Header().Set("Location", to.url("manifests/"+digest.String()))
	w.Header().Set("Docker-Content-Digest", digest.String())
	w.WriteHeader(http.StatusCreated)
	return nil
}

// checkReferences refuses a manifest that names a blob or manifest which the
// repository does not hold in that size. A subject may be missing.
func (r *Registry) checkReferences(to target, d document) error {
	check := func(folder string, refs ...reference) error {
		for _, ref := range refs {
			if ref.Digest.IsZero() {
				return refuse(http.StatusBadRequest, "MANIFEST_INVALID", "a descriptor has no digest")
			}
			size, found, err := r.blobSize(folder + "/" + ref.Digest.Hex())
			switch {
			case err != nil:
				return err
			case !found:
				return refuse(http.StatusBadRequest, "MANIFEST_BLOB_UNKNOWN", ref.Digest.String())
			case size != ref.Size:
				return refuse(http.StatusBadRequest, "SIZE_INVALID", fmt.Sprintf("%s has %d bytes, not %d", ref.Digest, size, ref.Size))
			}
		}
		return nil
	}
	if d.Config != nil {
		if err := check(to.blobs(), *d.Config); err != nil {
			return err
		}
	}
	if err := check(to.blobs(), d.Layers...); err != nil {
		return err
	}
	return check(to.manifests(), d.Manifests...)
}

// writeFile writes a small file whole or not at all.
func (r *Registry) writeFile(folder, name string, data []byte) (err error) {
	if err := r.root.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	temporary := folder + "/_" + newID()
	defer func() {
		if err != nil {
			_ = r.root.Remove(temporary) // the first error is the one to report
		}
	}()
	file, err := r.root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return r.root.Rename(temporary, folder+"/"+name)
}
