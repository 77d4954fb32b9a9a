package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"slipway/manifest"
)

// readTags returns what each tag of a repository stands for.
func (r *Registry) readTags(to target) (map[string]manifest.Digest, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.loadTags(to)
}

func (r *Registry) loadTags(to target) (map[string]manifest.Digest, error) {
	data, err := r.root.ReadFile(to.tags())
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]manifest.Digest{}, nil
	}
	if err != nil {
		return nil, err
	}
	tags := map[string]manifest.Digest{}
	if err := manifest.DecodeStrict(data, &tags); err != nil {
		return nil, fmt.Errorf("read %s: %w", to.tags(), err)
	}
	return tags, nil
}

// writeTag keeps all tags in one file: on a file system that folds case, tags
// that differ in case only would share a file of their own.
func (r *Registry) writeTag(to target, digest manifest.Digest) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	tags, err := r.loadTags(to)
	if err != nil {
		return err
	}
	tags[to.tag] = digest
	data, err := manifest.EncodeCanonical(tags)
	if err != nil {
		return err
	}
	return r.writeFile(to.name, "_tags.json", data)
}

// serveTags lists tags in byte order, in pages with ?n= and ?last=.
func (r *Registry) serveTags(w http.ResponseWriter, req *http.Request, to target) error {
	if req.Method != http.MethodGet {
		return notAllowed(w, "GET")
	}
	tags, err := r.readTags(to)
	if err != nil {
		return err
	}
	if len(tags) == 0 {
		return refuse(http.StatusNotFound, "NAME_UNKNOWN", "no tag in this repository")
	}
	names := slices.Sorted(maps.Keys(tags))
	query := req.URL.Query()
	if last := query.Get("last"); last != "" {
		names = slices.DeleteFunc(names, func(name string) bool { return name <= last })
	}
	if query.Has("n") {
		n, err := strconv.Atoi(query.Get("n"))
		if err != nil || n < 0 {
			return refuse(http.StatusBadRequest, "UNSUPPORTED", "n is not a number of tags")
		}
		if n < len(names) {
			names = names[:n]
			if n > 0 {
				next := url.Values{"n": {strconv.Itoa(n)}, "last": {names[n-1]}}
				w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, to.url("tags/list"), next.Encode()))
			}
		}
	}
	if names == nil {
		names = []string{}
	}
	return writeJSON(w, "application/json", struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}{to.name, names})
}

// referrer is a descriptor in the answer of the referrers endpoint.
type referrer struct {
	MediaType    string            `json:"mediaType"`
	Digest       manifest.Digest   `json:"digest"`
	Size         int64             `json:"size"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
}

// serveReferrers lists the manifests whose subject is the digest. It reads
// every manifest of the repository, which is fine for the few that one holds.
func (r *Registry) serveReferrers(w http.ResponseWriter, req *http.Request, to target) error {
	if req.Method != http.MethodGet {
		return notAllowed(w, "GET")
	}
	found, err := r.findReferrers(to, req.URL.Query().Get("artifactType"))
	if err != nil {
		return err
	}
	if req.URL.Query().Get("artifactType") != "" {
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	return writeJSON(w, manifest.MediaTypeIndex, struct {
		SchemaVersion int        `json:"schemaVersion"`
		MediaType     string     `json:"mediaType"`
		Manifests     []referrer `json:"manifests"`
	}{2, manifest.MediaTypeIndex, found})
}

func (r *Registry) findReferrers(to target, artifactType string) ([]referrer, error) {
	found := []referrer{}
	entries, err := fs.ReadDir(r.root.FS(), to.manifests())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries { // in byte order
		if strings.HasPrefix(entry.Name(), "_") {
			continue // being written
		}
		data, err := r.root.ReadFile(to.manifests() + "/" + entry.Name())
		if err != nil {
			return nil, err
		}
		d, err := parseDocument(data)
		if err != nil {
			return nil, err
		}
		if d.Subject == nil || d.Subject.Digest != to.digest {
			continue
		}
		kind := d.ArtifactType
		if kind == "" && d.Config != nil {
			kind = d.Config.MediaType
		}
		if artifactType == "" || artifactType == kind {
			found = append(found, referrer{d.MediaType, manifest.DigestBytes(data), int64(len(data)), kind, d.Annotations})
		}
	}
	return found, nil
}

func writeJSON(w http.ResponseWriter, mediaType string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(data) // a client that went away is told nothing
	return nil
}
