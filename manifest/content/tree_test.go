package content

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/manifest"
)

// memory is a store for tests, with the contract of Store and nothing else.
type memory struct {
	mu    sync.Mutex
	blobs map[manifest.Digest][]byte
	tags  map[string]manifest.Descriptor
}

func newMemory() *memory {
	return &memory{blobs: map[manifest.Digest][]byte{}, tags: map[string]manifest.Descriptor{}}
}

func (m *memory) Open(_ context.Context, blob manifest.Descriptor, offset int64) (io.ReadCloser, error) {
	m.mu.Lock()
	data, ok := m.blobs[blob.Digest]
	m.mu.Unlock()
	if !ok {
		return nil, ErrNotFound
	}
	if offset > 0 {
		return io.NopCloser(bytes.NewReader(data[offset:])), nil
	}
	return io.NopCloser(NewCheckedReader(bytes.NewReader(data), blob)), nil
}

func (m *memory) Resolve(_ context.Context, name string) (manifest.Descriptor, error) {
	d, ok := m.tags[name]
	if !ok {
		return d, ErrNotFound
	}
	return d, nil
}

func (m *memory) Has(_ context.Context, blob manifest.Descriptor) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.blobs[blob.Digest]
	return ok, nil
}

func (m *memory) Put(ctx context.Context, blob manifest.Descriptor, source Source) error {
	r, err := source(ctx, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	data, err := ReadAll(r, blob, 1<<30)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.blobs[blob.Digest] = data
	}
	return err
}

func (m *memory) Tag(_ context.Context, d manifest.Descriptor, name string) error {
	m.tags[name] = d
	return nil
}

func (m *memory) add(mediaType string, data []byte) manifest.Descriptor {
	d := manifest.DescribeBytes(mediaType, data)
	m.blobs[d.Digest] = data
	return d
}

// artifact stores an artifact with one raw layer and one tar layer under "t".
func (m *memory) artifact(t *testing.T, raw manifest.File, rawData, tarData []byte) manifest.Artifact {
	t.Helper()
	raw.Size, raw.Digest = int64(len(rawData)), manifest.DigestBytes(rawData)
	m.blobs[raw.Digest] = rawData
	layers := []manifest.Descriptor{
		manifest.RawLayer(manifest.KindWeight, raw),
		manifest.TarLayer(manifest.KindCode, manifest.DigestBytes(tarData), int64(len(tarData))),
	}
	m.blobs[layers[1].Digest] = tarData
	config, err := manifest.ModelConfig{ModelFS: manifest.ModelFS{Type: "layers", DiffIDs: []manifest.Digest{layers[0].Digest, layers[1].Digest}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	a := manifest.Artifact{Config: m.add(manifest.MediaTypeConfig, config), Layers: layers}
	data, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	m.tags["t"] = m.add(manifest.MediaTypeManifest, data)
	return a
}

func canonicalTar(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var list []manifest.File
	for name, data := range files {
		list = append(list, manifest.File{Path: name, Mode: manifest.ModeFile, Size: int64(len(data))})
	}
	manifest.SortFiles(list)
	var out bytes.Buffer
	err := WriteTar(&out, list, func(f manifest.File) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(files[f.Path])), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestOpenArtifact(t *testing.T) {
	m := newMemory()
	m.artifact(t, manifest.File{Path: "weights/a.safetensors", Mode: manifest.ModeFile}, []byte("shard"), canonicalTar(t, map[string]string{"serve.sh": "#!/bin/sh\n", "code/é.py": "x = 1\n"}))
	tree, err := OpenArtifact(t.Context(), m, "t", OriginLayout, "shown")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if len(tree.Faults) > 0 {
		t.Errorf("faults in a clean artifact: %v", tree.Faults)
	}
	want := map[string]string{"code/é.py": "x = 1\n", "serve.sh": "#!/bin/sh\n", "weights/a.safetensors": "shard"}
	for _, f := range tree.Files {
		r, err := tree.Open(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil || string(data) != want[f.Path] || f.Digest != manifest.DigestBytes(data) || r.Close() != nil {
			t.Errorf("%s: %q %v", f.Path, data, err)
		}
		delete(want, f.Path)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// Every way in which a tar layer can be more than its files is a fault; the
// clean twin is TestOpenArtifact.
func TestHostileTarLayers(t *testing.T) {
	clean := canonicalTar(t, map[string]string{"a": "1", "b": "2"})
	written := func(headers ...*tar.Header) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for _, h := range headers {
			if h.Typeflag == 0 {
				h.Typeflag = tar.TypeReg
			}
			if h.Mode == 0 {
				h.Mode = 0o644
			}
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	padded := bytes.Clone(clean)
	padded[512+100] = 'x' // between the end of a's one byte and the next header
	for _, tc := range []struct {
		name  string
		data  []byte
		fault string
	}{
		{"symbolic link", written(&tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "not a regular file"},
		{"hard link", written(&tar.Header{Name: "a"}, &tar.Header{Name: "b", Typeflag: tar.TypeLink, Linkname: "a"}), "not a regular file"},
		{"device", written(&tar.Header{Name: "a", Typeflag: tar.TypeChar}), "not a regular file"},
		{"folder", written(&tar.Header{Name: "d/", Typeflag: tar.TypeDir}), "not a regular file"},
		{"set-uid", written(&tar.Header{Name: "a", Mode: 0o4755}), "mode"},
		{"time", written(&tar.Header{Name: "a", ModTime: time.Unix(1, 0)}), "canonical"},
		{"owner", written(&tar.Header{Name: "a", Uid: 1}), "canonical"},
		{"owner name", written(&tar.Header{Name: "a", Uname: "root"}), "canonical"},
		{"PAX record", written(&tar.Header{Name: "a", PAXRecords: map[string]string{"SLIPWAY.x": "hidden"}}), "canonical"},
		{"order", written(&tar.Header{Name: "b"}, &tar.Header{Name: "a"}), "canonical"},
		{"padding", padded, "canonical"},
		{"tail", append(bytes.Clone(clean), make([]byte, 512)...), "canonical"},
		{"hidden tail", append(bytes.Clone(clean), []byte("weights")...), "canonical"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMemory()
			m.artifact(t, manifest.File{Path: "w", Mode: manifest.ModeFile}, []byte("shard"), tc.data)
			tree, err := OpenArtifact(t.Context(), m, "t", OriginLayout, "shown")
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			text := fmt.Sprint(tree.Faults)
			if !strings.Contains(text, tc.fault) {
				t.Errorf("faults %s, want %q", text, tc.fault)
			}
			target := filepath.Join(t.TempDir(), "out")
			if _, err := Unpack(t.Context(), tree, target, nil); err == nil {
				t.Error("it was unpacked all the same")
			}
			assertAbsent(t, target)
		})
	}
}

func assertAbsent(t *testing.T, target string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(target))
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

func TestUnpackRefusesPaths(t *testing.T) {
	for _, tc := range []struct{ name, raw, member, fault string }{
		{"escape in tar", "w", "../evil", "'..'"},
		{"absolute in tar", "w", "/tmp/evil", "absolute"},
		{"escape in annotation", "../../evil", "a", "'..'"},
		{"same path twice", "a", "a", "given twice"},
		{"case twins", "A", "a", "differ only in case"},
		{"normal forms", "\u00e9", "e\u0301", "Unicode form"},
		{"file and folder", "a", "a/b", "needs a folder"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMemory()
			m.artifact(t, manifest.File{Path: tc.raw, Mode: manifest.ModeFile}, []byte("shard"), canonicalTar(t, map[string]string{tc.member: "x"}))
			tree, err := OpenArtifact(t.Context(), m, "t", OriginLayout, "shown")
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			target := filepath.Join(t.TempDir(), "out")
			if _, err := Unpack(t.Context(), tree, target, nil); err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("error %v, want %q", err, tc.fault)
			}
			assertAbsent(t, target)
		})
	}
}

func TestUnpackVerifies(t *testing.T) {
	m := newMemory()
	a := m.artifact(t, manifest.File{Path: "weights/w", Mode: manifest.ModeFile}, []byte("shard"), canonicalTar(t, map[string]string{"serve.sh": "x"}))
	tree, err := OpenArtifact(t.Context(), m, "t", OriginLayout, "shown")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	target := filepath.Join(t.TempDir(), "out")
	set, err := Unpack(t.Context(), tree, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenFolder(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if len(again.Files) != 2 || again.Files[1].Path != "weights/w" || set.IsZero() {
		t.Errorf("unpacked %v", again.Files)
	}
	m.blobs[a.Layers[0].Digest] = []byte("shaRd")
	other := filepath.Join(t.TempDir(), "out")
	var integrity *IntegrityError
	if _, err := Unpack(t.Context(), tree, other, nil); !errors.As(err, &integrity) || !strings.Contains(err.Error(), "weights/w") {
		t.Errorf("error %v, want one that names the shard", err)
	}
	assertAbsent(t, other)
}

func TestOpenFolderFaults(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": "a", "outside": "/etc/passwd", "loop": "loop", "folder": "."} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := OpenFolder(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if len(tree.Files) != 1 || len(tree.Faults) != 4 || !strings.Contains(tree.Faults[0].Detail, "symbolic link") {
		t.Errorf("files %v, faults %v", tree.Files, tree.Faults)
	}
}

func TestFileChangesWhileItIsRead(t *testing.T) {
	root := t.TempDir()
	name := filepath.Join(root, "shard")
	if err := os.WriteFile(name, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	r, err := OpenRegular(opened, "shard", 5)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, ErrChanged) || manifest.Hint(err) == "" {
		t.Errorf("error %v, want ErrChanged with a hint", err)
	}
	if _, err := OpenRegular(opened, "shard", 5); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v for another size, want ErrChanged", err)
	}
}

func TestPrivateFiles(t *testing.T) {
	root := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a/b/open": 0o644, "a/b/own": 0o600, "a/group": 0o640, "run": 0o755, "run-own": 0o744, "all": 0o604, "deep/down/file": 0o644} {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(full, mode); err != nil { // past the umask
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"": 0o700, "a": 0o755, "a/b": 0o755, "deep": 0o711, "deep/down": 0o750} {
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := OpenFolder(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	want := []Private{{"a/b/own", 0o600}, {"a/group", 0o640}, {"deep/", 0o711}, {"deep/down/", 0o750}, {"run-own", 0o744}}
	if !slices.Equal(tree.Private, want) {
		t.Errorf("private %v, want %v", tree.Private, want)
	}
}
