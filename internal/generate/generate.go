// Package generate writes synthetic checkpoints with the names, shapes and
// types of a published model, as published or packed as a submission stores them. Their
// values are random but plausible: they pass every static gate, so that what is
// measured or tested on them does the work that a real submission causes. The
// bytes are a function of the options alone, whatever the number of cores.
package generate

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"slipway/internal/realshapes"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// Family is a published model and how it is stored.
type Family string

// The families.
const (
	Qwen35      Family = ""           // Qwen3.5-4B: two-bit codes, an F16 scale for 128 weights, an untied head
	Maple       Family = "maple"      // maple-preview as published: BF16, the linears ternary by row
	MaplePacked Family = "maple-2bit" // maple-preview: two-bit codes, a BF16 scale a row, a layer's experts in one tensor
)

// Families lists the names of the families, but for Qwen35.
func Families() []Family { return []Family{Maple, MaplePacked} }

// Options choose the checkpoint; the zero value is all of Qwen3.5-4B in four
// shards.
type Options struct {
	Seed        uint64
	Family      Family
	Layers      int   // the first so many text layers, shapes unchanged; 0: all
	Vocabulary  int64 // rows of embedding and head; 0: as published
	TextOnly    bool  // without vision and multi-token prediction tensors
	Shards      int   // 0: four
	HeadersOnly bool  // values are holes of the files: all zeros, and no room on the disk
}

const defaultShards = 4

// Contract returns what the model contains that the options describe; ok is
// false where stored tensors stand for several of its own.
func (o Options) Contract() (contract manifest.Contract, ok bool, err error) {
	switch o.Family {
	case Qwen35:
		return o.Model().Contract(), true, nil
	case Maple:
		contract, _, _, err = o.maple()
		return contract, err == nil, err
	}
	return manifest.Contract{}, false, nil
}

// Model returns the dimensions that the options describe, of Qwen35.
func (o Options) Model() realshapes.Model {
	m := realshapes.Qwen35With4B()
	if o.Layers > 0 {
		m.Layers = o.Layers
	}
	if o.Vocabulary > 0 {
		m.Vocabulary = o.Vocabulary
	}
	if o.TextOnly {
		m.VisionDepth, m.PredictionLayers = 0, 0
	}
	return m
}

func (o Options) check() error {
	published := realshapes.Qwen35With4B()
	layers, vocabulary := published.Layers, published.Vocabulary
	if o.Family != Qwen35 {
		layers, vocabulary = mapleLayers, mapleVocabulary
	}
	switch {
	case o.Family != Qwen35 && !slices.Contains(Families(), o.Family):
		return fmt.Errorf("family %q is not one of %v", o.Family, Families())
	case o.Layers < 0 || o.Layers > layers:
		return fmt.Errorf("%d layers are not between 1 and %d", o.Layers, layers)
	case o.Vocabulary < 0 || o.Vocabulary > vocabulary:
		return fmt.Errorf("a vocabulary of %d is not between 1 and %d", o.Vocabulary, vocabulary)
	case o.Shards < 0 || o.Shards > 99_999:
		return fmt.Errorf("%d shards are not between 1 and 99999", o.Shards)
	}
	return nil
}

// Summary says what Write wrote.
type Summary struct {
	Entries    int     // of the quantization manifest
	ShardBytes []int64 // size of each shard, header included
	Bytes      int64   // of all files
}

// Write writes a checkpoint: shards, their index, config.json and
// quantization_manifest.json. The folder appears under its name when it is
// complete; it must be absent or empty before.
func Write(ctx context.Context, folder string, options Options) (Summary, error) {
	p, err := makePlan(options)
	if err != nil {
		return Summary{}, fmt.Errorf("generate %s: %w", folder, err)
	}
	documents, err := p.documents()
	if err != nil {
		return Summary{}, fmt.Errorf("generate %s: %w", folder, err)
	}
	stage, err := content.NewStage(folder)
	if err != nil {
		return Summary{}, err
	}
	defer stage.Abort()
	summary := Summary{Entries: len(p.quantization.Tensors), ShardBytes: make([]int64, len(p.shards))}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, s := range p.shards {
		group.Go(func() (err error) {
			summary.ShardBytes[i], err = writeFile(stage, s.name, func(f *os.File) error {
				if options.HeadersOnly {
					return s.writeHeader(f)
				}
				return s.write(inner, f, options.Seed)
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Summary{}, err
	}
	for name, data := range documents {
		n, err := writeFile(stage, name, func(f *os.File) error { _, err := f.Write(data); return err })
		if err != nil {
			return Summary{}, err
		}
		summary.Bytes += n
	}
	for _, n := range summary.ShardBytes {
		summary.Bytes += n
	}
	return summary, stage.Commit()
}

// writeFile lets fill write a file of the stage and returns its size in bytes.
func writeFile(stage *content.Stage, name string, fill func(*os.File) error) (int64, error) {
	file, err := stage.Create(manifest.File{Path: name, Mode: manifest.ModeFile})
	if err != nil {
		return 0, err
	}
	err = fill(file)
	var size int64
	if info, statErr := file.Stat(); err == nil {
		if err = statErr; err == nil {
			size = info.Size()
		}
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", name, err)
	}
	return size, nil
}

func (s shard) header() ([]byte, error) {
	return safetensors.EncodeHeader(s.tensors(), map[string]string{"format": "pt"})
}

// writeHeader writes the shard's header and makes the file as long as it is
// with values.
func (s shard) writeHeader(file *os.File) error {
	header, err := s.header()
	if err != nil {
		return err
	}
	if _, err := file.Write(header); err != nil {
		return err
	}
	return file.Truncate(int64(len(header)) + s.stored[len(s.stored)-1].tensor.End)
}

// write writes the shard's header and its tensors' values.
func (s shard) write(ctx context.Context, file *os.File, seed uint64) error {
	header, err := s.header()
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(file, 1<<16) // gathers the small tensors; blocks go around it
	if _, err := out.Write(header); err != nil {
		return err
	}
	block := make([]byte, blockBytes)
	for _, t := range s.stored {
		source := newSource(seed, t.tensor.Name)
		for left := t.tensor.Bytes(); left > 0; {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			part := block[:min(left, blockBytes)]
			t.fill(source, part)
			if _, err := out.Write(part); err != nil {
				return err
			}
			left -= int64(len(part))
		}
	}
	return out.Flush()
}
