package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"slipway/manifest"
	"slipway/runtime/plainfile"
)

// readQuantization reads the quantization manifest of the folder or of its
// parent, opens the shards that it names, and returns its entries with files
// reduced to base names in this folder. Without a manifest it returns nil.
// Entries that lie in another folder belong to another component and are left
// out.
func (c *Checkpoint) readQuantization() (map[string]manifest.Quantity, error) {
	root := c.Folder
	data, err := plainfile.Read(filepath.Join(root, manifest.QuantizationPath), plainfile.Large)
	if errors.Is(err, fs.ErrNotExist) {
		absolute, absErr := filepath.Abs(c.Folder)
		if absErr != nil {
			return nil, absErr
		}
		root = filepath.Dir(absolute)
		data, err = plainfile.Read(filepath.Join(root, manifest.QuantizationPath), plainfile.Large)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	quantization, err := manifest.DecodeQuantization(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", manifest.QuantizationPath, err)
	}
	entries := map[string]manifest.Quantity{}
	for _, name := range quantization.Names() {
		entry, ours, err := c.locate(quantization.Tensors[name], root)
		if err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", manifest.QuantizationPath, name, err)
		}
		if ours {
			entries[name] = entry
		}
	}
	return entries, nil
}

// locate rewrites an entry's files to base names in the folder; ours is false
// if they lie in another.
func (c *Checkpoint) locate(entry manifest.Quantity, root string) (manifest.Quantity, bool, error) {
	if entry.Kind != manifest.KindPacked2Bit {
		name, ours, err := c.locateFile(entry.File, root)
		entry.File = name
		return entry, ours, err
	}
	if format := entry.FormatID(); format != manifest.FormatPacked2Bit {
		return entry, false, fmt.Errorf("is of format %s; only %s is computed", format, manifest.FormatPacked2Bit)
	}
	codes, ours, err := c.locateFile(entry.Codes.File, root)
	if err != nil || !ours {
		return entry, false, err
	}
	scales, ours, err := c.locateFile(entry.Scales.File, root)
	if err != nil || !ours {
		return entry, false, err
	}
	entry.Codes = &manifest.StoredTensor{File: codes, Tensor: entry.Codes.Tensor}
	entry.Scales = &manifest.StoredTensor{File: scales, Tensor: entry.Scales.Tensor}
	return entry, true, nil
}

func (c *Checkpoint) locateFile(file, root string) (name string, ours bool, err error) {
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return "", false, err
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return "", false, err
	}
	for _, base := range []string{root, folder, filepath.Dir(folder)} {
		full := filepath.Join(base, filepath.FromSlash(file))
		if _, err := os.Stat(full); err != nil {
			continue
		}
		if filepath.Dir(full) != folder {
			return "", false, nil
		}
		return path.Base(file), true, c.openShard(path.Base(file))
	}
	return "", false, fmt.Errorf("file %q is not there", file)
}

// catalog joins manifest entries and stored tensors to logical ones. A stored
// tensor that no entry refers to is logical under its own name, except the
// scales of a block-FP8 tensor, which are part of it.
func (c *Checkpoint) catalog(entries map[string]manifest.Quantity) (map[string]*Tensor, error) {
	all := c.storedTensors()
	tensors := map[string]*Tensor{}
	used := map[string]bool{}
	for name, entry := range entries {
		for _, reference := range entry.Stored() {
			s, ok := all[reference.Tensor]
			if !ok || s.shard != reference.File {
				return nil, fmt.Errorf("%s: tensor %q: %s has no tensor %q", manifest.QuantizationPath, name, reference.File, reference.Tensor)
			}
			used[reference.Tensor] = true
		}
		t, err := c.logical(name, entry, all)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		tensors[name] = t
	}
	for name := range all {
		if base, isScale := strings.CutSuffix(name, scaleSuffix); isScale && isFP8(all[base]) {
			used[name] = true
		}
	}
	for name, s := range all {
		if used[name] {
			continue
		}
		if tensors[name] != nil {
			return nil, fmt.Errorf("tensor %q is stored, and the quantization manifest says that it is another", name)
		}
		t, err := c.plain(name, s, all)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		tensors[name] = t
	}
	return tensors, nil
}

func (c *Checkpoint) logical(name string, entry manifest.Quantity, all map[string]stored) (*Tensor, error) {
	if entry.Kind != manifest.KindPacked2Bit {
		t, err := c.plain(name, all[entry.Tensor], all)
		if err != nil {
			return nil, err
		}
		if !equalShape(t.Shape, entry.Shape) {
			return nil, fmt.Errorf("has shape %v, the quantization manifest says %v", t.Shape, entry.Shape)
		}
		return t, nil
	}
	return c.packed(name, entry, all[entry.Codes.Tensor], all[entry.Scales.Tensor])
}

func equalShape(shape []int, other []int64) bool {
	if len(shape) != len(other) {
		return false
	}
	for i, n := range shape {
		if int64(n) != other[i] {
			return false
		}
	}
	return true
}
