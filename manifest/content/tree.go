package content

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"slipway/manifest"
)

// Origin says what a Tree was opened from.
type Origin string

// The origins.
const (
	OriginFolder    Origin = "folder"
	OriginLayout    Origin = "layout"
	OriginReference Origin = "reference"
)

// Tree is the one view of a submission that everything which reads one takes:
// a folder, a bundle in an OCI layout, or a bundle in a registry. It is opened
// by OpenFolder or OpenArtifact and holds no bytes of weights.
type Tree struct {
	Origin Origin
	Name   string // the folder, or the reference, as the user wrote it
	Files  []TreeFile
	Faults []Fault // what was found where a regular file should be; sorted by path

	// Private is what another user than its owner and group cannot read, or execute
	// as they can, in a folder: files, and folders below it, whose path ends in a slash.
	Private []Private

	Artifact *ArtifactView // nil for a folder

	open  func(ctx context.Context, file TreeFile) (io.ReadCloser, error)
	close func() error
}

// TreeFile is one file. Its Digest is what the artifact claims, and zero in a
// folder, where nothing claims anything.
type TreeFile struct {
	manifest.File
	Kind  manifest.Kind // "" in a folder
	Layer int           // index of its layer; -1 in a folder

	offset int64 // of its bytes within a tar layer
}

// Fault is a thing in the tree that is no regular file with an allowed path:
// a link, a device, a tar entry that leaves the root, a path given twice.
type Fault struct {
	Path   string
	Detail string // "is a symbolic link", ...
	Hint   string
}

// Private is a file or folder that is not for everybody.
type Private struct {
	Path string
	Mode fs.FileMode // its permission bits
}

// ArtifactView is what a layout or registry says of a bundle as a whole.
type ArtifactView struct {
	Descriptor manifest.Descriptor
	Manifest   manifest.Artifact
	Config     manifest.ModelConfig
	ConfigRaw  []byte
}

// Lookup returns the file at a path.
func (t *Tree) Lookup(path string) (TreeFile, bool) {
	for _, f := range t.Files {
		if f.Path == path {
			return f, true
		}
	}
	return TreeFile{}, false
}

// Open reads a file from its first byte, once, sequentially. In an artifact
// the reader verifies size and digest of raw layers (io.EOF only after both
// agreed); tar layers were verified when the tree was opened. A folder's bytes
// are checked by nobody but the caller; that the file did not change between
// open and end (size, mtime, inode) is checked.
func (t *Tree) Open(ctx context.Context, file TreeFile) (io.ReadCloser, error) {
	return t.open(ctx, file)
}

// damaged adds what to do about bytes that are not the ones a tree claims.
func (t *Tree) damaged(err error) error {
	var integrity *IntegrityError
	if !errors.As(err, &integrity) {
		return err
	}
	if t.Origin == OriginReference {
		return manifest.WithHint(err, "the registry sent other bytes than its manifest names; try again, or ask its operator")
	}
	return manifest.WithHint(err, "the bundle was damaged or changed since it was built; build it again, or pull it again")
}

// OnClose lets Close end something else too: the store the tree reads from.
func (t *Tree) OnClose(end func() error) {
	inner := t.close
	t.close = func() error { return errors.Join(inner(), end()) }
}

// Close lets go of temporary files and of what OnClose named.
func (t *Tree) Close() error { return t.close() }
