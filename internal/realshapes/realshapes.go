// Package realshapes generates the tensor names, shapes, types and roles of
// published models from their dimensions, so that contracts, fixtures of real
// size and synthetic weights agree with each other and need no download. The
// text model's shapes are those of the published checkpoint. The vision
// encoder's dimensions are those of the configuration of a fine-tune of it that
// keeps the encoder; the types of its tensors are taken to be BF16.
package realshapes

import (
	"fmt"
	"strings"

	"slipway/manifest"
)

// Model has the dimensions of a Qwen3.5 model: a text model whose layers mix
// gated delta nets with gated full attention, a vision encoder, and layers for
// multi-token prediction. Fewer layers make a slice of the same shapes.
type Model struct {
	Repository string
	Revision   string
	Prefix     string // of the text model's names

	Vocabulary, Hidden, Intermediate int64
	Layers                           int
	FullAttentionInterval            int // every so manieth layer is full attention
	Heads, KeyValueHeads, HeadDim    int64

	LinearKeyHeads, LinearValueHeads, LinearHeadDim, LinearKernel int64

	VisionDepth                      int // 0: no vision encoder
	VisionHidden, VisionIntermediate int64
	VisionPositions, VisionMerge     int64 // learned positions; patches merged along each side
	VisionPatch                      []int64
	PredictionLayers                 int // multi-token prediction; 0: none
}

// Qwen35With4B returns the dimensions of Qwen/Qwen3.5-4B at the revision that
// the ternary task pins.
func Qwen35With4B() Model {
	return Model{
		Repository: "Qwen/Qwen3.5-4B", Revision: "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a", Prefix: "model.language_model.",
		Vocabulary: 248320, Hidden: 2560, Intermediate: 9216, Layers: 32, FullAttentionInterval: 4,
		Heads: 16, KeyValueHeads: 4, HeadDim: 256,
		LinearKeyHeads: 16, LinearValueHeads: 32, LinearHeadDim: 128, LinearKernel: 4,
		VisionDepth: 24, VisionHidden: 1024, VisionIntermediate: 4096, VisionPositions: 2304, VisionMerge: 2,
		VisionPatch: []int64{3, 2, 16, 16}, PredictionLayers: 1,
	}
}

// Contract returns all tensors. The embedding serves as head.
func (m Model) Contract() manifest.Contract {
	b := &builder{model: m, tensors: map[string]manifest.ContractTensor{}}
	b.text()
	b.vision()
	b.prediction()
	return manifest.Contract{
		Schema: 1, Repository: m.Repository, Revision: m.Revision, TiedHead: true, Tensors: b.tensors,
	}
}

// Packable reports whether a name is that of a large linear of the text model,
// one that ternary quantization packs. The two small projections of a delta
// net, in_proj_a and in_proj_b, are not.
func Packable(name string) bool {
	if strings.HasPrefix(name, "mtp.") || strings.Contains(name, "visual.") {
		return false
	}
	for _, suffix := range []string{
		"in_proj_qkv", "in_proj_z", "out_proj", "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
	} {
		if strings.HasSuffix(name, "."+suffix+".weight") {
			return true
		}
	}
	return false
}

type builder struct {
	model   Model
	role    manifest.Role
	tensors map[string]manifest.ContractTensor
}

func (b *builder) add(name string, shape ...int64) { b.addAs("BF16", name, shape...) }

func (b *builder) addAs(dtype, name string, shape ...int64) {
	b.tensors[name] = manifest.ContractTensor{DType: dtype, Shape: shape, Role: b.role}
}

func (b *builder) text() {
	m := b.model
	b.role = manifest.RoleEmbedding
	b.add(m.Prefix+"embed_tokens.weight", m.Vocabulary, m.Hidden)
	b.role = manifest.RoleBackbone
	b.add(m.Prefix+"norm.weight", m.Hidden)
	for i := range m.Layers {
		prefix := fmt.Sprintf("%slayers.%d.", m.Prefix, i)
		b.block(prefix)
		if (i+1)%m.FullAttentionInterval == 0 {
			b.attention(prefix + "self_attn.")
		} else {
			b.deltaNet(prefix + "linear_attn.")
		}
	}
}

// block adds what every layer has around its mixer.
func (b *builder) block(prefix string) {
	m := b.model
	b.add(prefix+"input_layernorm.weight", m.Hidden)
	b.add(prefix+"post_attention_layernorm.weight", m.Hidden)
	b.add(prefix+"mlp.gate_proj.weight", m.Intermediate, m.Hidden)
	b.add(prefix+"mlp.up_proj.weight", m.Intermediate, m.Hidden)
	b.add(prefix+"mlp.down_proj.weight", m.Hidden, m.Intermediate)
}

func (b *builder) attention(prefix string) {
	m := b.model
	b.add(prefix+"q_proj.weight", 2*m.Heads*m.HeadDim, m.Hidden) // query and output gate
	b.add(prefix+"k_proj.weight", m.KeyValueHeads*m.HeadDim, m.Hidden)
	b.add(prefix+"v_proj.weight", m.KeyValueHeads*m.HeadDim, m.Hidden)
	b.add(prefix+"o_proj.weight", m.Hidden, m.Heads*m.HeadDim)
	b.add(prefix+"q_norm.weight", m.HeadDim)
	b.add(prefix+"k_norm.weight", m.HeadDim)
}

func (b *builder) deltaNet(prefix string) {
	m := b.model
	keys, values := m.LinearKeyHeads*m.LinearHeadDim, m.LinearValueHeads*m.LinearHeadDim
	b.addAs("F32", prefix+"A_log", m.LinearValueHeads)
	b.addAs("F32", prefix+"norm.weight", m.LinearHeadDim)
	b.add(prefix+"dt_bias", m.LinearValueHeads)
	b.add(prefix+"conv1d.weight", 2*keys+values, 1, m.LinearKernel)
	b.add(prefix+"in_proj_qkv.weight", 2*keys+values, m.Hidden)
	b.add(prefix+"in_proj_z.weight", values, m.Hidden)
	b.add(prefix+"in_proj_a.weight", m.LinearValueHeads, m.Hidden)
	b.add(prefix+"in_proj_b.weight", m.LinearValueHeads, m.Hidden)
	b.add(prefix+"out_proj.weight", m.Hidden, values)
}

func (b *builder) vision() {
	m := b.model
	if m.VisionDepth == 0 {
		return
	}
	b.role = manifest.RoleVision
	pair := func(name string, out, in int64) {
		b.add(name+".weight", out, in)
		b.add(name+".bias", out)
	}
	norm := func(name string) {
		b.add(name+".weight", m.VisionHidden)
		b.add(name+".bias", m.VisionHidden)
	}
	b.add("model.visual.patch_embed.proj.weight", append([]int64{m.VisionHidden}, m.VisionPatch...)...)
	b.add("model.visual.patch_embed.proj.bias", m.VisionHidden)
	b.add("model.visual.pos_embed.weight", m.VisionPositions, m.VisionHidden)
	for i := range m.VisionDepth {
		prefix := fmt.Sprintf("model.visual.blocks.%d.", i)
		norm(prefix + "norm1")
		norm(prefix + "norm2")
		pair(prefix+"attn.qkv", 3*m.VisionHidden, m.VisionHidden)
		pair(prefix+"attn.proj", m.VisionHidden, m.VisionHidden)
		pair(prefix+"mlp.linear_fc1", m.VisionIntermediate, m.VisionHidden)
		pair(prefix+"mlp.linear_fc2", m.VisionHidden, m.VisionIntermediate)
	}
	merged := m.VisionHidden * m.VisionMerge * m.VisionMerge
	norm("model.visual.merger.norm")
	pair("model.visual.merger.linear_fc1", merged, merged)
	pair("model.visual.merger.linear_fc2", m.Hidden, merged)
}

func (b *builder) prediction() {
	m := b.model
	if m.PredictionLayers == 0 {
		return
	}
	b.role = manifest.RoleMTP
	b.add("mtp.fc.weight", m.Hidden, 2*m.Hidden)
	for _, name := range []string{"norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"} {
		b.add("mtp."+name+".weight", m.Hidden)
	}
	for i := range m.PredictionLayers {
		prefix := fmt.Sprintf("mtp.layers.%d.", i)
		b.block(prefix)
		b.attention(prefix + "self_attn.")
	}
}
