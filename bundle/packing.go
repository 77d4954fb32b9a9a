package bundle

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"

	"slipway/bundle/config"
	"slipway/bundle/pack"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
)

// Packing is what Inspect found out about weights that do not stay as they are:
// packed, cut into smaller shards, or without a head that repeats the embedding.
type Packing struct {
	Checkpoint *pack.Checkpoint
	Survey     *pack.Survey
	Options    pack.Options
}

// packing looks at the weights of a block whose shards may change; nil where
// they stay.
func (in *inspection) packing(w config.Weights) (*Packing, error) {
	wishes := pack.Options{
		Ternary: w.Pack.Value == config.PackTernary, DropTiedHead: w.DropTiedHead.Value, MaxShard: w.MaxShard.Value,
		Workers: in.options.Workers, Phase: in.options.Phase, Progress: in.options.Progress,
	}
	if !wishes.Ternary && !wishes.DropTiedHead && wishes.MaxShard == 0 {
		return nil, nil
	}
	checkpoint, err := pack.ReadCheckpoint(in.ctx, in.root, w.From.Value)
	if err != nil {
		return nil, err
	}
	if err := checkpoint.SetQuantization(in.Documents[w.Manifest.Value]); err != nil {
		return nil, fmt.Errorf("read %s: %w", w.Manifest.Value, err)
	}
	survey, err := pack.Look(in.ctx, in.root, checkpoint, wishes)
	if err != nil {
		return nil, err
	}
	return &Packing{checkpoint, survey, wishes}, nil
}

// arrange decides what becomes of a block's shards; nil where they stay.
func (p *planner) arrange(i int, w config.Weights) (*pack.Output, error) {
	packing := p.found.Packings[i]
	if packing == nil {
		return nil, nil
	}
	if unchanged := p.profile.VisionMTP == profiles.Needed || p.profile.VisionMTP == profiles.Added; packing.Options.Ternary && unchanged {
		return nil, manifest.WithHint(fmt.Errorf("%s: profile %s wants the base's tensors unchanged, which packing would not leave", w.Pack.At, p.profile.Name), `write pack = "keep"`)
	}
	out, err := pack.Arrange(packing.Checkpoint, packing.Survey, packing.Options)
	if err != nil {
		return nil, err
	}
	for name, same := range packing.Survey.Dropped {
		p.plan.Notes = append(p.plan.Notes, fmt.Sprintf("%s is left out: it repeats %s", name, same))
		for _, source := range packing.Checkpoint.Sources {
			if t, stored := source.Header.Lookup(name); stored {
				p.dropped += t.Elements()
			}
		}
	}
	p.plan.Notes = append(p.plan.Notes, out.Notes...)
	if out.Unchanged(packing.Checkpoint) {
		return nil, nil
	}
	return out, nil
}

// addArranged plans the files that arranged weights consist of.
func (p *planner) addArranged(w config.Weights, out *pack.Output) error {
	folder := p.weightsFolder(w)
	for _, shard := range out.Shards {
		file := PlannedFile{
			Path: path.Join(folder, shard.Name), Mode: manifest.ModeFile, Size: shard.Size, Kind: manifest.KindWeight,
			Why: fmt.Sprintf("generated: tensors of weights %q", w.Label), shard: shard,
		}
		if shard.Unchanged != nil {
			file.Source, file.shard, file.Why = shard.Unchanged.Path, nil, fmt.Sprintf("weight shard of weights %q", w.Label)
		}
		p.plan.Files = append(p.plan.Files, file)
	}
	if out.Index != nil {
		p.addGenerated(path.Join(folder, safetensors.IndexName), "generated: says which shard holds which tensor", out.Index)
	}
	if out.Quantization == nil {
		return nil
	}
	q := out.QuantizationBelow(folder)
	p.nameBase(w, &q)
	data, err := q.Encode()
	if err != nil {
		return fmt.Errorf("write %s: %w", manifest.QuantizationPath, err)
	}
	p.addGenerated(manifest.QuantizationPath, "generated: says how each tensor is stored", data)
	p.countQuantized(q)
	return nil
}

// nameBase says in a quantization manifest what it was made from, if it does
// not say so.
func (p *planner) nameBase(w config.Weights, q *manifest.Quantization) {
	for _, b := range p.wanted.Bases {
		if q.BaseModel == nil && (b.Label == w.Base.Value || w.Base.Value == "" && len(p.wanted.Bases) == 1) {
			q.BaseModel, q.BaseRevision = &b.Repository.Value, &b.Revision.Value
		}
	}
}

func (p *planner) addGenerated(name, why string, data []byte) {
	p.plan.Files = append(p.plan.Files, PlannedFile{Path: name, Mode: manifest.ModeFile, Size: int64(len(data)), Kind: kindOf(name), Why: why, content: data})
}

// make makes a shard's bytes, into target too where there is one, and digests
// them.
func (s *Sealed) make(ctx context.Context, file PlannedFile, target *os.File, options Options) (manifest.Digest, error) {
	made := file.shard.Open(ctx, s.roots[file.folder])
	defer made.Close()
	h := manifest.NewHash()
	sink := io.Writer(h)
	if target != nil {
		sink = io.MultiWriter(target, h)
	}
	n, err := content.CopyBlocks(ctx, sink, made, options.Progress)
	if err == nil && n != file.Size {
		err = fmt.Errorf("has %d bytes, want %d", n, file.Size)
	}
	if err != nil {
		return manifest.Digest{}, fmt.Errorf("make %s: %w", file.Path, err)
	}
	return manifest.FinishHash(h), nil
}
