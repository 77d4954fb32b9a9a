package goruntime

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"slipway/internal/cudastub"
	"slipway/manifest"
	"slipway/manifest/content"
)

// Source is the source of the runtime: the files of its packages and of those
// of this module that it imports, tests left out, and the module files.
type Source struct {
	Files  []manifest.File // sorted by path
	Digest manifest.Digest // the set digest of Files
	Lock   []byte          // runtime.lock, which says what became of the source and is no part of it
	data   map[string][]byte
}

// LockPath is where the lock stands in the source.
const LockPath = "runtime/runtime.lock"

// ReadSource takes the source out of a file system, such as the one that
// slipway carries. Files that do not end up in a build (tests, the lock itself)
// are left out.
func ReadSource(from fs.FS) (*Source, error) {
	s := &Source{data: map[string][]byte{}}
	err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name != LockPath && !isSource(name) {
			return err
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		s.add(name, data)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the runtime's source: %w", err)
	}
	return s, s.finish()
}

// ReadSourceTar takes the source out of a bundle's runtime/source.tar. limit
// bounds its bytes.
func ReadSourceTar(r io.Reader, limit int64) (*Source, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read source.tar: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("read source.tar: larger than %d bytes", limit)
	}
	s := &Source{data: map[string][]byte{}}
	if err := content.ReadTar(data, s.add); err != nil {
		return nil, fmt.Errorf("read source.tar: %w", err)
	}
	for _, f := range s.Files { // what is proved by its source must not carry anything else
		if !isSource(f.Path) {
			return nil, fmt.Errorf("read source.tar: %s is no source of the runtime", f.Path)
		}
	}
	return s, s.finish()
}

func isSource(name string) bool {
	if strings.HasSuffix(name, "_test.go") {
		return false
	}
	switch path.Ext(name) {
	case ".go", ".s", ".c", ".h", ".cu", ".cuh", ".ptx", ".cubin", ".mod", ".sum":
		return true
	}
	return path.Base(name) == "LICENSE" || name == cudastub.SymbolsPath || name == "runtime/kernels/cuda/build/checksums"
}

func (s *Source) add(name string, data []byte) {
	if name == LockPath {
		s.Lock = data
		return
	}
	s.data[name] = data
	s.Files = append(s.Files, manifest.File{Path: name, Mode: manifest.ModeFile, Size: int64(len(data)), Digest: manifest.DigestBytes(data)})
}

func (s *Source) finish() error {
	manifest.SortFiles(s.Files)
	paths := make([]string, 0, len(s.Files))
	for _, f := range s.Files {
		paths = append(paths, f.Path)
	}
	if faults := manifest.CheckPaths(paths); len(faults) > 0 {
		return faults[0]
	}
	for _, needed := range []string{"go.mod", "go.sum", "runtime/main.go"} {
		if _, ok := s.data[needed]; !ok {
			return fmt.Errorf("the runtime's source has no %s", needed)
		}
	}
	s.Digest = manifest.SetDigest(s.Files)
	return nil
}

// Tar writes the source as runtime/source.tar, in the format's tar form. With it
// goes the lock of the one build that stands beside it in the bundle.
func (s *Source) Tar(built Locked) ([]byte, error) {
	lock, err := (&Lock{Schema: 1, Builds: []Locked{built}}).Encode()
	if err != nil {
		return nil, err
	}
	files := append(slices.Clone(s.Files), manifest.File{Path: LockPath, Mode: manifest.ModeFile, Size: int64(len(lock))})
	manifest.SortFiles(files)
	var out bytes.Buffer
	err = content.WriteTar(&out, files, func(f manifest.File) (io.ReadCloser, error) {
		if f.Path == LockPath {
			return io.NopCloser(bytes.NewReader(lock)), nil
		}
		return io.NopCloser(bytes.NewReader(s.data[f.Path])), nil
	})
	return out.Bytes(), err
}
