package generate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slipway/internal/realshapes"
	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// groupSize is how many weights along the inputs share a scale.
const groupSize = 128

// headName is the untied head, which the published model does not store.
const headName = "lm_head.weight"

// plan is a checkpoint before its values exist.
type plan struct {
	model        realshapes.Model
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

// logical is a tensor of the model and the stored tensors that hold it.
type logical struct {
	name  string
	shape []int64
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
	p := &plan{model: options.Model()}
	contract := p.model.Contract()
	head := contract.Tensors[p.model.Prefix+"embed_tokens.weight"]
	head.Role = manifest.RoleHead
	contract.Tensors[headName] = head
	var tensors []logical
	for _, name := range contract.Names() {
		t, err := store(name, contract.Tensors[name])
		if err != nil {
			return nil, err
		}
		tensors = append(tensors, t)
	}
	count := options.Shards
	if count == 0 {
		count = defaultShards
	}
	p.quantization = manifest.Quantization{
		BaseModel: &contract.Repository, BaseRevision: &contract.Revision, Tensors: map[string]manifest.Quantity{},
		Format: fmt.Sprintf("packed_2bit: U8, four codes a byte, lowest bits first along the input axis; value = (code - 1) * scale; F16 scale per group of %d inputs", groupSize),
	}
	return p, p.distribute(tensors, count)
}

// store says how a tensor of the model is stored: a large linear of the text
// model as codes U8 [N, K/4] and scales F16 [N, K/128], any other as it was
// published.
func store(name string, t manifest.ContractTensor) (logical, error) {
	l := logical{name: name, shape: t.Shape}
	if realshapes.Packable(name) {
		rows, inputs := t.Shape[0], t.Shape[1]
		l.parts = []stored{
			{safetensors.Tensor{Name: name + ".codes", DType: safetensors.U8, Shape: []int64{rows, inputs / 4}}, fillCodes},
			{safetensors.Tensor{Name: name + ".scales", DType: safetensors.F16, Shape: []int64{rows, inputs / groupSize}}, fillScales},
		}
	} else {
		dtype, ok := safetensors.ParseDType(t.DType)
		if !ok {
			return l, fmt.Errorf("tensor %q: dtype %q is unknown", name, t.DType)
		}
		values, err := valuesOf(name, dtype)
		if err != nil {
			return l, err
		}
		l.parts = []stored{{safetensors.Tensor{Name: name, DType: dtype, Shape: t.Shape}, values}}
	}
	for i := range l.parts {
		placed, err := safetensors.Layout([]safetensors.Tensor{l.parts[i].tensor})
		if err != nil {
			return l, err
		}
		l.parts[i].tensor = placed[0]
	}
	return l, nil
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
		p.quantization.Tensors[t.name] = t.entry(s.name)
	}
	for i := range p.shards {
		s := &p.shards[i]
		slices.SortFunc(s.stored, func(a, b stored) int { return strings.Compare(a.tensor.Name, b.tensor.Name) })
		placed, err := safetensors.Layout(s.tensors())
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for j := range placed {
			s.stored[j].tensor = placed[j]
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

// entry is the tensor's entry of the quantization manifest.
func (l logical) entry(file string) manifest.Quantity {
	at := func(i int) *manifest.StoredTensor {
		return &manifest.StoredTensor{File: file, Tensor: l.parts[i].tensor.Name}
	}
	if len(l.parts) == 2 {
		return manifest.Quantity{Kind: manifest.KindPacked2Bit, Shape: l.shape, GroupSize: groupSize, Codes: at(0), Scales: at(1)}
	}
	return manifest.Quantity{Kind: manifest.KindFloat, Shape: l.shape, File: file, Tensor: at(0).Tensor}
}
