package generate

import (
	"fmt"
	"slices"

	"slipway/internal/realshapes"
	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// groupSize is how many weights along the inputs share a scale.
const groupSize = 128

// headName is the untied head, which the published model does not store.
const headName = "lm_head.weight"

// storeQwen stores all tensors of Qwen3.5-4B, and an untied head.
func storeQwen(options Options) (checkpoint, error) {
	model := options.Model()
	contract := model.Contract()
	head := contract.Tensors[model.Prefix+"embed_tokens.weight"]
	head.Role = manifest.RoleHead
	contract.Tensors[headName] = head
	c := checkpoint{
		base: contract, config: qwenConfig(model),
		format: fmt.Sprintf("packed_2bit: U8, four codes a byte, lowest bits first along the input axis; value = (code - 1) * scale; F16 scale per group of %d inputs", groupSize),
	}
	for _, name := range contract.Names() {
		t, err := storeQwenTensor(name, contract.Tensors[name])
		if err != nil {
			return checkpoint{}, err
		}
		c.tensors = append(c.tensors, t)
	}
	return c, nil
}

// storeQwenTensor stores a large linear of the text model as codes U8 [N, K/4]
// and scales F16 [N, K/128], any other tensor as it was published.
func storeQwenTensor(name string, t manifest.ContractTensor) (logical, error) {
	if realshapes.Packable(name) {
		rows, inputs := t.Shape[0], t.Shape[1]
		return placed(name, manifest.Quantity{Kind: manifest.KindPacked2Bit, Shape: t.Shape, GroupSize: groupSize},
			stored{safetensors.Tensor{Name: name + ".codes", DType: safetensors.U8, Shape: []int64{rows, inputs / 4}}, fillCodes},
			stored{safetensors.Tensor{Name: name + ".scales", DType: safetensors.F16, Shape: []int64{rows, inputs / groupSize}}, fillScales})
	}
	dtype, ok := safetensors.ParseDType(t.DType)
	if !ok {
		return logical{}, fmt.Errorf("tensor %q: dtype %q is unknown", name, t.DType)
	}
	values, err := valuesOf(name, dtype)
	if err != nil {
		return logical{}, err
	}
	return plain(manifest.KindFloat, "", name, dtype, t.Shape, values)
}

// endToken is eos_token_id of the published config.json.
const endToken = 248044

// textConfig is config.json of a Qwen3.5 text model, as the transformers
// library writes it.
type textConfig struct {
	Architectures       []string       `json:"architectures"`
	AttentionBias       bool           `json:"attention_bias"`
	AttentionDropout    float64        `json:"attention_dropout"`
	OutputGate          bool           `json:"attn_output_gate"`
	BeginToken          *int64         `json:"bos_token_id"`
	DType               string         `json:"dtype"`
	EndToken            int64          `json:"eos_token_id"`
	FullInterval        int            `json:"full_attention_interval"`
	HeadDim             int64          `json:"head_dim"`
	Activation          string         `json:"hidden_act"`
	Hidden              int64          `json:"hidden_size"`
	InitializerRange    float64        `json:"initializer_range"`
	Intermediate        int64          `json:"intermediate_size"`
	LayerTypes          []string       `json:"layer_types"`
	LinearKernel        int64          `json:"linear_conv_kernel_dim"`
	LinearKeyDim        int64          `json:"linear_key_head_dim"`
	LinearKeyHeads      int64          `json:"linear_num_key_heads"`
	LinearValueHeads    int64          `json:"linear_num_value_heads"`
	LinearValueDim      int64          `json:"linear_value_head_dim"`
	StateDType          string         `json:"mamba_ssm_dtype"`
	MaxPositions        int64          `json:"max_position_embeddings"`
	ModelType           string         `json:"model_type"`
	DedicatedEmbeddings bool           `json:"mtp_use_dedicated_embeddings"`
	PredictionLayers    int            `json:"mtp_num_hidden_layers"`
	Heads               int64          `json:"num_attention_heads"`
	Layers              int            `json:"num_hidden_layers"`
	KeyValueHeads       int64          `json:"num_key_value_heads"`
	PadToken            *int64         `json:"pad_token_id"`
	RotaryFactor        float64        `json:"partial_rotary_factor"`
	Epsilon             float64        `json:"rms_norm_eps"`
	Rope                ropeParameters `json:"rope_parameters"`
	Tied                bool           `json:"tie_word_embeddings"`
	UseCache            bool           `json:"use_cache"`
	Vocabulary          int64          `json:"vocab_size"`
}

type ropeParameters struct {
	Interleaved  bool    `json:"mrope_interleaved"`
	Section      []int64 `json:"mrope_section"`
	RotaryFactor float64 `json:"partial_rotary_factor"`
	Theta        float64 `json:"rope_theta"`
	Type         string  `json:"rope_type"`
}

func qwenConfig(m realshapes.Model) textConfig {
	layers := slices.Repeat([]string{"linear_attention"}, m.Layers)
	for i := m.FullAttentionInterval - 1; i < m.Layers; i += m.FullAttentionInterval {
		layers[i] = "full_attention"
	}
	return textConfig{
		Architectures: []string{"Qwen3_5ForCausalLM"}, ModelType: "qwen3_5_text", DType: "bfloat16", StateDType: "float32",
		Vocabulary: m.Vocabulary, Hidden: m.Hidden, Intermediate: m.Intermediate, Layers: m.Layers, LayerTypes: layers,
		FullInterval: m.FullAttentionInterval, Heads: m.Heads, KeyValueHeads: m.KeyValueHeads, HeadDim: m.HeadDim, OutputGate: true,
		LinearKernel: m.LinearKernel, LinearKeyDim: m.LinearHeadDim, LinearValueDim: m.LinearHeadDim,
		LinearKeyHeads: m.LinearKeyHeads, LinearValueHeads: m.LinearValueHeads, PredictionLayers: m.PredictionLayers,
		Activation: "silu", InitializerRange: 0.02, Epsilon: 1e-6, MaxPositions: 262144, RotaryFactor: 0.25, UseCache: true,
		Rope:     ropeParameters{Interleaved: true, Section: []int64{11, 11, 10}, RotaryFactor: 0.25, Theta: 1e7, Type: "default"},
		EndToken: min(endToken, m.Vocabulary-1),
	}
}
