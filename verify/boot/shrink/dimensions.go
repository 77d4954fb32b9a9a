package shrink

import (
	"slices"
	"strconv"
	"strings"
)

// dimensions are those of a text model of Qwen3, or of Qwen3.5 (hybrid), whose
// layers mix attention with an output gate and delta nets.
type dimensions struct {
	hybrid                        bool
	vocabulary, hidden            int64
	intermediate, layers          int64
	heads, keyValueHeads, headDim int64
	keyHeads, valueHeads          int64
	keyDim, valueDim, kernel      int64
	interval                      int64  // every so manieth layer is attention, where kinds says nothing
	kinds                         []bool // of each layer: whether it is attention
}

// visionBlocks is how many blocks of a vision encoder a twin keeps: text is
// answered without any.
const visionBlocks = 1

// widest is the hidden size of a twin where the limit allows it; smaller ones
// halve it.
const widest, narrowest = 256, 32

// narrowed returns the dimensions of a twin of a hidden size. Vocabulary and head
// sizes stay, because tokenizer and rotary embedding rest on them; ratios between
// heads stay; layers end with the first of each kind; and a width that was a
// multiple of unit stays one, so that groups and blocks of scales stay whole.
func (d dimensions) narrowed(hidden, unit int64) dimensions {
	to := d
	to.hidden = upTo(hidden, d.hidden, unit)
	to.intermediate = upTo(2*to.hidden, d.intermediate, unit)
	to.layers = int64(slices.Index(d.kinds, true) + 1)
	if to.layers == 0 {
		to.layers = 1
	}
	to.kinds = d.kinds[:to.layers]
	ratio := d.heads / d.keyValueHeads
	to.keyValueHeads = fewest(d.keyValueHeads, unit, d.headDim, ratio*d.headDim)
	to.heads = to.keyValueHeads * ratio
	if d.hybrid {
		ratio := d.valueHeads / d.keyHeads
		to.keyHeads = fewest(d.keyHeads, unit, d.keyDim, ratio*d.valueDim)
		to.valueHeads = to.keyHeads * ratio
	}
	return to
}

// upTo returns n, rounded up to a multiple of unit where the real width is one,
// but not more than that.
func upTo(n, width, unit int64) int64 {
	if width%unit == 0 {
		n = (n + unit - 1) / unit * unit
	}
	return min(n, width)
}

// fewest returns the smallest divisor of count that keeps every width that was a
// multiple of unit a multiple of it. Widths are those of one head.
func fewest(count, unit int64, widths ...int64) int64 {
	for n := int64(1); n < count; n++ {
		legal := func(width int64) bool { return count*width%unit != 0 || n*width%unit == 0 }
		if count%n == 0 && legal(widths[0]) && legal(widths[1]) {
			return n
		}
	}
	return count
}

// place is where a tensor of a text model belongs: a layer, -1 for none.
type place struct {
	layer int64
	name  string // below the layer, or whole
}

// textName splits the name of a tensor of the text model; ok is false for
// another name.
func textName(name string) (p place, ok bool) {
	if name == "lm_head.weight" {
		return place{-1, name}, true
	}
	rest, ok := strings.CutPrefix(name, "model.language_model.")
	if !ok {
		if rest, ok = strings.CutPrefix(name, "model."); !ok {
			return place{}, false
		}
	}
	return layered(rest)
}

func layered(rest string) (place, bool) {
	below, ok := strings.CutPrefix(rest, "layers.")
	if !ok {
		return place{-1, rest}, true
	}
	number, name, ok := strings.Cut(below, ".")
	n, err := strconv.ParseInt(number, 10, 32)
	return place{n, name}, ok && err == nil && n >= 0
}

// shape returns the shape of a logical tensor, nil for one that the architecture
// does not have.
func (d dimensions) shape(name string) []int64 {
	if rest, ok := strings.CutPrefix(name, "mtp."); ok && d.hybrid {
		return d.predictionShape(rest)
	}
	p, ok := textName(name)
	if !ok || p.layer >= d.layers {
		return nil
	}
	if p.layer < 0 {
		return map[string][]int64{
			"embed_tokens.weight": {d.vocabulary, d.hidden}, "lm_head.weight": {d.vocabulary, d.hidden}, "norm.weight": {d.hidden},
		}[p.name]
	}
	if d.kinds[p.layer] {
		return d.attentionLayer()[p.name]
	}
	return d.deltaLayer()[p.name]
}

// predictionShape is shape for the multi-token-prediction head, whose layers are
// attention.
func (d dimensions) predictionShape(rest string) []int64 {
	p, ok := layered(rest)
	switch {
	case !ok:
		return nil
	case p.layer >= 0:
		return d.attentionLayer()[p.name]
	}
	return map[string][]int64{
		"fc.weight": {d.hidden, 2 * d.hidden}, "norm.weight": {d.hidden},
		"pre_fc_norm_embedding.weight": {d.hidden}, "pre_fc_norm_hidden.weight": {d.hidden},
	}[p.name]
}

// around returns what every layer has beside its mixer.
func (d dimensions) around() map[string][]int64 {
	return map[string][]int64{
		"input_layernorm.weight": {d.hidden}, "post_attention_layernorm.weight": {d.hidden},
		"mlp.gate_proj.weight": {d.intermediate, d.hidden}, "mlp.up_proj.weight": {d.intermediate, d.hidden}, "mlp.down_proj.weight": {d.hidden, d.intermediate},
	}
}

func (d dimensions) attentionLayer() map[string][]int64 {
	shapes := d.around()
	query, keys := d.heads*d.headDim, d.keyValueHeads*d.headDim
	projected := query
	if d.hybrid {
		projected *= 2 // query and output gate
	}
	shapes["self_attn.q_proj.weight"], shapes["self_attn.o_proj.weight"] = []int64{projected, d.hidden}, []int64{d.hidden, query}
	shapes["self_attn.k_proj.weight"], shapes["self_attn.v_proj.weight"] = []int64{keys, d.hidden}, []int64{keys, d.hidden}
	shapes["self_attn.q_norm.weight"], shapes["self_attn.k_norm.weight"] = []int64{d.headDim}, []int64{d.headDim}
	return shapes
}

func (d dimensions) deltaLayer() map[string][]int64 {
	shapes := d.around()
	values := d.valueHeads * d.valueDim
	channels := 2*d.keyHeads*d.keyDim + values
	for name, shape := range map[string][]int64{
		"A_log": {d.valueHeads}, "dt_bias": {d.valueHeads}, "norm.weight": {d.valueDim}, "conv1d.weight": {channels, 1, d.kernel},
		"in_proj_qkv.weight": {channels, d.hidden}, "in_proj_z.weight": {values, d.hidden},
		"in_proj_a.weight": {d.valueHeads, d.hidden}, "in_proj_b.weight": {d.valueHeads, d.hidden}, "out_proj.weight": {d.hidden, values},
	} {
		shapes["linear_attn."+name] = shape
	}
	return shapes
}
