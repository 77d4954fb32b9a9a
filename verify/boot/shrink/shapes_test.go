package shrink

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// published is what a config.json says, for the tests' own account of which
// tensors follow from it: written from the families' equations, family by family,
// and not from what the package under test knows.
type published struct {
	Architectures []string
	textNumbers
	Text   *textNumbers  `json:"text_config"`
	Vision visionNumbers `json:"vision_config"`
}

type textNumbers struct {
	Vocabulary   int      `json:"vocab_size"`
	Hidden       int      `json:"hidden_size"`
	Intermediate int      `json:"intermediate_size"`
	Expert       int      `json:"moe_intermediate_size"`
	Layers       int      `json:"num_hidden_layers"`
	Heads        int      `json:"num_attention_heads"`
	KeyValues    int      `json:"num_key_value_heads"`
	HeadDim      int      `json:"head_dim"`
	Experts      int      `json:"num_experts"`
	Chosen       int      `json:"num_experts_per_tok"`
	Dense        []int    `json:"mlp_only_layers"`
	Kinds        []string `json:"layer_types"`
	Tied         bool     `json:"tie_word_embeddings"`
	KeyHeads     int      `json:"linear_num_key_heads"`
	ValueHeads   int      `json:"linear_num_value_heads"`
	KeyDim       int      `json:"linear_key_head_dim"`
	ValueDim     int      `json:"linear_value_head_dim"`
	Kernel       int      `json:"linear_conv_kernel_dim"`
	Prediction   int      `json:"mtp_num_hidden_layers"`
}

type visionNumbers struct {
	Depth        int   `json:"depth"`
	Hidden       int   `json:"hidden_size"`
	Intermediate int   `json:"intermediate_size"`
	Heads        int   `json:"num_heads"`
	Channels     int   `json:"in_channels"`
	OldChannels  int   `json:"in_chans"`
	Patch        int   `json:"patch_size"`
	Frames       int   `json:"temporal_patch_size"`
	Merge        int   `json:"spatial_merge_size"`
	Positions    int   `json:"num_position_embeddings"`
	Out          int   `json:"out_hidden_size"`
	Full         []int `json:"fullatt_block_indexes"`
}

// shapesOf returns the tensors that a config.json calls for, by name.
func shapesOf(t testing.TB, config []byte) map[string][]int64 {
	t.Helper()
	var p published
	if err := json.Unmarshal(config, &p); err != nil {
		t.Fatal(err)
	}
	a := account{}
	text, prefix := p.textNumbers, "model."
	if p.Text != nil {
		text, prefix = *p.Text, "model.language_model."
	}
	vision := p.Vision
	switch p.Architectures[0] {
	case "Qwen3ForCausalLM":
		a.decoder(prefix, text, attention{norms: true}, "embed_tokens")
	case "LlamaForCausalLM", "MistralForCausalLM":
		a.decoder(prefix, text, attention{}, "embed_tokens")
	case "Qwen2ForCausalLM":
		a.decoder(prefix, text, attention{biases: true}, "embed_tokens")
	case "Qwen3MoeForCausalLM":
		a.decoder(prefix, text, attention{norms: true}, "embed_tokens")
	case "MapleForCausalLM":
		text.Dense = nil
		a.decoder(prefix, text, attention{norms: true}, "word_embeddings")
	case "Qwen2_5_VLForConditionalGeneration":
		a.decoder(prefix, text, attention{biases: true}, "embed_tokens")
		vision.Channels += vision.OldChannels
		if p.Text == nil {
			a.windowed("visual.", vision)
		} else {
			a.windowed("model.visual.", vision)
		}
	case "Qwen3_5ForConditionalGeneration":
		a.decoder(prefix, text, attention{norms: true, gate: true}, "embed_tokens")
		a.encoder("model.visual.", vision)
		a.prediction(text)
	default:
		t.Fatalf("no account of %s", p.Architectures[0])
	}
	return a
}

type account map[string][]int64

func (a account) add(name string, shape ...int) {
	for _, n := range shape {
		a[name] = append(a[name], int64(n))
	}
}

// linear adds a matrix and, where it has one, its bias.
func (a account) linear(name string, out, in int, bias bool) {
	a.add(name+".weight", out, in)
	if bias {
		a.add(name+".bias", out)
	}
}

type attention struct{ norms, biases, gate bool }

func (a account) decoder(prefix string, d textNumbers, kind attention, embedding string) {
	a.add(prefix+embedding+".weight", d.Vocabulary, d.Hidden)
	a.add(prefix+"norm.weight", d.Hidden)
	if !d.Tied {
		a.add("lm_head.weight", d.Vocabulary, d.Hidden)
	}
	for i := range d.Layers {
		layer := fmt.Sprintf("%slayers.%d.", prefix, i)
		if d.ValueHeads > 0 && d.Kinds[i] == "linear_attention" {
			a.deltaNet(layer+"linear_attn.", d)
		} else {
			a.attention(layer+"self_attn.", d, kind)
		}
		a.add(layer+"input_layernorm.weight", d.Hidden)
		a.add(layer+"post_attention_layernorm.weight", d.Hidden)
		if d.Experts == 0 || slices.Contains(d.Dense, i) {
			a.mlp(layer+"mlp.", d.Intermediate, d.Hidden)
			continue
		}
		a.add(layer+"mlp.gate.weight", d.Experts, d.Hidden)
		for expert := range d.Experts {
			a.mlp(fmt.Sprintf("%smlp.experts.%d.", layer, expert), d.Expert, d.Hidden)
		}
	}
}

func (a account) mlp(prefix string, inner, outer int) {
	a.linear(prefix+"gate_proj", inner, outer, false)
	a.linear(prefix+"up_proj", inner, outer, false)
	a.linear(prefix+"down_proj", outer, inner, false)
}

func (a account) attention(prefix string, d textNumbers, kind attention) {
	head := d.HeadDim
	if head == 0 {
		head = d.Hidden / d.Heads
	}
	queries := d.Heads * head
	if kind.gate {
		queries *= 2
	}
	a.linear(prefix+"q_proj", queries, d.Hidden, kind.biases)
	a.linear(prefix+"k_proj", d.KeyValues*head, d.Hidden, kind.biases)
	a.linear(prefix+"v_proj", d.KeyValues*head, d.Hidden, kind.biases)
	a.linear(prefix+"o_proj", d.Hidden, d.Heads*head, false)
	if kind.norms {
		a.add(prefix+"q_norm.weight", head)
		a.add(prefix+"k_norm.weight", head)
	}
}

func (a account) deltaNet(prefix string, d textNumbers) {
	keys, values := d.KeyHeads*d.KeyDim, d.ValueHeads*d.ValueDim
	a.linear(prefix+"in_proj_qkv", keys+keys+values, d.Hidden, false)
	a.linear(prefix+"in_proj_z", values, d.Hidden, false)
	a.linear(prefix+"in_proj_a", d.ValueHeads, d.Hidden, false)
	a.linear(prefix+"in_proj_b", d.ValueHeads, d.Hidden, false)
	a.linear(prefix+"out_proj", d.Hidden, values, false)
	a.add(prefix+"conv1d.weight", keys+keys+values, 1, d.Kernel)
	a.add(prefix+"A_log", d.ValueHeads)
	a.add(prefix+"dt_bias", d.ValueHeads)
	a.add(prefix+"norm.weight", d.ValueDim)
}

// prediction adds Qwen3.5's head for multi-token prediction.
func (a account) prediction(d textNumbers) {
	a.linear("mtp.fc", d.Hidden, 2*d.Hidden, false)
	for _, norm := range []string{"norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"} {
		a.add("mtp."+norm+".weight", d.Hidden)
	}
	for i := range d.Prediction {
		layer := fmt.Sprintf("mtp.layers.%d.", i)
		a.attention(layer+"self_attn.", d, attention{norms: true, gate: true})
		a.mlp(layer+"mlp.", d.Intermediate, d.Hidden)
		a.add(layer+"input_layernorm.weight", d.Hidden)
		a.add(layer+"post_attention_layernorm.weight", d.Hidden)
	}
}

// windowed adds Qwen2.5-VL's encoder.
func (a account) windowed(prefix string, d visionNumbers) {
	a.add(prefix+"patch_embed.proj.weight", d.Hidden, d.Channels, d.Frames, d.Patch, d.Patch)
	for i := range d.Depth {
		block := fmt.Sprintf("%sblocks.%d.", prefix, i)
		a.add(block+"norm1.weight", d.Hidden)
		a.add(block+"norm2.weight", d.Hidden)
		a.linear(block+"attn.qkv", 3*d.Hidden, d.Hidden, true)
		a.linear(block+"attn.proj", d.Hidden, d.Hidden, true)
		a.linear(block+"mlp.gate_proj", d.Intermediate, d.Hidden, true)
		a.linear(block+"mlp.up_proj", d.Intermediate, d.Hidden, true)
		a.linear(block+"mlp.down_proj", d.Hidden, d.Intermediate, true)
	}
	merged := d.Hidden * d.Merge * d.Merge
	a.add(prefix+"merger.ln_q.weight", d.Hidden)
	a.linear(prefix+"merger.mlp.0", merged, merged, true)
	a.linear(prefix+"merger.mlp.2", d.Out, merged, true)
}

// encoder adds Qwen3.5's.
func (a account) encoder(prefix string, d visionNumbers) {
	norm := func(name string) {
		a.add(prefix+name+".weight", d.Hidden)
		a.add(prefix+name+".bias", d.Hidden)
	}
	a.add(prefix+"patch_embed.proj.weight", d.Hidden, d.Channels, d.Frames, d.Patch, d.Patch)
	a.add(prefix+"patch_embed.proj.bias", d.Hidden)
	a.add(prefix+"pos_embed.weight", d.Positions, d.Hidden)
	for i := range d.Depth {
		block := fmt.Sprintf("blocks.%d.", i)
		norm(block + "norm1")
		norm(block + "norm2")
		a.linear(prefix+block+"attn.qkv", 3*d.Hidden, d.Hidden, true)
		a.linear(prefix+block+"attn.proj", d.Hidden, d.Hidden, true)
		a.linear(prefix+block+"mlp.linear_fc1", d.Intermediate, d.Hidden, true)
		a.linear(prefix+block+"mlp.linear_fc2", d.Hidden, d.Intermediate, true)
	}
	merged := d.Hidden * d.Merge * d.Merge
	norm("merger.norm")
	a.linear(prefix+"merger.linear_fc1", merged, merged, true)
	a.linear(prefix+"merger.linear_fc2", d.Out, merged, true)
}

// quantizable reports whether submissions quantize a tensor: the linears of a
// text model's layers.
func quantizable(name string) bool {
	if strings.Contains(name, "visual.") || strings.HasPrefix(name, "mtp.") {
		return false
	}
	for _, linear := range []string{"_proj", "in_proj_qkv", "in_proj_z"} {
		if strings.HasSuffix(name, linear+".weight") {
			return true
		}
	}
	return false
}
