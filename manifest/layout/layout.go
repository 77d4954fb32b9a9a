// Package layout is an OCI image layout folder as a content.Store. Nothing in
// it is trusted for being there: a blob counts as present only after this
// process hashed it (or, while building, a digest cache vouches for an
// untouched file), every read verifies again, and every write happens under a
// temporary name until its digest agreed.
package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"slipway/manifest"
	"slipway/manifest/content"
)

const (
	versionFile    = "oci-layout"
	versionContent = `{"imageLayoutVersion":"1.0.0"}`
	blobFolder     = "blobs/sha256"
	partialPrefix  = ".partial-"
)

// Layout is an OCI image layout (image-spec v1.1, image-layout.md).
type Layout struct {
	made   bool // by Create, just now
	folder string
	root   *os.Root
	cache  *content.DigestCache

	mu       sync.Mutex
	verified map[manifest.Digest]content.Stamp // blobs this process hashed, as they were then
}

// Is reports whether a folder is an OCI image layout.
func Is(folder string) bool {
	info, err := os.Stat(filepath.Join(folder, versionFile))
	return err == nil && info.Mode().IsRegular()
}

// Open opens an existing layout.
func Open(folder string) (*Layout, error) {
	data, err := os.ReadFile(filepath.Join(folder, versionFile))
	if err != nil {
		return nil, fmt.Errorf("open layout %s: %w", folder, manifest.Cause(err))
	}
	var version struct {
		Version string `json:"imageLayoutVersion"`
	}
	if err := manifest.DecodeStrict(data, &version); err != nil || version.Version != "1.0.0" {
		return nil, fmt.Errorf("open layout %s: %s does not say version 1.0.0", folder, versionFile)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open layout %s: %w", folder, err)
	}
	return &Layout{folder: folder, root: root, verified: map[manifest.Digest]content.Stamp{}}, nil
}

// Create opens a layout and makes it first where folder is absent or empty.
// Another folder that is no layout is left alone and refused. The cache may be
// nil; only a build passes one.
func Create(folder string, cache *content.DigestCache) (*Layout, error) {
	made := !Is(folder)
	if made {
		if err := makeLayout(folder); err != nil {
			return nil, fmt.Errorf("create layout %s: %w", folder, err)
		}
	}
	l, err := Open(folder)
	if err != nil {
		return nil, err
	}
	l.cache, l.made = cache, made
	content.RemoveAbandoned(folder, partialPrefix)
	return l, nil
}

// makeLayout makes an empty or absent folder a layout, once, whoever else is
// about to.
func makeLayout(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	unlock, err := content.Lock(folder)
	if err != nil {
		return err
	}
	defer unlock()
	if Is(folder) { // another process was first
		return nil
	}
	fresh, err := isFresh(folder)
	if err != nil {
		return err
	}
	if !fresh {
		return manifest.WithHint(errors.New("the folder exists and is no OCI layout"), "choose a new or empty folder")
	}
	return writeEmpty(folder)
}

// isFresh reports whether a folder holds nothing but what writeEmpty writes
// before it is done: a process may have died there.
func isFresh(folder string) (bool, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "blobs" && name != "index.json" && !strings.HasPrefix(name, ".index.json.partial-") && !strings.HasPrefix(name, ".oci-layout.partial-") {
			return false, nil
		}
	}
	blobs, err := filepath.Glob(filepath.Join(folder, "blobs", "*", "*"))
	return len(blobs) == 0, err
}

// writeEmpty writes the version file last: before it the folder is no layout.
func writeEmpty(folder string) error {
	for _, made := range []string{"", "blobs", blobFolder} {
		name := filepath.Join(folder, made)
		if err := os.MkdirAll(name, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(name, 0o755); err != nil { // whatever the umask
			return err
		}
	}
	index, err := indexFile{SchemaVersion: 2, MediaType: manifest.MediaTypeIndex, Manifests: []indexEntry{}}.encode()
	if err != nil {
		return err
	}
	if err := content.ReplaceFile(filepath.Join(folder, "index.json"), index, 0o644); err != nil {
		return err
	}
	return content.ReplaceFile(filepath.Join(folder, versionFile), []byte(versionContent), 0o644)
}

// Discard removes a layout that Create made, if it still has no bundle and
// nobody else is writing to it: what bad input leaves behind.
func (l *Layout) Discard() {
	unlock, err := content.Lock(filepath.Join(l.folder, versionFile))
	if err != nil {
		return
	}
	defer unlock()
	names, err := l.Names()
	entries, listErr := os.ReadDir(l.folder)
	busy := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), partialPrefix) })
	if l.made && err == nil && listErr == nil && len(names) == 0 && !busy {
		_ = os.RemoveAll(l.folder)
	}
}

// Close lets go of the folder.
func (l *Layout) Close() error { return l.root.Close() }

func blobPath(digest manifest.Digest) string { return blobFolder + "/" + digest.Hex() }

// Has implements content.Store.
func (l *Layout) Has(ctx context.Context, blob manifest.Descriptor) (bool, error) {
	info, err := l.root.Lstat(blobPath(blob.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for blob %s: %w", blob.Digest, err)
	}
	if !info.Mode().IsRegular() || info.Size() != blob.Size {
		return false, nil
	}
	l.mu.Lock()
	stamp, known := l.verified[blob.Digest]
	l.mu.Unlock()
	if known && stamp == content.StampOf(info) {
		return true, nil
	}
	if digest, cached := l.cache.Lookup(info); cached {
		return digest == blob.Digest, nil
	}
	began := l.cache.Now()
	digest, err := content.Intake(ctx, l.root, blobPath(blob.Digest), blob.Size, nil, nil)
	if errors.Is(err, content.ErrChanged) || errors.Is(err, fs.ErrNotExist) {
		return false, nil // another process is replacing it: putting the same bytes again does no harm
	}
	if err != nil {
		return false, fmt.Errorf("check blob: %w", err)
	}
	if digest != blob.Digest {
		return false, nil
	}
	l.remember(digest, info)
	if after, err := l.root.Lstat(blobPath(blob.Digest)); err == nil {
		l.cache.Add(info, after, began, digest)
	}
	return true, nil
}

// remember notes a blob that this process has hashed.
func (l *Layout) remember(digest manifest.Digest, info fs.FileInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.verified[digest] = content.StampOf(info)
}

// Open implements content.Store.
func (l *Layout) Open(_ context.Context, blob manifest.Descriptor, offset int64) (io.ReadCloser, error) {
	file, err := content.OpenRegular(l.root, blobPath(blob.Digest), -1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open blob %s in %s: %w", blob.Digest, l.folder, content.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	if offset == 0 {
		return checkedFile{content.NewCheckedReader(file, blob), file}, nil
	}
	if offset < 0 || offset > blob.Size {
		_ = file.Close()
		return nil, fmt.Errorf("open blob %s at %d: it has %d bytes", blob.Digest, offset, blob.Size)
	}
	if _, err := file.(io.Seeker).Seek(offset, io.SeekStart); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("open blob %s at %d: %w", blob.Digest, offset, err)
	}
	return file, nil
}

type checkedFile struct {
	*content.CheckedReader
	io.Closer
}

// Put implements content.Store.
func (l *Layout) Put(ctx context.Context, blob manifest.Descriptor, source content.Source) error {
	present, err := l.Has(ctx, blob)
	if err != nil || present {
		return err
	}
	err = l.write(ctx, func(temporary *os.File) (manifest.Digest, error) {
		reader, err := source(ctx, 0)
		if err != nil {
			return manifest.Digest{}, err
		}
		defer reader.Close()
		_, err = content.CopyBlocks(ctx, temporary, content.NewCheckedReader(reader, blob), nil)
		return blob.Digest, err
	})
	var integrity *content.IntegrityError
	if err != nil && !errors.As(err, &integrity) { // that one names the blob itself
		return fmt.Errorf("store %s: %w", blob.Digest, err)
	}
	return err
}

// Ingest copies a file into the layout, sharing blocks where the file system
// can, and returns its digest: one read, one hash, one write. progress may be
// nil.
func (l *Layout) Ingest(ctx context.Context, root *os.Root, name string, size int64, progress func(int64)) (manifest.Digest, error) {
	var digest manifest.Digest
	err := l.write(ctx, func(temporary *os.File) (manifest.Digest, error) {
		var err error
		digest, err = content.Intake(ctx, root, name, size, temporary, progress)
		return digest, err
	})
	return digest, err
}

// Link makes a hard link to a file its blob, and returns its digest. A later
// write to the file then changes the blob, which every reader notices.
func (l *Layout) Link(ctx context.Context, root *os.Root, name string, size int64, progress func(int64)) (manifest.Digest, error) {
	before, err := root.Lstat(name)
	if err != nil {
		return manifest.Digest{}, fmt.Errorf("link %s: %w", name, err)
	}
	digest, err := content.Intake(ctx, root, name, size, nil, progress)
	if err != nil {
		return digest, err
	}
	target := filepath.Join(l.folder, blobPath(digest))
	err = os.Link(filepath.Join(root.Name(), filepath.FromSlash(name)), target)
	if errors.Is(err, fs.ErrExist) {
		return digest, nil // whatever it is, it is hashed before it counts
	}
	if err != nil {
		return digest, manifest.WithHint(fmt.Errorf("link %s into %s: %w", name, l.folder, manifest.Cause(err)), "leave --link out where the layout is on another file system")
	}
	info, err := l.root.Lstat(blobPath(digest))
	if err == nil && os.SameFile(before, info) && before.ModTime().Equal(info.ModTime()) {
		l.remember(digest, info) // a link changes the change time, so only these can be compared
	}
	return digest, nil
}

// write lets fill produce a blob under a temporary name and gives it the name
// of the digest that fill returns.
func (l *Layout) write(ctx context.Context, fill func(*os.File) (manifest.Digest, error)) error {
	temporary, err := content.LockedTemp(l.folder, partialPrefix)
	if err != nil {
		return fmt.Errorf("create a blob in layout %s: %w", l.folder, err)
	}
	digest, err := fill(temporary)
	if err == nil {
		err = l.name(ctx, temporary, digest)
	}
	if closeErr := temporary.Close(); err == nil && closeErr != nil {
		err = content.WriteFault(closeErr)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}

// name gives a complete temporary file the name of its digest. A blob that is
// there already stays: somebody may be reading it.
func (l *Layout) name(ctx context.Context, temporary *os.File, digest manifest.Digest) error {
	written, err := temporary.Stat()
	if err != nil {
		return fmt.Errorf("name blob %s: %w", digest, err)
	}
	if present, err := l.Has(ctx, manifest.Descriptor{Digest: digest, Size: written.Size()}); present || err != nil {
		_ = os.Remove(temporary.Name())
		return err
	}
	err = temporary.Chmod(0o644)
	if err == nil {
		err = os.Rename(temporary.Name(), filepath.Join(l.folder, blobPath(digest)))
	}
	var info fs.FileInfo
	if err == nil {
		info, err = temporary.Stat()
	}
	if err != nil {
		return fmt.Errorf("name blob %s: %w", digest, err)
	}
	l.remember(digest, info)
	l.cache.AddWritten(filepath.Join(l.folder, blobPath(digest)), info, digest)
	return nil
}

var _ content.Store = (*Layout)(nil)
