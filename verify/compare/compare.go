// Package compare explains how two submissions differ, file by file and tensor
// by tensor. Tensors are matched by name across all shards, so that a
// checkpoint saved in other shards shows which tensors really changed.
package compare

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// Change says how something differs.
type Change string

// The changes. Moved is a tensor with the same bytes in another file.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed"
	Moved   Change = "moved"
)

// Difference is what differs between two submissions; both lists are sorted.
// Equal digests of the sets mean that both are empty.
type Difference struct {
	SetA    manifest.Digest    `json:"set_digest_a"`
	SetB    manifest.Digest    `json:"set_digest_b"`
	Files   []FileDifference   `json:"files"`
	Tensors []TensorDifference `json:"tensors"`
}

// Same reports whether nothing differs.
func (d *Difference) Same() bool { return len(d.Files) == 0 && len(d.Tensors) == 0 }

// FileDifference is one file. Detail says what of it changed.
type FileDifference struct {
	Path   string `json:"path"`
	Change Change `json:"change"`
	Detail string `json:"detail,omitempty"`
}

// TensorDifference is one tensor of the shards that differ.
type TensorDifference struct {
	Name   string `json:"name"`
	Change Change `json:"change"`
	Detail string `json:"detail,omitempty"`
}

// Options of Trees; the zero value works.
type Options struct {
	Progress func(bytes int64) // called with bytes read since the last call; may be nil
	// Claimed takes the digests that artifacts claim for their files' own, for
	// callers that verify the bytes elsewhere.
	Claimed bool
}

// Trees compares two submissions. Every file is read and hashed once; shards
// that differ are read again, tensor by tensor.
func Trees(ctx context.Context, a, b *content.Tree, options Options) (*Difference, error) {
	left, err := read(ctx, a, options)
	if err != nil {
		return nil, err
	}
	right, err := read(ctx, b, options)
	if err != nil {
		return nil, err
	}
	d := &Difference{SetA: left.set(), SetB: right.set(), Files: []FileDifference{}, Tensors: []TensorDifference{}}
	var shardsA, shardsB []content.TreeFile
	for _, path := range union(left.files, right.files) {
		fileA, inA := left.files[path]
		fileB, inB := right.files[path]
		if inA && inB && fileA.Digest == fileB.Digest && fileA.Mode == fileB.Mode {
			continue
		}
		d.Files = append(d.Files, fileDifference(path, fileA, fileB, inA, inB))
		if strings.HasSuffix(path, ".safetensors") && fileA.Digest != fileB.Digest {
			if inA {
				shardsA = append(shardsA, fileA)
			}
			if inB {
				shardsB = append(shardsB, fileB)
			}
		}
	}
	d.Tensors, err = tensorDifferences(ctx, side{left, shardsA}, side{right, shardsB}, options.Progress)
	return d, err
}

func fileDifference(path string, a, b content.TreeFile, inA, inB bool) FileDifference {
	switch {
	case !inA:
		return FileDifference{path, Added, fmt.Sprintf("%d bytes", b.Size)}
	case !inB:
		return FileDifference{path, Removed, fmt.Sprintf("%d bytes", a.Size)}
	}
	var details []string
	if a.Mode != b.Mode {
		details = append(details, fmt.Sprintf("mode %s -> %s", a.Mode, b.Mode))
	}
	if a.Digest != b.Digest {
		details = append(details, fmt.Sprintf("%d -> %d bytes, %s -> %s", a.Size, b.Size, a.Digest.Short(), b.Digest.Short()))
	}
	return FileDifference{path, Changed, strings.Join(details, "; ")}
}

// listing is a tree whose files all have digests.
type listing struct {
	tree  *content.Tree
	files map[string]content.TreeFile
}

func (l listing) set() manifest.Digest {
	files := make([]manifest.File, 0, len(l.files))
	for _, f := range l.files {
		files = append(files, f.File)
	}
	return manifest.SetDigest(files)
}

func read(ctx context.Context, tree *content.Tree, options Options) (listing, error) {
	if len(tree.Faults) > 0 {
		return listing{}, fmt.Errorf("compare %s: %s %s", tree.Name, tree.Faults[0].Path, tree.Faults[0].Detail)
	}
	digests := make([]manifest.Digest, len(tree.Files))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range tree.Files {
		if options.Claimed && !file.Digest.IsZero() {
			digests[i] = file.Digest
			continue
		}
		group.Go(func() (err error) {
			h := manifest.NewHash()
			err = feed(inner, tree, file, h, options.Progress)
			digests[i] = manifest.FinishHash(h)
			if err != nil {
				return fmt.Errorf("%s: %w", file.Path, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return listing{}, fmt.Errorf("compare %s: %w", tree.Name, err)
	}
	l := listing{tree, map[string]content.TreeFile{}}
	for i, file := range tree.Files {
		file.Digest = digests[i]
		l.files[file.Path] = file
	}
	return l, nil
}

func feed(ctx context.Context, tree *content.Tree, file content.TreeFile, w io.Writer, progress func(int64)) error {
	source, err := tree.Open(ctx, file)
	if err != nil {
		return err
	}
	defer source.Close()
	_, err = content.CopyBlocks(ctx, w, source, progress)
	return err
}

type countedReader struct {
	ctx      context.Context
	r        io.Reader
	progress func(int64)
}

func counted(ctx context.Context, r io.Reader, progress func(int64)) io.Reader {
	return countedReader{ctx, r, progress}
}

func (c countedReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.r.Read(p)
	if c.progress != nil {
		c.progress(int64(n))
	}
	return n, err
}

func union[V any](a, b map[string]V) []string {
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, twice := a[name]; !twice {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// tensor is a tensor with its bytes' digest and its file.
type tensor struct {
	dtype  string
	shape  []int64
	digest manifest.Digest
	file   string
}

type side struct {
	listing
	shards []content.TreeFile
}

func tensorDifferences(ctx context.Context, a, b side, progress func(int64)) ([]TensorDifference, error) {
	left, err := a.tensors(ctx, progress)
	if err != nil {
		return nil, err
	}
	right, err := b.tensors(ctx, progress)
	if err != nil {
		return nil, err
	}
	differences := []TensorDifference{}
	for _, name := range union(left, right) {
		tensorA, inA := left[name]
		tensorB, inB := right[name]
		switch {
		case !inA:
			differences = append(differences, TensorDifference{name, Added, tensorB.String()})
		case !inB:
			differences = append(differences, TensorDifference{name, Removed, tensorA.String()})
		case tensorA.String() != tensorB.String():
			differences = append(differences, TensorDifference{name, Changed, tensorA.String() + " -> " + tensorB.String()})
		case tensorA.digest != tensorB.digest:
			differences = append(differences, TensorDifference{name, Changed, "values of " + tensorA.String()})
		case tensorA.file != tensorB.file:
			differences = append(differences, TensorDifference{name, Moved, tensorA.file + " -> " + tensorB.file})
		}
	}
	return differences, nil
}

func (t tensor) String() string { return fmt.Sprintf("%s %v", t.dtype, t.shape) }

// tensors digests the tensors of the shards, each read once from the start.
func (s side) tensors(ctx context.Context, progress func(int64)) (map[string]tensor, error) {
	all := map[string]tensor{}
	for _, shard := range s.shards {
		if err := s.addTensors(ctx, shard, all, progress); err != nil {
			return nil, fmt.Errorf("compare %s: %s: %w", s.tree.Name, shard.Path, err)
		}
	}
	return all, nil
}

func (s side) addTensors(ctx context.Context, shard content.TreeFile, all map[string]tensor, progress func(int64)) error {
	source, err := s.tree.Open(ctx, shard)
	if err != nil {
		return err
	}
	defer source.Close()
	reader := counted(ctx, source, progress)
	header, err := safetensors.ReadHeader(reader, shard.Size)
	if err != nil {
		return err
	}
	buffer := make([]byte, 1<<20)
	for _, t := range header.Tensors { // in offset order, without gaps
		h := manifest.NewHash()
		n, err := io.CopyBuffer(struct{ io.Writer }{h}, io.LimitReader(reader, t.Bytes()), buffer)
		if err != nil {
			return err
		}
		if n != t.Bytes() {
			return io.ErrUnexpectedEOF
		}
		all[t.Name] = tensor{t.DType.String(), t.Shape, manifest.FinishHash(h), shard.Path}
	}
	return nil
}
