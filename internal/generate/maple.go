package generate

import (
	"fmt"
	"slices"
	"strings"

	"slipway/internal/realshapes"
	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// mapleConfig is config.json of maple-preview, of which the keys that its
// configuration class reads.
type mapleConfig struct {
	Architectures []string `json:"architectures"`
	ModelType     string   `json:"model_type"`
	DType         string   `json:"dtype"`
	BeginToken    int64    `json:"bos_token_id"`
	EndToken      int64    `json:"eos_token_id"`
	PadToken      *int64   `json:"pad_token_id"`
	Hidden        int64    `json:"hidden_size"`
	Activation    string   `json:"hidden_act"`
	HeadDim       int64    `json:"head_dim"`
	Heads         int64    `json:"num_attention_heads"`
	KeyValueHeads int64    `json:"num_key_value_heads"`
	Layers        int      `json:"num_hidden_layers"`
	LayerTypes    []string `json:"layer_types"`
	Experts       int64    `json:"num_experts"`
	ExpertsUsed   int64    `json:"num_experts_per_tok"`
	Expert        int64    `json:"moe_intermediate_size"`
	SharedExperts int64    `json:"num_shared_experts"`
	Normalised    bool     `json:"norm_topk_prob"`
	RouterDType   string   `json:"router_dtype"`
	NoPositions   bool     `json:"nope_on_global_attention"`
	RotaryFactor  float64  `json:"partial_rotary_factor"`
	Theta         float64  `json:"rope_theta"`
	Window        int64    `json:"sliding_window"`
	MaxPositions  int64    `json:"max_position_embeddings"`
	NormHeads     bool     `json:"use_qk_norm"`
	Epsilon       float64  `json:"rms_norm_eps"`
	Tied          bool     `json:"tie_word_embeddings"`
	Vocabulary    int64    `json:"vocab_size"`
}

func configOfMaple(layers int, vocabulary int64) mapleConfig {
	types := slices.Repeat([]string{"sliding_attention"}, layers)
	for i := 3; i < layers; i += 4 {
		types[i] = "full_attention"
	}
	return mapleConfig{
		Architectures: []string{"MapleForCausalLM"}, ModelType: "maple", DType: "bfloat16",
		BeginToken: min(151643, vocabulary-1), EndToken: min(151645, vocabulary-1),
		Hidden: 2048, Activation: "silu", HeadDim: 128, Heads: 16, KeyValueHeads: 4, Layers: layers, LayerTypes: types,
		Experts: 256, ExpertsUsed: 8, Expert: 512, Normalised: true, RouterDType: "fp32",
		NoPositions: true, RotaryFactor: 0.5, Theta: 1e4, Window: 512, MaxPositions: 131072, NormHeads: true, Epsilon: 1e-6,
		Vocabulary: vocabulary,
	}
}

const (
	mapleLayers     = 24
	mapleVocabulary = 151936
)

// maple returns the contract of maple-preview, or of its first layers.
func (o Options) maple() (contract manifest.Contract, layers int, vocabulary int64, err error) {
	layers, vocabulary = mapleLayers, mapleVocabulary
	if o.Layers > 0 {
		layers = o.Layers
	}
	if o.Vocabulary > 0 {
		vocabulary = o.Vocabulary
	}
	data, err := realshapes.Maple().Encode()
	if err != nil {
		return manifest.Contract{}, 0, 0, err
	}
	contract, err = manifest.DecodeContract(data) // names without ranges
	if err != nil {
		return manifest.Contract{}, 0, 0, err
	}
	for name, t := range contract.Tensors {
		layer := 0
		if _, err := fmt.Sscanf(name, "model.layers.%d.", &layer); err == nil && layer >= layers {
			delete(contract.Tensors, name)
		} else if t.Role != manifest.RoleBackbone {
			t.Shape = []int64{vocabulary, t.Shape[1]}
			contract.Tensors[name] = t
		}
	}
	return contract, layers, vocabulary, nil
}

// storeMaple stores maple-preview as it was published, or packed.
func storeMaple(options Options) (checkpoint, error) {
	contract, layers, vocabulary, err := options.maple()
	if err != nil {
		return checkpoint{}, err
	}
	c := checkpoint{base: contract, config: configOfMaple(layers, vocabulary)}
	store := storePublished
	if options.Family == MaplePacked {
		c.format = "mlx_row_alpha_2bit: U32, sixteen codes a word, lowest bits first along the input axis; value = (code - 1) * row_alpha, BF16; the experts of a layer are one tensor"
		store = storeByRow
	}
	for _, name := range contract.Names() {
		if options.Family == MaplePacked && strings.Contains(name, ".experts.") && !strings.Contains(name, ".experts.0.") {
			continue // the first stands for all
		}
		t, err := store(name, contract.Tensors[name])
		if err != nil {
			return checkpoint{}, err
		}
		c.tensors = append(c.tensors, t)
	}
	return c, nil
}

// storePublished stores a tensor in BF16, the linears' weights as {-a, 0, +a} by row.
func storePublished(name string, t manifest.ContractTensor) (logical, error) {
	if realshapes.Packable(name) {
		return plain(manifest.KindLiteral, manifest.UnitRow, name, safetensors.BF16, t.Shape, literalRows(2*t.Shape[1]))
	}
	values := fillWeights
	if strings.HasSuffix(name, "norm.weight") {
		values = fillGain16
	}
	return plain(manifest.KindFloat, "", name, safetensors.BF16, t.Shape, values)
}

// mapleExperts is how many experts a layer has.
const mapleExperts = 256

// storeByRow stores a linear as codes U32 [N, K/16] and one BF16 scale a row,
// as mlx-lm-deepgrove does: the experts of a layer as one tensor. It keeps
// embedding and head in BF16.
func storeByRow(name string, t manifest.ContractTensor) (logical, error) {
	if !realshapes.Packable(name) {
		return storePublished(name, t)
	}
	shape := t.Shape
	if strings.Contains(name, ".experts.") {
		name = strings.Replace(name, ".experts.0.", ".switch_mlp.", 1)
		shape = []int64{mapleExperts, t.Shape[0], t.Shape[1]}
	}
	last := len(shape) - 1
	words := slices.Clone(shape)
	words[last] /= 16
	return placed(name, manifest.Quantity{Kind: manifest.KindPacked2Bit, Format: manifest.FormatMLXRowAlpha, Shape: shape},
		stored{safetensors.Tensor{Name: name, DType: safetensors.U32, Shape: words}, fillCodes},
		stored{safetensors.Tensor{Name: strings.TrimSuffix(name, "weight") + "row_alpha", DType: safetensors.BF16, Shape: shape[:last]}, fillAlpha})
}
