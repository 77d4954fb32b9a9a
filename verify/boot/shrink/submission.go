package shrink

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// submission is a folder that was read: which files it has, and what of them is
// replaced in a twin. Paths are relative with slashes.
type submission struct {
	folder string
	files  []file // folders before what lies in them
	bytes  int64  // of the shards

	model        *model
	configPath   string
	shards       []shard
	indexes      map[string]*safetensors.Index // by path
	manifestPath string                        // "" where there is none
	quantization manifest.Quantization
	parts        map[manifest.StoredTensor]part // what the stored tensors of the manifest hold
}

type file struct {
	path string
	info fs.FileInfo
}

type shard struct {
	path   string
	header *safetensors.Header
}

// maxDocumentBytes bounds the JSON files that are read whole.
const maxDocumentBytes = 256 << 20

func readSubmission(folder string) (*submission, error) {
	s := &submission{folder: folder, indexes: map[string]*safetensors.Index{}}
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == folder {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no file", relative)
		}
		f := file{filepath.ToSlash(relative), info}
		s.files = append(s.files, f)
		if info.IsDir() {
			return nil
		}
		if err := s.readFile(f); err != nil {
			return fmt.Errorf("read %s: %w", relative, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case s.model == nil:
		return nil, unshrinkable("there is no config.json of a model")
	case len(s.shards) == 0:
		return nil, unshrinkable("there is no safetensors file")
	}
	return s, nil
}

// readFile reads what a twin changes.
func (s *submission) readFile(f file) error {
	switch base := path.Base(f.path); {
	case base == "config.json":
		return s.readConfig(f)
	case base == manifest.QuantizationPath:
		data, err := s.read(f)
		if err != nil {
			return err
		}
		if s.manifestPath != "" {
			return unshrinkable("%s is another quantization manifest", s.manifestPath)
		}
		s.manifestPath = f.path
		s.quantization, err = manifest.DecodeQuantization(data)
		return err
	case base == safetensors.IndexName:
		data, err := s.read(f)
		if err != nil {
			return err
		}
		s.indexes[f.path], err = safetensors.ReadIndex(data)
		return err
	case path.Ext(base) == ".safetensors":
		return s.readShard(f)
	}
	return nil
}

// readConfig reads a model's configuration; another file of that name, such as
// an adapter's or a tokenizer's, says no architecture and is left alone.
func (s *submission) readConfig(f file) error {
	data, err := s.read(f)
	if err != nil {
		return err
	}
	m, err := readModel(data)
	if err != nil || m == nil {
		return err
	}
	if s.model != nil {
		return unshrinkable("%s describes another model", s.configPath)
	}
	s.model, s.configPath = m, f.path
	return nil
}

func (s *submission) readShard(f file) error {
	open, err := os.Open(filepath.Join(s.folder, f.path))
	if err != nil {
		return err
	}
	defer open.Close()
	header, err := safetensors.ReadHeaderAt(open, f.info.Size())
	if err != nil {
		return err
	}
	s.shards = append(s.shards, shard{f.path, header})
	s.bytes += f.info.Size()
	return nil
}

func (s *submission) read(f file) ([]byte, error) {
	if f.info.Size() > maxDocumentBytes {
		return nil, fmt.Errorf("%d bytes are more than %d", f.info.Size(), maxDocumentBytes)
	}
	data, err := os.ReadFile(filepath.Join(s.folder, f.path))
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return data, err
}

// shardOf finds the shard that a manifest's reference names: a path from where
// the manifest stands, from the root, or a name in the model's folder.
func (s *submission) shardOf(reference manifest.StoredTensor) (string, error) {
	for _, base := range []string{path.Dir(s.manifestPath), ".", path.Dir(s.configPath)} {
		name := path.Join(base, reference.File)
		if slices.ContainsFunc(s.shards, func(other shard) bool { return other.path == name }) {
			return name, nil
		}
	}
	return "", fmt.Errorf("read %s: file %q is not there", s.manifestPath, manifest.Clip(reference.File))
}

// scaleSuffix is appended to the name of a block-FP8 tensor to name its scales.
const scaleSuffix = "_scale_inv"
