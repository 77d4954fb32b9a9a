package shrink

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// dimensions are the numbers of a text model or of a vision encoder, by the names
// that config.json gives them, and the two that it does not give: gate (1, or 2
// where queries come with an output gate) and merged (patches to an image token).
type dimensions map[string]int64

// largestDimension is far above that of any model's tensor.
const largestDimension = 1 << 40

// shape evaluates a formula: dimensions apart by spaces, each a sum of products of
// names and whole numbers.
func (d dimensions) shape(formula string) ([]int64, error) {
	var shape []int64
	for _, expression := range strings.Fields(formula) {
		sum := int64(0)
		for product := range strings.SplitSeq(expression, "+") {
			n, err := d.product(product)
			if err != nil {
				return nil, err
			}
			sum += n
		}
		shape = append(shape, sum)
	}
	return shape, nil
}

func (d dimensions) product(product string) (int64, error) {
	n := int64(1)
	for factor := range strings.SplitSeq(product, "*") {
		value, err := strconv.ParseInt(factor, 10, 64)
		if err != nil {
			value = d[factor]
		}
		switch {
		case value < 1:
			return 0, unshrinkable("config.json has no %s", factor)
		case n > largestDimension/value:
			return 0, unshrinkable("%s of config.json is more than %d", product, int64(largestDimension))
		}
		n *= value
	}
	return n, nil
}

// The shapes of tensors by their names, in the convention that checkpoints of the
// Hugging Face hub share: those that occur once, those of a layer, and the same
// of a vision encoder. A bias has the first dimension of its weight. An index of
// an expert is written *.
var (
	textShapes = map[string]string{
		"embed_tokens.weight": "vocab_size hidden_size", "word_embeddings.weight": "vocab_size hidden_size",
		"lm_head.weight": "vocab_size hidden_size", "norm.weight": "hidden_size",
	}
	layerShapes = map[string]string{
		"input_layernorm.weight": "hidden_size", "post_attention_layernorm.weight": "hidden_size",

		"self_attn.q_proj.weight": "gate*num_attention_heads*head_dim hidden_size",
		"self_attn.k_proj.weight": "num_key_value_heads*head_dim hidden_size",
		"self_attn.v_proj.weight": "num_key_value_heads*head_dim hidden_size",
		"self_attn.o_proj.weight": "hidden_size num_attention_heads*head_dim",
		"self_attn.q_norm.weight": "head_dim", "self_attn.k_norm.weight": "head_dim",

		"mlp.gate_proj.weight": "intermediate_size hidden_size", "mlp.up_proj.weight": "intermediate_size hidden_size",
		"mlp.down_proj.weight": "hidden_size intermediate_size",

		"mlp.gate.weight": "num_experts hidden_size", "mlp.gate.expert_bias": "num_experts",
		"mlp.experts.*.gate_proj.weight": "moe_intermediate_size hidden_size", "mlp.experts.*.up_proj.weight": "moe_intermediate_size hidden_size",
		"mlp.experts.*.down_proj.weight":  "hidden_size moe_intermediate_size",
		"mlp.experts.gate_up_proj":        "num_experts 2*moe_intermediate_size hidden_size",
		"mlp.experts.down_proj":           "num_experts hidden_size moe_intermediate_size",
		"mlp.switch_mlp.gate_proj.weight": "num_experts moe_intermediate_size hidden_size",
		"mlp.switch_mlp.up_proj.weight":   "num_experts moe_intermediate_size hidden_size",
		"mlp.switch_mlp.down_proj.weight": "num_experts hidden_size moe_intermediate_size",

		"linear_attn.A_log": "linear_num_value_heads", "linear_attn.dt_bias": "linear_num_value_heads", "linear_attn.norm.weight": "linear_value_head_dim",
		"linear_attn.conv1d.weight":      deltaChannels + " 1 linear_conv_kernel_dim",
		"linear_attn.in_proj_qkv.weight": deltaChannels + " hidden_size",
		"linear_attn.in_proj_z.weight":   "linear_num_value_heads*linear_value_head_dim hidden_size",
		"linear_attn.in_proj_a.weight":   "linear_num_value_heads hidden_size", "linear_attn.in_proj_b.weight": "linear_num_value_heads hidden_size",
		"linear_attn.out_proj.weight": "hidden_size linear_num_value_heads*linear_value_head_dim",
	}
	predictionShapes = map[string]string{ // of multi-token prediction; its layers are the text model's
		"fc.weight": "hidden_size 2*hidden_size", "norm.weight": "hidden_size",
		"pre_fc_norm_embedding.weight": "hidden_size", "pre_fc_norm_hidden.weight": "hidden_size",
	}
	visionShapes = map[string]string{
		"patch_embed.proj.weight": "hidden_size in_channels temporal_patch_size patch_size patch_size",
		"pos_embed.weight":        "num_position_embeddings hidden_size",
		"merger.ln_q.weight":      "hidden_size", "merger.norm.weight": "hidden_size", "merger.norm.bias": "hidden_size",
		"merger.mlp.0.weight": "merged*hidden_size merged*hidden_size", "merger.linear_fc1.weight": "merged*hidden_size merged*hidden_size",
		"merger.mlp.2.weight": "out_hidden_size merged*hidden_size", "merger.linear_fc2.weight": "out_hidden_size merged*hidden_size",
	}
	blockShapes = map[string]string{
		"norm1.weight": "hidden_size", "norm2.weight": "hidden_size",
		"attn.qkv.weight": "3*hidden_size hidden_size", "attn.proj.weight": "hidden_size hidden_size",
		"mlp.gate_proj.weight": "intermediate_size hidden_size", "mlp.up_proj.weight": "intermediate_size hidden_size",
		"mlp.down_proj.weight":  "hidden_size intermediate_size",
		"mlp.linear_fc1.weight": "intermediate_size hidden_size", "mlp.linear_fc2.weight": "hidden_size intermediate_size",
	}
)

const deltaChannels = "2*linear_num_key_heads*linear_key_head_dim+linear_num_value_heads*linear_value_head_dim"

// place is where a tensor belongs.
type place struct {
	vision     bool
	prediction bool   // in the head of multi-token prediction
	layer      int64  // -1 for none
	expert     int64  // -1 for none
	formula    string // of its shape
}

// placeOf finds a logical tensor by its name; ok is false for one that has no
// known shape.
func placeOf(name string) (p place, ok bool) {
	p = place{layer: -1, expert: -1}
	once, layered, list := textShapes, layerShapes, "layers."
	rest := ""
	for _, prefix := range prefixes {
		if rest, ok = strings.CutPrefix(name, prefix.text); ok {
			p.vision, p.prediction = prefix.vision, prefix.prediction
			break
		}
	}
	switch {
	case p.vision:
		once, layered, list = visionShapes, blockShapes, "blocks."
	case p.prediction:
		once = predictionShapes
	case !ok && name != "lm_head.weight": // the head stands beside the model
		return p, false
	case !ok:
		rest = name
	}
	shapes := once
	if below, inLayer := strings.CutPrefix(rest, list); inLayer {
		if p.layer, rest, ok = cutIndex(below); !ok {
			return p, false
		}
		shapes = layered
	}
	if of, below, inExpert := strings.Cut(rest, "experts."); inExpert {
		if index, projection, ok := cutIndex(below); ok {
			p.expert, rest = index, of+"experts.*."+projection
		}
	}
	p.formula = formulaOf(shapes, rest)
	return p, p.formula != ""
}

// prefixes are those of names, longer ones before what they begin with.
var prefixes = []struct {
	text               string
	vision, prediction bool
}{
	{"model.visual.", true, false}, {"visual.", true, false}, {"mtp.", false, true},
	{"model.language_model.", false, false}, {"language_model.model.", false, false}, {"language_model.", false, false}, {"model.", false, false},
}

// cutIndex splits "12.name".
func cutIndex(text string) (index int64, rest string, ok bool) {
	number, rest, ok := strings.Cut(text, ".")
	index, err := strconv.ParseInt(number, 10, 32)
	return index, rest, ok && err == nil && index >= 0
}

// formulaOf looks a name up; that of a bias is its weight's first dimension.
func formulaOf(shapes map[string]string, name string) string {
	if formula := shapes[name]; formula != "" {
		return formula
	}
	if weight, isBias := strings.CutSuffix(name, ".bias"); isBias {
		first, _, _ := strings.Cut(shapes[weight+".weight"], " ")
		return first
	}
	return ""
}

// kept returns how many layers a twin has: the first of each kind are among them.
// What a layer's kind is, its tensors' names say, and what config.json says of it.
func kept(layers int64, kinds map[int64]string) int64 {
	seen, n := map[string]bool{}, int64(1)
	for layer := range layers {
		if kind := kinds[layer]; !seen[kind] {
			seen[kind], n = true, layer+1
		}
	}
	return n
}

// kindsOf returns what tells layers apart by their tensors' names.
func kindsOf(names map[int64][]string) map[int64]string {
	kinds := map[int64]string{}
	for layer, list := range names {
		slices.Sort(list)
		kinds[layer] = fmt.Sprint(slices.Compact(list))
	}
	return kinds
}
