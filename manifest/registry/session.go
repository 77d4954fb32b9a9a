package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"slipway/manifest"
)

// sessionFile records an unfinished upload. Its name is a hash of repository
// and digest, so that each blob of each repository has its own. The zero value
// records nothing.
type sessionFile struct {
	path  string
	entry sessionEntry
}

// sessionEntry is the file's content. Sent is for people who look: how far the
// upload is, the registry is asked.
type sessionEntry struct {
	Schema     int             `json:"schema"`
	Registry   string          `json:"registry"`
	Repository string          `json:"repository"`
	Digest     manifest.Digest `json:"digest"`
	Size       int64           `json:"size"`
	Location   string          `json:"location"`
	Sent       int64           `json:"sent"`
}

func newSessionFile(cacheDir string, ref Reference, blob manifest.Descriptor) sessionFile {
	if cacheDir == "" {
		return sessionFile{}
	}
	key := sha256.Sum256([]byte(ref.Host + "\n" + ref.Repository + "\n" + blob.Digest.String()))
	return sessionFile{
		path:  filepath.Join(cacheDir, "uploads", hex.EncodeToString(key[:])+".json"),
		entry: sessionEntry{Schema: 1, Registry: ref.Host, Repository: ref.Repository, Digest: blob.Digest, Size: blob.Size},
	}
}

// load returns where the upload goes on, or nil: a file that cannot be read or
// is about something else only costs the bytes that it would have saved.
func (s sessionFile) load() *url.URL {
	if s.path == "" {
		return nil
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		return nil
	}
	var found sessionEntry
	if err := manifest.DecodeStrict(data, &found); err != nil {
		return nil
	}
	location, err := url.Parse(found.Location)
	found.Location, found.Sent = "", 0
	if err != nil || !location.IsAbs() || found != s.entry {
		return nil
	}
	return location
}

// save writes the file whole or leaves the one that is there. The location may
// hold a token of the registry, so that only the user may read it.
func (s sessionFile) save(location *url.URL, sent int64) error {
	if s.path == "" {
		return nil
	}
	entry := s.entry
	entry.Location, entry.Sent = location.String(), sent
	data, err := manifest.EncodeCanonical(entry)
	if err != nil {
		return err
	}
	return writePrivate(s.path, data)
}

func (s sessionFile) remove() {
	if s.path != "" {
		_ = os.Remove(s.path) // a file that stays is found stale and ignored
	}
}

// writePrivate writes a file that only its user may read, whole or not at all.
func writePrivate(path string, data []byte) (err error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // the first error is the one to report
		}
	}()
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
