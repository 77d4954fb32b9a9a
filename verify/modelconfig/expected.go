package modelconfig

import "fmt"

// Tensor is a tensor that a model family has.
type Tensor struct {
	Name  string
	Shape []int64
}

// Tensors returns the tensors of a text model as its config.json
// implies them, under a name prefix ("model." or "model.language_model.");
// ok is false for a family that is not known here. An error names a dimension
// that the config lacks. The result is as trustworthy as the config.
//
// Families: Qwen3 (dense) and Qwen3.5 (gated delta net and gated attention), as
// the transformers library names their parameters.
func Tensors(c *Config, prefix string) (tensors []Tensor, ok bool, err error) {
	hybrid := false
	switch c.Architecture {
	case "Qwen3ForCausalLM":
	case "Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration":
		hybrid = true
	default:
		return nil, false, nil
	}
	if err := c.checkDimensions(hybrid); err != nil {
		return nil, true, err
	}
	e := &expectation{config: c, hybrid: hybrid}
	e.add(prefix+"embed_tokens.weight", c.Vocabulary, c.Hidden)
	for i := range c.Layers {
		e.layer(fmt.Sprintf("%slayers.%d.", prefix, i), c.layerType(i, hybrid))
	}
	e.add(prefix+"norm.weight", c.Hidden)
	if !c.Tied {
		e.add("lm_head.weight", c.Vocabulary, c.Hidden)
	}
	return e.tensors, true, nil
}

// maxLayersExpected bounds what a config can make the verifier list.
const maxLayersExpected = 10_000

func (c *Config) checkDimensions(hybrid bool) error {
	wanted := []struct {
		name  string
		value int64
	}{
		{"hidden_size", c.Hidden}, {"intermediate_size", c.Intermediate}, {"num_hidden_layers", c.Layers},
		{"vocab_size", c.Vocabulary}, {"num_attention_heads", c.Heads}, {"num_key_value_heads", c.KeyValueHeads},
		{"head_dim", c.HeadDim},
	}
	if hybrid {
		wanted = append(wanted, []struct {
			name  string
			value int64
		}{
			{"linear_num_key_heads", c.LinearKeyHeads}, {"linear_num_value_heads", c.LinearValueHeads},
			{"linear_key_head_dim", c.LinearKeyDim}, {"linear_value_head_dim", c.LinearValueDim},
			{"linear_conv_kernel_dim", c.LinearKernel},
		}...)
	}
	for _, w := range wanted {
		if w.value == 0 {
			return fmt.Errorf("%s is missing", w.name)
		}
	}
	switch {
	case c.Layers > maxLayersExpected:
		return fmt.Errorf("num_hidden_layers %d is out of range", c.Layers)
	case hybrid && int64(len(c.LayerTypes)) != c.Layers:
		return fmt.Errorf("layer_types lists %d layers, num_hidden_layers is %d", len(c.LayerTypes), c.Layers)
	}
	for i, kind := range c.LayerTypes {
		if kind != fullAttention && (!hybrid || kind != linearAttention) {
			return fmt.Errorf("layer_types[%d] is %q", i, kind)
		}
	}
	return nil
}

const (
	fullAttention   = "full_attention"
	linearAttention = "linear_attention"
)

func (c *Config) layerType(i int64, hybrid bool) string {
	if hybrid {
		return c.LayerTypes[i]
	}
	return fullAttention
}

type expectation struct {
	config  *Config
	hybrid  bool
	tensors []Tensor
}

func (e *expectation) add(name string, shape ...int64) {
	e.tensors = append(e.tensors, Tensor{name, shape})
}

func (e *expectation) layer(prefix, kind string) {
	c := e.config
	e.add(prefix+"input_layernorm.weight", c.Hidden)
	e.add(prefix+"post_attention_layernorm.weight", c.Hidden)
	e.add(prefix+"mlp.gate_proj.weight", c.Intermediate, c.Hidden)
	e.add(prefix+"mlp.up_proj.weight", c.Intermediate, c.Hidden)
	e.add(prefix+"mlp.down_proj.weight", c.Hidden, c.Intermediate)
	if kind == linearAttention {
		e.deltaNet(prefix + "linear_attn.")
	} else {
		e.attention(prefix + "self_attn.")
	}
}

func (e *expectation) attention(prefix string) {
	c := e.config
	queries := c.Heads * c.HeadDim
	gated := queries
	if e.hybrid && (c.OutputGate == nil || *c.OutputGate) {
		gated *= 2 // each head's query rows are followed by its output gate's
	}
	e.add(prefix+"q_proj.weight", gated, c.Hidden)
	e.add(prefix+"k_proj.weight", c.KeyValueHeads*c.HeadDim, c.Hidden)
	e.add(prefix+"v_proj.weight", c.KeyValueHeads*c.HeadDim, c.Hidden)
	e.add(prefix+"o_proj.weight", c.Hidden, queries)
	e.add(prefix+"q_norm.weight", c.HeadDim)
	e.add(prefix+"k_norm.weight", c.HeadDim)
}

func (e *expectation) deltaNet(prefix string) {
	c := e.config
	keys, values := c.LinearKeyHeads*c.LinearKeyDim, c.LinearValueHeads*c.LinearValueDim
	e.add(prefix+"A_log", c.LinearValueHeads)
	e.add(prefix+"conv1d.weight", 2*keys+values, 1, c.LinearKernel)
	e.add(prefix+"dt_bias", c.LinearValueHeads)
	e.add(prefix+"in_proj_a.weight", c.LinearValueHeads, c.Hidden)
	e.add(prefix+"in_proj_b.weight", c.LinearValueHeads, c.Hidden)
	e.add(prefix+"in_proj_qkv.weight", 2*keys+values, c.Hidden)
	e.add(prefix+"in_proj_z.weight", values, c.Hidden)
	e.add(prefix+"norm.weight", c.LinearValueDim)
	e.add(prefix+"out_proj.weight", c.Hidden, values)
}
