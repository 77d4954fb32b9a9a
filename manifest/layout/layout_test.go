package layout

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/content/contenttest"
)

func create(t *testing.T) (*Layout, string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "layout")
	l, err := Create(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, folder
}

func TestConformance(t *testing.T) {
	contenttest.Run(t, func(t *testing.T) content.Store {
		l, _ := create(t)
		return l
	})
}

func from(data string) content.Source {
	return func(_ context.Context, offset int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(data[offset:])), nil
	}
}

// A blob that has the right name and size and other bytes is no blob.
func TestDamagedBlobIsReplaced(t *testing.T) {
	l, folder := create(t)
	blob := manifest.DescribeBytes("application/x", []byte("right"))
	if err := l.Put(t.Context(), blob, from("right")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(folder, blobPath(blob.Digest))
	if err := os.WriteFile(name, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	if present, err := l.Has(t.Context(), blob); present || err != nil {
		t.Errorf("a damaged blob counts as present (%v)", err)
	}
	r, err := l.Open(t.Context(), blob, 0)
	if err != nil {
		t.Fatal(err)
	}
	var integrity *content.IntegrityError
	if _, err := io.ReadAll(r); !errors.As(err, &integrity) {
		t.Errorf("reading a damaged blob ended with %v", err)
	}
	_ = r.Close()
	if err := l.Put(t.Context(), blob, from("right")); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != "right" {
		t.Errorf("%q %v", data, err)
	}
}

func TestFailedPutLeavesNothing(t *testing.T) {
	l, folder := create(t)
	blob := manifest.DescribeBytes("application/x", []byte("right"))
	if err := l.Put(t.Context(), blob, from("wrong")); err == nil {
		t.Error("wrong bytes were stored")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Put(ctx, blob, from("right")); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled put ended with %v", err)
	}
	var names []string
	err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		names = append(names, strings.TrimPrefix(path, folder))
		return err
	})
	if err != nil || strings.Join(names, " ") != " /blobs /blobs/sha256 /index.json /oci-layout" {
		t.Errorf("left: %q %v", names, err)
	}
}

func TestCreateRefusesForeignFolders(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(folder, nil); err == nil || manifest.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Errorf("written into a foreign folder: %v %v", entries, err)
	}
}

func TestTags(t *testing.T) {
	l, folder := create(t)
	put := func(data string) manifest.Descriptor {
		d := manifest.DescribeBytes(manifest.MediaTypeManifest, []byte(data))
		if err := l.Put(t.Context(), d, from(data)); err != nil {
			t.Fatal(err)
		}
		return d
	}
	first, second := put("first"), put("second")
	resolves := func(name string, want manifest.Descriptor) {
		t.Helper()
		if got, err := l.Resolve(t.Context(), name); err != nil || got.Digest != want.Digest {
			t.Errorf("%q is %v (%v), want %v", name, got.Digest, err, want.Digest)
		}
	}
	tag := func(d manifest.Descriptor, name string) {
		t.Helper()
		if err := l.Tag(t.Context(), d, name); err != nil {
			t.Fatal(err)
		}
	}
	tag(first, "a")
	resolves("", first) // the only one
	tag(first, "b")
	resolves("", first) // under two names
	tag(second, "a")    // moves
	resolves("a", second)
	resolves("b", first)
	resolves(first.Digest.String(), first)
	if _, err := l.Resolve(t.Context(), ""); err == nil || !strings.Contains(manifest.Hint(err), folder+":TAG") {
		t.Errorf("two bundles and no name: %v, hint %q", err, manifest.Hint(err))
	}
	if _, err := l.Resolve(t.Context(), "c"); !errors.Is(err, content.ErrNotFound) {
		t.Errorf("an unknown tag ended with %v", err)
	}
	if err := l.Tag(t.Context(), manifest.DescribeBytes("m", []byte("absent")), "x"); !errors.Is(err, content.ErrNotFound) {
		t.Errorf("a tag for an absent manifest ended with %v", err)
	}
}

// Entries of other tools stay in the index as they are.
func TestForeignIndexEntriesStay(t *testing.T) {
	l, folder := create(t)
	foreign := `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` +
		manifest.DigestBytes(nil).String() + `","size":0,"platform":{"architecture":"amd64","os":"linux"}}]}`
	if err := os.WriteFile(filepath.Join(folder, "index.json"), []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	d := manifest.DescribeBytes(manifest.MediaTypeManifest, []byte("ours"))
	if err := l.Put(t.Context(), d, from("ours")); err != nil {
		t.Fatal(err)
	}
	if err := l.Tag(t.Context(), d, "ours"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(folder, "index.json"))
	if err != nil || !bytes.Contains(data, []byte(`"platform":{"architecture":"amd64","os":"linux"}`)) {
		t.Errorf("%s %v", data, err)
	}
}

func TestLinkNoticesLaterWrites(t *testing.T) {
	l, _ := create(t)
	folder := t.TempDir()
	name := filepath.Join(folder, "shard")
	if err := os.WriteFile(name, []byte("shard"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	digest, err := l.Link(t.Context(), root, "shard", 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	blob := manifest.Descriptor{MediaType: "x", Digest: digest, Size: 5}
	if present, err := l.Has(t.Context(), blob); !present || err != nil {
		t.Errorf("linked blob: %v %v", present, err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("other"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if present, err := l.Has(t.Context(), blob); present || err != nil {
		t.Errorf("an overwritten link counts as present (%v)", err)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"manifests":[]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var index indexFile
		if manifest.DecodeStrict(in, &index) != nil {
			return
		}
		index.set(manifest.DescribeBytes("m", nil), "tag")
		data, err := index.encode()
		if err != nil {
			t.Fatal(err)
		}
		var again indexFile
		if err := manifest.DecodeStrict(data, &again); err != nil {
			t.Fatalf("own encoding of %q refused: %v", in, err)
		}
		found := 0
		for _, e := range again.Manifests {
			if e.name() == "tag" {
				found++
			}
		}
		if found != 1 {
			t.Fatalf("%d entries have the tag after setting it once: %s", found, data)
		}
	})
}

// Bad input leaves no layout behind that was not there before; one that holds a
// bundle, or that another writer is busy in, stays.
func TestDiscard(t *testing.T) {
	exists := func(folder string) bool {
		_, err := os.Stat(folder)
		return err == nil
	}
	fresh, folder := create(t)
	blob := manifest.DescribeBytes("application/x", []byte("right"))
	if err := fresh.Put(t.Context(), blob, from("right")); err != nil {
		t.Fatal(err)
	}
	again, err := Create(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Discard(); !exists(folder) {
		t.Fatal("a layout that was there before was removed")
	}
	busy := filepath.Join(folder, partialPrefix+"1")
	if err := os.WriteFile(busy, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if fresh.Discard(); !exists(folder) {
		t.Fatal("a layout that is being written to was removed")
	}
	if err := os.Remove(busy); err != nil {
		t.Fatal(err)
	}
	if fresh.Discard(); exists(folder) {
		t.Error("a fresh layout without a bundle was kept")
	}
	full, folder := create(t)
	d := manifest.DescribeBytes(manifest.MediaTypeManifest, []byte("m"))
	if err := errors.Join(full.Put(t.Context(), d, from("m")), full.Tag(t.Context(), d, "x")); err != nil {
		t.Fatal(err)
	}
	if full.Discard(); !exists(folder) {
		t.Error("a layout with a bundle was removed")
	}
}
