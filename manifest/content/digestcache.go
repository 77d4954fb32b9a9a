package content

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"slipway/manifest"
)

// settleTime is how long a file must have been left alone before its digest is
// remembered: within it a write may leave the stamp as it was, since file
// systems tick coarsely.
const settleTime = 2 * time.Second

// worthWaiting is how many bytes of young files make waiting settleTime once
// cheaper than hashing them again.
const worthWaiting = 1 << 30

// maxCacheEntries bounds the cache file; the oldest entries go first.
const maxCacheEntries = 50_000

// DigestCache remembers digests of files by their stamps, so that a build in
// which nothing changed reads no weights. Only plan and build trust it; what
// verifies never sees it. All methods work on a nil cache, which knows nothing.
type DigestCache struct {
	path string
	now  func() time.Time
	wait func(time.Duration)

	mu      sync.Mutex
	entries map[Stamp]manifest.Digest
	order   []Stamp
	pending map[string]pendingDigest // files that were written just now, by path
	dirty   bool
}

type pendingDigest struct {
	stamp  Stamp
	digest manifest.Digest
}

type cacheFile struct {
	Schema  int        `json:"schema"`
	Entries []cacheRow `json:"entries"`
}

type cacheRow struct {
	Stamp  [5]int64        `json:"stamp"` // device, inode, size, modified, changed
	Digest manifest.Digest `json:"sha256"`
}

// OpenDigestCache reads the cache file, if there is one. A file that is absent
// or damaged is an empty cache: it costs time and nothing else.
func OpenDigestCache(path string) *DigestCache {
	c := &DigestCache{path: path, now: time.Now, wait: time.Sleep, entries: map[Stamp]manifest.Digest{}, pending: map[string]pendingDigest{}}
	data, err := os.ReadFile(path)
	if err != nil {
		return c
	}
	var in cacheFile
	if manifest.DecodeStrict(data, &in) != nil || in.Schema != 1 {
		return c
	}
	for _, row := range in.Entries {
		c.remember(Stamp{uint64(row.Stamp[0]), uint64(row.Stamp[1]), row.Stamp[2], row.Stamp[3], row.Stamp[4]}, row.Digest)
	}
	c.dirty = false
	return c
}

// Lookup returns the digest of the file that info describes, if it is known
// and was settled when it was hashed.
func (c *DigestCache) Lookup(info fs.FileInfo) (manifest.Digest, bool) {
	if c == nil {
		return manifest.Digest{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	digest, ok := c.entries[StampOf(info)]
	return digest, ok
}

// Add remembers the digest of a file that looked like before when hashing began
// at the time began, and like after when it ended. A file that changed
// meanwhile, or that had been changed less than two seconds before it was
// hashed, is not remembered.
func (c *DigestCache) Add(before, after fs.FileInfo, began time.Time, digest manifest.Digest) {
	if c == nil || StampOf(before) != StampOf(after) || began.Sub(StampOf(after).latest()) < settleTime {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remember(StampOf(after), digest)
}

// AddWritten remembers the digest of a file that this process has just written
// under a name that nobody else knew, once Save finds it untouched for two
// seconds. info is of the open file after the last write to it, and path where
// it will be found.
func (c *DigestCache) AddWritten(path string, info fs.FileInfo, digest manifest.Digest) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[path] = pendingDigest{StampOf(info), digest}
}

// Now is the cache's clock: when a hash that is to be remembered begins.
func (c *DigestCache) Now() time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.now()
}

// age is how long a file has been left alone.
func (c *DigestCache) age(stamp Stamp) time.Duration {
	return c.now().Sub(stamp.latest())
}

// settle remembers the young files that have come of age unchanged. Where they
// are large it waits until they have: at most two seconds, where hashing them
// again would take longer.
func (c *DigestCache) settle() {
	var bytes int64
	var rest time.Duration
	for _, young := range c.pending {
		bytes += young.stamp.Size
		rest = max(rest, settleTime-c.age(young.stamp))
	}
	if bytes >= worthWaiting && rest > 0 {
		c.wait(min(rest, settleTime)) // a clock set back must not hold anybody up
	}
	for path, young := range c.pending {
		info, err := os.Lstat(path)
		if err == nil && StampOf(info) == young.stamp && c.age(young.stamp) >= settleTime {
			c.remember(young.stamp, young.digest)
		}
	}
	clear(c.pending)
}

func (c *DigestCache) remember(stamp Stamp, digest manifest.Digest) {
	if _, known := c.entries[stamp]; !known {
		c.order = append(c.order, stamp)
	}
	c.entries[stamp] = digest
	c.dirty = true
	for len(c.order) > maxCacheEntries {
		delete(c.entries, c.order[0])
		c.order = c.order[1:]
	}
}

// Save writes the cache back when it changed, replacing the file at once.
func (c *DigestCache) Save() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	if !c.dirty || c.path == "" {
		return nil
	}
	out := cacheFile{Schema: 1, Entries: make([]cacheRow, 0, len(c.order))}
	for _, s := range c.order {
		out.Entries = append(out.Entries, cacheRow{[5]int64{int64(s.Device), int64(s.Inode), s.Size, s.Modified, s.Changed}, c.entries[s]})
	}
	data, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("save digest cache: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return fmt.Errorf("save digest cache: %w", err)
	}
	if err := ReplaceFile(c.path, data, 0o600); err != nil {
		return fmt.Errorf("save digest cache: %w", err)
	}
	c.dirty = false
	return nil
}

// ReplaceFile writes data under a temporary name beside path and renames it, so
// that readers see the old or the new content and never a part.
func ReplaceFile(path string, data []byte, mode fs.FileMode) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".partial-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err == nil {
		err = temporary.Chmod(mode)
	}
	if err == nil {
		err = temporary.Sync()
	}
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}
