package pack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// Restored says what Undo wrote.
type Restored struct {
	Files         []File `json:"files"`          // the original shards
	NegativeZeros int64  `json:"negative_zeros"` // values that were -0 and are +0 now
}

// Undo writes the checkpoint that was packed into the folder from to the folder
// to, which appears when it is complete: the same shards, headers and documents,
// and the same bytes up to the sign of zeros. Packed shards that changed since
// are errors.
func Undo(ctx context.Context, from, to string, options Options) (*Restored, error) {
	root, err := os.OpenRoot(from)
	if err != nil {
		return nil, fmt.Errorf("open folder %s: %w", from, manifest.Cause(err))
	}
	defer root.Close()
	restored, err := undoFolder(ctx, root, to, options)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", from, err)
	}
	return restored, nil
}

func undoFolder(ctx context.Context, root *os.Root, to string, options Options) (*Restored, error) {
	stage, err := content.NewStageOver(to, notEmpty)
	if err != nil {
		return nil, err
	}
	defer stage.Abort()
	c, err := ReadCheckpoint(ctx, root, ".")
	if err != nil {
		return nil, err
	}
	data, recorded := c.documents[RecordPath]
	if !recorded {
		return nil, manifest.WithHint(fmt.Errorf("%s is not there", RecordPath), "only a folder that `slipway weights pack` wrote can be turned back")
	}
	r, err := decodeRecord(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", RecordPath, err)
	}
	if err := r.checkFiles(ctx, root, c, options); err != nil {
		return nil, err
	}
	shards, err := r.arrange(c)
	if err != nil {
		return nil, err
	}
	w := &folderWriter{root: root, stage: stage, options: options}
	files, err := w.shards(ctx, shards)
	if err != nil {
		return nil, err
	}
	for name, text := range r.Documents {
		if err := w.write(name, []byte(text)); err != nil {
			return nil, err
		}
	}
	if _, err := w.others(ctx, c.Others); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return &Restored{files, r.NegativeZeros}, stage.Commit()
}

// checkFiles holds the packed shards against the digests of pack.json.
func (r *record) checkFiles(ctx context.Context, root *os.Root, c *Checkpoint, options Options) error {
	recorded := map[string]File{}
	var total int64
	for _, f := range r.Files {
		recorded[f.Name] = f
		total += f.Size
	}
	options.phase("check packed weights", total)
	for _, s := range c.Sources {
		want, known := recorded[s.Name()]
		if !known {
			return fmt.Errorf("%s is not of the shards that %s names", s.Path, RecordPath)
		}
		delete(recorded, s.Name())
		got, err := content.Intake(ctx, root, s.Path, s.Header.FileSize, nil, options.Progress)
		if err != nil {
			return err
		}
		if got != want.Digest {
			return manifest.WithHint(fmt.Errorf("%s changed since it was packed", s.Path), "get the folder again from where it was packed")
		}
	}
	for _, f := range r.Files {
		if _, missing := recorded[f.Name]; missing {
			return fmt.Errorf("%s names shard %q, which is not there", RecordPath, manifest.Clip(f.Name))
		}
	}
	return nil
}

// arrange makes the recipes of the original shards.
func (r *record) arrange(c *Checkpoint) ([]*Shard, error) {
	u := &undoing{record: r, stored: map[string]held{}, units: map[string]Unit{}}
	for _, h := range c.tensors() {
		u.stored[h.Name] = h
	}
	if c.Quantization != nil {
		for _, e := range c.Quantization.Tensors {
			if e.Kind == manifest.KindPacked2Bit {
				u.units[e.Codes.Tensor] = Unit{e.ScaleUnit(), e.GroupSize}
			}
		}
	}
	var shards []*Shard
	for _, original := range r.Shards {
		shard, err := u.shard(original)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", RecordPath, err)
		}
		shards = append(shards, shard)
	}
	return shards, nil
}

type undoing struct {
	record *record
	stored map[string]held
	units  map[string]Unit // by codes
}

func (u *undoing) shard(original originalShard) (*Shard, error) {
	h, raw, err := original.header()
	if err != nil {
		return nil, err
	}
	shard := &Shard{Name: original.Name, Size: original.Size, header: raw}
	for _, t := range h.Tensors {
		s, err := u.section(t)
		if err != nil {
			return nil, fmt.Errorf("tensor %q of %s: %w", manifest.Clip(t.Name), original.Name, err)
		}
		shard.sections = append(shard.sections, s)
	}
	return shard, nil
}

// section finds what a tensor is made of: itself, the embedding that it
// repeated, or its codes and scales.
func (u *undoing) section(t safetensors.Tensor) (section, error) {
	name := t.Name
	if same := u.record.Dropped[name]; same != "" {
		name = same
	}
	if h, ok := u.stored[name]; ok {
		if h.DType != t.DType || !slices.Equal(h.Shape, t.Shape) {
			return section{}, fmt.Errorf("is stored as %s %v, and was %s %v", h.DType, h.Shape, t.DType, t.Shape)
		}
		return section{tensor: t, form: copied, from: h.place()}, nil
	}
	c, hasCodes := u.stored[name+codesEnding]
	s, hasScales := u.stored[name+scalesEnding]
	unit, hasUnit := u.units[name+codesEnding]
	if !hasCodes || !hasScales || !hasUnit {
		return section{}, errors.New("is not stored")
	}
	f, ok := floatsOf(t.DType)
	if !ok || len(t.Shape) < 2 || t.Elements() == 0 || matrixOf(t).inputs > mostInputs {
		return section{}, fmt.Errorf("%s %v was never packed", t.DType, t.Shape)
	}
	dense := section{tensor: t, form: dense, from: c.place(), scales: s.place(), floats: f, matrix: matrixOf(t), unit: unit}
	wanted := packedSections(held{Tensor: t, source: c.source}, unit)
	if err := fits(dense, wanted, s, c); err != nil {
		return section{}, err
	}
	return dense, nil
}

// fits holds stored scales and codes against those that packing writes.
func fits(s section, wanted []section, stored ...held) error {
	if group := s.unit.granule(s.matrix); s.unit.size(s.matrix) <= 0 || s.matrix.inputs%group != 0 || group%4 != 0 {
		return fmt.Errorf("%d inputs do not divide into units of %d", s.matrix.inputs, group)
	}
	for i, h := range stored {
		if want := wanted[i].tensor; h.DType != want.DType || !slices.Equal(h.Shape, want.Shape) {
			return fmt.Errorf("%s is %s %v, want %s %v", h.Name, h.DType, h.Shape, want.DType, want.Shape)
		}
	}
	return nil
}
