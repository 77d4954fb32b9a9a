package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"

	"slipway/manifest"
)

// OpenFolder lists a folder as a Tree. It follows no link: whatever is not a
// regular file or a folder becomes a Fault, and so does a folder or file that
// cannot be read. Only a root that is no folder is an error.
func OpenFolder(ctx context.Context, root string) (*Tree, error) {
	opened, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("open folder %s: %w", root, manifest.Cause(err))
	}
	files, faults, err := Scan(ctx, opened, ".", nil)
	if err != nil {
		_ = opened.Close()
		return nil, err
	}
	tree := &Tree{Origin: OriginFolder, Name: root, Faults: faults, Private: private(opened, files), close: opened.Close}
	for _, file := range files {
		tree.Files = append(tree.Files, TreeFile{File: file, Layer: -1})
	}
	tree.open = func(_ context.Context, file TreeFile) (io.ReadCloser, error) {
		return OpenRegular(opened, file.Path, file.Size)
	}
	return tree, nil
}

// private lists what others cannot read of the files, or execute though the owner
// can, and the folders that they lie in and cannot enter, each once. Of the root
// nothing is said: whoever copies it makes another.
func private(root *os.Root, files []manifest.File) []Private {
	var found []Private
	known := map[string]bool{".": true}
	look := func(name, end string, needed fs.FileMode) {
		info, err := root.Lstat(name)
		if err == nil && info.Mode().Perm()&needed != needed {
			found = append(found, Private{name + end, info.Mode().Perm()})
		}
	}
	for _, file := range files {
		for folder := path.Dir(file.Path); !known[folder]; folder = path.Dir(folder) {
			known[folder] = true
			look(folder, "/", 0o005)
		}
		look(file.Path, "", fs.FileMode(file.Mode)&0o005)
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Path < found[j].Path })
	return found
}

// Scan lists the regular files below a folder of root, sorted by path, their
// paths relative to root and their digests zero. Everything else is a fault.
// enter, if given, says whether to list a sub-folder.
func Scan(ctx context.Context, root *os.Root, folder string, enter func(folder string) bool) ([]manifest.File, []Fault, error) {
	s := scan{root: root, enter: enter}
	err := s.list(ctx, folder)
	manifest.SortFiles(s.files)
	sort.Slice(s.faults, func(i, j int) bool { return s.faults[i].Path < s.faults[j].Path })
	return s.files, s.faults, err
}

type scan struct {
	root   *os.Root
	enter  func(string) bool
	files  []manifest.File
	faults []Fault
}

func (s *scan) list(ctx context.Context, folder string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	entries, err := fs.ReadDir(s.root.FS(), folder)
	if err != nil {
		s.faults = append(s.faults, Fault{Path: folder, Detail: "cannot be listed: " + manifest.Cause(err).Error()})
		return nil
	}
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		switch {
		case !entry.IsDir():
			s.add(name)
		case s.enter == nil || s.enter(name):
			if err := s.list(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scan) add(name string) {
	info, err := s.root.Lstat(name)
	switch {
	case err != nil:
		s.faults = append(s.faults, Fault{Path: name, Detail: "cannot be read: " + manifest.Cause(err).Error()})
	case !info.Mode().IsRegular():
		s.faults = append(s.faults, Fault{Path: name, Detail: "is " + describeMode(info.Mode()), Hint: "put the file itself there"})
	default:
		s.files = append(s.files, manifest.File{Path: name, Mode: manifest.NormalMode(uint32(info.Mode())), Size: info.Size()})
	}
}

func describeMode(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "no regular file"
}

// OpenRegular opens a regular file below root for one reading from start to
// end. It follows no link at the path itself, does not block on a named pipe,
// and at the end says whether the file changed meanwhile: "changed while it was
// read". size is what the caller's listing saw, or -1.
func OpenRegular(root *os.Root, name string, size int64) (io.ReadCloser, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|openNoFollow, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, manifest.Cause(err))
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("open %s: %w", name, manifest.Cause(err))
	}
	if !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, fmt.Errorf("open %s: it is %s", name, describeMode(info.Mode()))
	}
	steady := &steadyFile{File: file, name: name, before: StampOf(info)}
	if size >= 0 && info.Size() != size {
		_ = file.Close()
		return nil, steady.changed()
	}
	return steady, nil
}

// ErrChanged is returned when a file changed between two looks at it.
var ErrChanged = errors.New("changed while it was read")

type steadyFile struct {
	*os.File
	name   string
	before Stamp
}

func (f *steadyFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if errors.Is(err, io.EOF) {
		info, statErr := f.Stat()
		if statErr != nil {
			return n, fmt.Errorf("read %s: %w", f.name, manifest.Cause(statErr))
		}
		if StampOf(info) != f.before {
			return n, f.changed()
		}
		return n, io.EOF
	}
	if err != nil {
		return n, fmt.Errorf("read %s: %w", f.name, manifest.Cause(err))
	}
	return n, nil
}

// WriteTo keeps io.Copy from going around Read by way of os.File.WriteTo.
func (f *steadyFile) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{f})
}

func (f *steadyFile) changed() error {
	return manifest.WithHint(fmt.Errorf("read %s: %w", f.name, ErrChanged), "wait until whatever writes it has finished, then run this again")
}
