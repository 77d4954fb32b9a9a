package content

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/manifest"
)

func put(t *testing.T, s *Stage, name, data string) {
	t.Helper()
	f, err := s.Create(manifest.File{Path: name, Mode: manifest.ModeExecutable})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestStage(t *testing.T) {
	final := filepath.Join(t.TempDir(), "a[b]*", "out")
	for i, content := range []string{"first", "second"} {
		inventory := listing(t, content)
		s, err := NewStage(final)
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, "deep/er/file", content)
		put(t, s, manifest.InventoryPath, string(inventory))
		if i > 0 {
			if old, err := os.ReadFile(filepath.Join(final, "deep/er/file")); err != nil || string(old) != "first" {
				t.Errorf("the earlier folder changed before the commit: %q %v", old, err)
			}
		}
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
		s.Abort()
		data, err := os.ReadFile(filepath.Join(final, "deep/er/file"))
		if err != nil || string(data) != content {
			t.Errorf("%q %v", data, err)
		}
		info, err := os.Stat(filepath.Join(final, "deep/er/file"))
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("mode %v %v", info.Mode(), err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(final))
	if err != nil || len(entries) != 1 {
		t.Errorf("left beside the folder: %v %v", entries, err)
	}
}

// listing is the inventory of a folder with one file.
func listing(t *testing.T, content string) []byte {
	t.Helper()
	inventory, err := manifest.Inventory{Files: []manifest.File{
		{Path: "deep/er/file", Mode: manifest.ModeFile, Size: int64(len(content)), Digest: manifest.DigestBytes([]byte(content))},
	}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return inventory
}

// What a user put into an output, or edited there, is not to be lost.
func TestStageRefusesTouchedOutputs(t *testing.T) {
	for _, tc := range []struct{ name, file, data, fault string }{
		{"untouched", "", "", ""},
		{"added", "notes.txt", "mine", "notes.txt in it is not of the bundle there"},
		{"edited", "deep/er/file", "longer than before", "deep/er/file in it was changed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			final := filepath.Join(t.TempDir(), "out")
			s, err := NewStage(final)
			if err != nil {
				t.Fatal(err)
			}
			put(t, s, "deep/er/file", "x")
			put(t, s, manifest.InventoryPath, string(listing(t, "x")))
			if err := s.Commit(); err != nil {
				t.Fatal(err)
			}
			if tc.file != "" {
				if err := os.WriteFile(filepath.Join(final, tc.file), []byte(tc.data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			again, err := NewStage(final)
			if err == nil {
				again.Abort()
			}
			if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
				t.Errorf("error %v, want %q", err, tc.fault)
			}
		})
	}
}

func TestStageRefuses(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewStage(foreign); err == nil || manifest.Hint(err) == "" {
		t.Errorf("a folder that slipway did not write was taken: %v", err)
	}
	if err := os.WriteFile(filepath.Join(foreign, manifest.InventoryPath), []byte(`{"files": 7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewStage(foreign); err == nil {
		t.Error("a folder with somebody else's inventory.json was taken")
	}
	if _, err := NewStage(filepath.Join(foreign, "thesis.txt")); err == nil || !strings.Contains(err.Error(), "a file of that name exists") {
		t.Errorf("a file was taken for a folder: %v", err)
	}
}

// A folder that appears under the final name while the stage grows is somebody
// else's: the commit must not touch it.
func TestStageLosesTheRace(t *testing.T) {
	final := filepath.Join(t.TempDir(), "out")
	s, err := NewStage(final)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abort()
	put(t, s, "a", "ours")
	if err := os.MkdirAll(filepath.Join(final, "theirs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(); err == nil {
		t.Error("the commit replaced a folder that slipway did not write")
	}
	if _, err := os.Stat(filepath.Join(final, "theirs")); err != nil {
		t.Error(err)
	}
}

func TestAbandonedStagesAreRemoved(t *testing.T) {
	parent := t.TempDir()
	dead := filepath.Join(parent, ".out.partial-dead")
	other := filepath.Join(parent, ".other.partial-1")
	for _, dir := range []string{dead, other} {
		if err := os.MkdirAll(filepath.Join(dir, "x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	living, err := NewStage(filepath.Join(parent, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer living.Abort()
	put(t, living, "a", "still being written")
	second, err := NewStage(filepath.Join(parent, "out"))
	if err != nil {
		t.Fatal(err)
	}
	second.Abort()
	if _, err := os.Stat(dead); err == nil {
		t.Error("the abandoned stage is still there")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("another output's stage was removed")
	}
	if err := living.Commit(); err != nil {
		t.Errorf("a living stage was removed: %v", err)
	}
}

func TestDigestCache(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "shard")
	if err := os.WriteFile(file, []byte("shard"), 0o600); err != nil {
		t.Fatal(err)
	}
	look := func() os.FileInfo {
		info, err := os.Lstat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	digest := manifest.DigestBytes([]byte("shard"))
	clock := time.Now()
	open := func() *DigestCache {
		c := OpenDigestCache(filepath.Join(dir, "cache", "digests.json"))
		c.now = func() time.Time { return clock }
		return c
	}

	c := open()
	c.Add(look(), look(), clock, digest)
	clock = clock.Add(time.Minute) // hashing took long; the file was young when it began
	if _, known := c.Lookup(look()); known {
		t.Error("a file that was hashed right after it was written was trusted")
	}
	c.Add(look(), look(), clock, digest)
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	if got, known := open().Lookup(look()); !known || got != digest {
		t.Errorf("after saving: %v %v", got, known)
	}

	before := look()
	if err := os.WriteFile(file, []byte("other"), 0o600); err != nil { // same size
		t.Fatal(err)
	}
	c = open()
	c.Add(before, look(), clock, digest)
	if _, known := c.Lookup(look()); known {
		t.Error("a file that changed while it was hashed was remembered")
	}
	stamp := before.ModTime()
	if err := os.Chtimes(file, stamp, stamp); err != nil { // the change time still tells
		t.Fatal(err)
	}
	if _, known := c.Lookup(look()); known {
		t.Error("a changed file with its old modification time was taken for the old one")
	}
	if err := os.WriteFile(filepath.Join(dir, "cache", "digests.json"), []byte("{broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, known := open().Lookup(before); known {
		t.Error("a damaged cache knew something")
	}
	var none *DigestCache
	none.Add(before, before, clock, digest)
	if _, known := none.Lookup(before); known || none.Save() != nil {
		t.Error("a nil cache is not empty")
	}
}

// Young files are looked at again when the cache is saved, and large ones are
// waited for.
func TestDigestCacheWaitsForLargeFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(worthWaiting); err != nil { // sparse
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(file)
	if err != nil {
		t.Fatal(err)
	}
	clock := time.Now()
	var waited time.Duration
	c := OpenDigestCache("")
	c.now = func() time.Time { return clock }
	c.wait = func(d time.Duration) { waited, clock = waited+d, clock.Add(d) }
	c.AddWritten(file, info, manifest.DigestBytes(nil))
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	if _, known := c.Lookup(info); !known || waited <= 0 || waited > settleTime {
		t.Errorf("known %v after waiting %v", known, waited)
	}
}
