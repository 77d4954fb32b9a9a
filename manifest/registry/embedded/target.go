package embedded

import (
	"net/http"
	"regexp"
	"strings"

	"slipway/manifest"
)

// The grammars of distribution-spec v1.1, "Pulling manifests".
var (
	namePattern = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagPattern  = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
	idPattern   = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

const maxNameLength = 255

type targetKind int

const (
	targetUploads targetKind = iota
	targetUpload
	targetBlob
	targetManifest
	targetTags
	targetReferrers
)

// target is what a path below /v2/ names: a repository, and in it a blob, a
// manifest (by digest, or by tag with a zero digest) or an upload.
type target struct {
	kind   targetKind
	name   string
	digest manifest.Digest
	tag    string
	upload string
}

// parseTarget reads a path from its end, since a repository's name may itself
// contain words such as "blobs".
func parseTarget(path string) (target, error) {
	parts := strings.Split(path, "/")
	last := func(back int) string {
		if back > len(parts) {
			return ""
		}
		return parts[len(parts)-back]
	}
	var to target
	var err error
	used := 2
	switch {
	case last(2) == "tags" && last(1) == "list":
		to.kind = targetTags
	case last(3) == "blobs" && last(2) == "uploads" && last(1) == "":
		to.kind, used = targetUploads, 3
	case last(2) == "blobs" && last(1) == "uploads":
		to.kind = targetUploads
	case last(3) == "blobs" && last(2) == "uploads":
		to.kind, to.upload, used = targetUpload, last(1), 3
		if !idPattern.MatchString(to.upload) {
			return to, refuse(http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "no such upload")
		}
	case last(2) == "blobs":
		to.kind = targetBlob
		to.digest, err = parseDigest(last(1))
	case last(2) == "referrers":
		to.kind = targetReferrers
		to.digest, err = parseDigest(last(1))
	case last(2) == "manifests":
		to.kind = targetManifest
		if strings.Contains(last(1), ":") {
			to.digest, err = parseDigest(last(1))
		} else if to.tag = last(1); !tagPattern.MatchString(to.tag) {
			err = refuse(http.StatusBadRequest, "TAG_INVALID", "tag does not follow the grammar")
		}
	default:
		return to, refuse(http.StatusNotFound, "UNSUPPORTED", "no such endpoint")
	}
	if err != nil {
		return to, err
	}
	to.name = strings.Join(parts[:len(parts)-used], "/")
	if len(to.name) > maxNameLength || !namePattern.MatchString(to.name) {
		return to, refuse(http.StatusBadRequest, "NAME_INVALID", "repository name does not follow the grammar")
	}
	return to, nil
}

func parseDigest(text string) (manifest.Digest, error) {
	digest, err := manifest.ParseDigest(text)
	if err != nil {
		return manifest.Digest{}, refuse(http.StatusBadRequest, "DIGEST_INVALID", err.Error())
	}
	return digest, nil
}

// Files lie below the repository's name in folders that start with an
// underscore, which no component of a name does.
func (t target) blobs() string     { return t.name + "/_blobs" }
func (t target) manifests() string { return t.name + "/_manifests" }
func (t target) uploads() string   { return t.name + "/_uploads" }
func (t target) tags() string      { return t.name + "/_tags.json" }

func (t target) url(rest string) string { return "/v2/" + t.name + "/" + rest }
