package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"slipway/manifest/safetensors"
	"slipway/runtime/plainfile"
)

// openShards opens the shards that the index names, or all of the folder. The
// index is nil where there is none.
func (c *Checkpoint) openShards() (*safetensors.Index, error) {
	data, err := plainfile.Read(filepath.Join(c.Folder, safetensors.IndexName), plainfile.Large)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, c.openAll()
	}
	if err != nil {
		return nil, err
	}
	index, err := safetensors.ReadIndex(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", safetensors.IndexName, err)
	}
	names := map[string]bool{}
	for _, name := range index.WeightMap {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := c.openShard(name); err != nil {
			return nil, err
		}
	}
	return index, nil
}

func (c *Checkpoint) openAll() error {
	entries, err := os.ReadDir(c.Folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".safetensors" && !entry.IsDir() {
			if err := c.openShard(entry.Name()); err != nil {
				return err
			}
		}
	}
	if len(c.shards) == 0 {
		return errors.New("no *.safetensors file")
	}
	return nil
}

// openShard opens a shard by its base name; one that is open stays so.
func (c *Checkpoint) openShard(name string) error {
	if c.shards[name] != nil {
		return nil
	}
	file, info, err := plainfile.Open(filepath.Join(c.Folder, name))
	if err != nil {
		return err
	}
	c.shards[name] = &shard{file: file}
	c.shards[name].tensors, err = safetensors.Open(file, info.Size())
	if err != nil {
		return fmt.Errorf("read header of %s: %w", name, err)
	}
	return nil
}

// checkShards returns the first disagreement between the open shards and the
// index, or between shards where there is none.
func (c *Checkpoint) checkShards(index *safetensors.Index) error {
	headers := map[string]*safetensors.Header{}
	for name, s := range c.shards {
		headers[name] = s.tensors.Header
	}
	problems := safetensors.CheckShards(headers)
	if index != nil {
		problems = index.Check(headers)
	}
	for _, problem := range problems {
		// A shard that only the quantization manifest names is not the index's.
		if !problem.Warning && problem.Kind != safetensors.UnlistedShard {
			return errors.New(problem.Detail)
		}
	}
	return nil
}

// stored locates a stored tensor.
type stored struct {
	shard string
	safetensors.Tensor
}

// storedTensors returns every stored tensor by its name, which is unique
// across shards.
func (c *Checkpoint) storedTensors() map[string]stored {
	all := map[string]stored{}
	for name, s := range c.shards {
		for _, t := range s.tensors.Header.Tensors {
			all[t.Name] = stored{name, t}
		}
	}
	return all
}
