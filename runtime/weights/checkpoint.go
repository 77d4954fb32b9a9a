// Package weights opens a checkpoint folder: config.json,
// generation_config.json, safetensors shards and, for ternary models, a
// quantization manifest. It offers the model's logical tensors in the form in
// which they are stored and computes nothing with them.
//
// Its promise: headers and configuration are checked when the folder is
// opened, every tensor is checked for kind, dtype and shape when it is asked
// for, and [Checkpoint.Finish] names the first tensor that nobody asked for. So
// a model that loads has used all of its checkpoint, in the shapes that its
// configuration says, or there is one error that names file and tensor. Data is
// read with pread, only when asked for, and never widened.
package weights

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway/manifest/safetensors"
)

// Checkpoint is an open checkpoint folder. It is not safe for concurrent use,
// its tensors are.
type Checkpoint struct {
	Folder string
	Config *Config

	endTokens []int32
	prefix    string // of the text model's tensors
	shards    map[string]*shard
	tensors   map[string]*Tensor
	taken     map[string]bool
	skipped   []string
}

// shard is one open safetensors file.
type shard struct {
	file    *os.File
	tensors *safetensors.File
}

// Open reads the configuration and every header of a checkpoint folder. The
// shards are those that model.safetensors.index.json names, or without an index
// all *.safetensors files of the folder. quantization_manifest.json is looked
// for in the folder and beside it; its file references count from where it
// stands or from the folder.
func Open(folder string) (*Checkpoint, error) {
	c := &Checkpoint{Folder: folder, shards: map[string]*shard{}, taken: map[string]bool{}}
	if err := c.open(); err != nil {
		c.Close()
		return nil, fmt.Errorf("open checkpoint %s: %w", folder, err)
	}
	return c, nil
}

func (c *Checkpoint) open() error {
	config, err := readConfig(filepath.Join(c.Folder, "config.json"))
	if err != nil {
		return err
	}
	c.Config = config
	if c.endTokens, err = readEndTokens(c.Folder, config); err != nil {
		return err
	}
	index, err := c.openShards()
	if err != nil {
		return err
	}
	entries, err := c.readQuantization()
	if err != nil {
		return err
	}
	if err := c.checkShards(index); err != nil {
		return err
	}
	if c.tensors, err = c.catalog(entries); err != nil {
		return err
	}
	c.prefix = "model."
	for name := range c.tensors {
		if strings.HasPrefix(name, nestedPrefix) {
			c.prefix = nestedPrefix
			break
		}
	}
	return nil
}

// nestedPrefix stands before the text tensors of a checkpoint that was saved
// with its vision half; text-only files have "model." alone.
const nestedPrefix = "model.language_model."

// Close closes the shards. Tensors cannot be read afterwards.
func (c *Checkpoint) Close() error {
	var first error
	for _, s := range c.shards {
		if err := s.file.Close(); err != nil && first == nil {
			first = err
		}
	}
	c.shards = nil
	return first
}

// EndTokens returns the ids that end an answer: those of config.json (both
// levels) and of generation_config.json together, ascending.
func (c *Checkpoint) EndTokens() []int32 { return slices.Clone(c.endTokens) }

// TextName returns the full name of a tensor of the text model, such as
// "layers.0.mlp.up_proj.weight", in this checkpoint.
func (c *Checkpoint) TextName(name string) string { return c.prefix + name }

// Has reports whether there is a logical tensor of that full name.
func (c *Checkpoint) Has(name string) bool { return c.tensors[name] != nil }

// Take returns the logical tensor of that full name and counts it as used. Its
// shape must be the given one.
func (c *Checkpoint) Take(name string, shape ...int) (*Tensor, error) {
	t := c.tensors[name]
	if t == nil {
		return nil, fmt.Errorf("checkpoint %s: tensor %q is missing", c.Folder, name)
	}
	if !slices.Equal(t.Shape, shape) {
		return nil, fmt.Errorf("checkpoint %s: tensor %q has shape %v, the configuration says %v", c.Folder, name, t.Shape, shape)
	}
	c.taken[name] = true
	return t, nil
}

// Skip declares that tensors whose names begin so may be there and are not
// read.
func (c *Checkpoint) Skip(prefixes ...string) { c.skipped = append(c.skipped, prefixes...) }

// Finish returns an error if the checkpoint holds a tensor that was neither
// taken nor skipped.
func (c *Checkpoint) Finish() error {
	var surplus []string
	for _, name := range slices.Sorted(maps.Keys(c.tensors)) {
		skipped := slices.ContainsFunc(c.skipped, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if !skipped && !c.taken[name] {
			surplus = append(surplus, name)
		}
	}
	if len(surplus) == 0 {
		return nil
	}
	return fmt.Errorf("checkpoint %s: the architecture has no tensor %q (%d such tensors)", c.Folder, surplus[0], len(surplus))
}
