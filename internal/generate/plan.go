package generate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// checkpoint is what a family stores, before it is cut into shards.
type checkpoint struct {
	base    manifest.Contract // its repository and revision
	config  any               // of config.json
	format  string            // what the quantization manifest says of all entries
	tensors []logical
}

// plan is a checkpoint before its values exist.
type plan struct {
	config       any
	shards       []shard
	quantization manifest.Quantization
}

type shard struct {
	name   string
	stored []stored // in file order
}

// stored is a tensor of a shard and what its values look like. Begin and End
// of the tensor are its place in the shard's data.
type stored struct {
	tensor safetensors.Tensor
	fill   fill
}

// logical is a tensor of the model and the stored tensors that hold it. Its
// entry of the quantization manifest lacks what says where they are.
type logical struct {
	name  string
	entry manifest.Quantity
	parts []stored // codes and scales, or one float tensor
}

func (l logical) bytes() int64 {
	total := int64(0)
	for _, part := range l.parts {
		total += part.tensor.Bytes()
	}
	return total
}

func makePlan(options Options) (*plan, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	store := storeQwen
	if options.Family != Qwen35 {
		store = storeMaple
	}
	c, err := store(options)
	if err != nil {
		return nil, err
	}
	count := options.Shards
	if count == 0 {
		count = defaultShards
	}
	p := &plan{config: c.config, quantization: manifest.Quantization{
		BaseModel: &c.base.Repository, BaseRevision: &c.base.Revision, Tensors: map[string]manifest.Quantity{}, Format: c.format,
	}}
	return p, p.distribute(c.tensors, count)
}

// placed returns a logical tensor whose parts know their sizes.
func placed(name string, entry manifest.Quantity, parts ...stored) (logical, error) {
	for i := range parts {
		laid, err := safetensors.Layout([]safetensors.Tensor{parts[i].tensor})
		if err != nil {
			return logical{}, err
		}
		parts[i].tensor = laid[0]
	}
	return logical{name, entry, parts}, nil
}

// plain returns a tensor that is stored as it was published.
func plain(kind, unit, name string, dtype safetensors.DType, shape []int64, values fill) (logical, error) {
	return placed(name, manifest.Quantity{Kind: kind, Unit: unit, Shape: shape}, stored{safetensors.Tensor{Name: name, DType: dtype, Shape: shape}, values})
}

// distribute gives each tensor, the largest first, to the shard that is the
// smallest so far. So shards are as equal as whole tensors allow.
func (p *plan) distribute(tensors []logical, count int) error {
	slices.SortStableFunc(tensors, func(a, b logical) int {
		return cmp.Or(cmp.Compare(b.bytes(), a.bytes()), strings.Compare(a.name, b.name))
	})
	p.shards = make([]shard, count)
	sizes := make([]int64, count)
	for i := range p.shards {
		p.shards[i].name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, count)
	}
	for _, t := range tensors {
		i := slices.Index(sizes, slices.Min(sizes))
		sizes[i] += t.bytes()
		s := &p.shards[i]
		s.stored = append(s.stored, t.parts...)
		p.quantization.Tensors[t.name] = t.in(s.name)
	}
	for i := range p.shards {
		s := &p.shards[i]
		slices.SortFunc(s.stored, func(a, b stored) int { return strings.Compare(a.tensor.Name, b.tensor.Name) })
		laid, err := safetensors.Layout(s.tensors())
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for j := range laid {
			s.stored[j].tensor = laid[j]
		}
	}
	return nil
}

func (s shard) tensors() []safetensors.Tensor {
	tensors := make([]safetensors.Tensor, len(s.stored))
	for i, t := range s.stored {
		tensors[i] = t.tensor
	}
	return tensors
}

// in is the tensor's entry where its parts are in a file.
func (l logical) in(file string) manifest.Quantity {
	at := func(i int) *manifest.StoredTensor {
		return &manifest.StoredTensor{File: file, Tensor: l.parts[i].tensor.Name}
	}
	entry := l.entry
	if len(l.parts) == 2 {
		entry.Codes, entry.Scales = at(0), at(1)
	} else {
		entry.File, entry.Tensor = file, at(0).Tensor
	}
	return entry
}
