package shrink

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway/manifest"
)

// model is a configuration that a twin can be made for.
type model struct {
	architecture string
	config       map[string]any // all of config.json, numbers as written
	text         dimensions
	vision       dimensions // nil without a vision encoder
	derivedHeads bool       // config.json gives no head size: it is hidden_size over num_attention_heads
	block        []int64    // of block FP8: rows and columns to a scale; nil without

	keptLayers, keptBlocks int64 // of a twin; counted when the tensors are known
}

// families are the architectures that twins have been made of and started. One
// that is not among them has a twin too where its tensors follow the same names.
var families = []string{
	"LlamaForCausalLM", "MapleForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen2_5_VLForConditionalGeneration",
	"Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration",
}

// hybrid reports whether a model is of Qwen3.5.
func (m *model) hybrid() bool { return strings.HasPrefix(m.architecture, "Qwen3_5For") }

// readModel reads a config.json; nil where it names no architecture.
func readModel(data []byte) (*model, error) {
	var strict map[string]any
	if err := manifest.DecodeStrict(data, &strict); err != nil {
		return nil, err
	}
	m := &model{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&m.config); err != nil {
		return nil, err
	}
	names, _ := m.config["architectures"].([]any)
	if len(names) == 0 {
		return nil, nil
	}
	m.architecture, _ = names[0].(string)
	if err := m.readBlock(); err != nil {
		return nil, err
	}
	if err := m.readText(); err != nil {
		return nil, err
	}
	if err := m.readVision(); err != nil {
		return nil, err
	}
	return m, m.checkUnknown()
}

// section returns a nested part of the configuration, nil where there is none.
func (m *model) section(name string) map[string]any {
	nested, _ := m.config[name].(map[string]any)
	return nested
}

// textField returns a field of the text model: of text_config, else of the top.
func (m *model) textField(name string) any {
	if value := m.section("text_config")[name]; value != nil {
		return value
	}
	return m.config[name]
}

func (m *model) readBlock() error {
	quantization, ok := m.textField("quantization_config").(map[string]any)
	if !ok {
		return nil
	}
	if method := quantization["quant_method"]; method != "fp8" {
		return unshrinkable("quantization_config has quant_method %v, which is not known here", method)
	}
	list, _ := quantization["weight_block_size"].([]any)
	for _, element := range list {
		m.block = append(m.block, whole(element))
	}
	if len(m.block) != 2 || m.block[0] < 1 || m.block[1] < 1 {
		return unshrinkable("quantization_config has no weight_block_size of two numbers")
	}
	return nil
}

// whole returns a positive whole number, 0 for anything else. Dimensions above
// 2^31 are no model's.
func whole(value any) int64 {
	number, ok := value.(json.Number)
	if !ok {
		return 0
	}
	n, err := number.Int64()
	if err != nil || n < 0 || n > 1<<31 {
		return 0
	}
	return n
}

// Fields of config.json that give dimensions: what every model has, and what
// only some have.
var (
	textNeeded   = []string{"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"}
	textOptional = []string{
		"num_key_value_heads", "head_dim", "intermediate_size", "moe_intermediate_size", "num_experts", "num_experts_per_tok",
		"linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim",
	}
	visionNeeded   = []string{"depth", "hidden_size", "intermediate_size", "num_heads", "patch_size", "spatial_merge_size", "temporal_patch_size"}
	visionOptional = []string{"in_channels", "in_chans", "num_position_embeddings", "out_hidden_size"}
)

// maxLayers is far above any model's.
const maxLayers = 10_000

func (m *model) readText() error {
	for _, name := range textNeeded {
		if m.textField(name) == nil {
			return manifest.WithHint(fmt.Errorf("config.json has no %s: no twin can be made of %s", name, manifest.Clip(m.architecture)), "rehearse without --shrink")
		}
	}
	d, err := read(m.textField, textNeeded, textOptional)
	if err != nil {
		return err
	}
	m.text = d
	d["gate"] = 1
	if m.hybrid() || m.textField("attn_output_gate") == true {
		d["gate"] = 2
	}
	if m.hybrid() && d["linear_conv_kernel_dim"] == 0 {
		d["linear_conv_kernel_dim"] = 4
	}
	if d["num_key_value_heads"] == 0 {
		d["num_key_value_heads"] = d["num_attention_heads"]
	}
	if m.derivedHeads = d["head_dim"] == 0; m.derivedHeads {
		d["head_dim"] = d["hidden_size"] / d["num_attention_heads"]
	}
	keyHeads, valueHeads := d["linear_num_key_heads"], d["linear_num_value_heads"]
	switch {
	case d["num_hidden_layers"] > maxLayers:
		return fmt.Errorf("num_hidden_layers %d is more than %d", d["num_hidden_layers"], maxLayers)
	case d["num_attention_heads"]%d["num_key_value_heads"] != 0:
		return fmt.Errorf("num_attention_heads %d is no multiple of num_key_value_heads %d", d["num_attention_heads"], d["num_key_value_heads"])
	case m.derivedHeads && d["hidden_size"]%d["num_attention_heads"] != 0:
		return fmt.Errorf("hidden_size %d is no multiple of num_attention_heads %d, and there is no head_dim", d["hidden_size"], d["num_attention_heads"])
	case keyHeads > 0 && (valueHeads == 0 || valueHeads%keyHeads != 0):
		return fmt.Errorf("linear_num_value_heads %d is no multiple of linear_num_key_heads %d", valueHeads, keyHeads)
	case d["num_experts"] > 0 && d["num_experts_per_tok"] > d["num_experts"]:
		return fmt.Errorf("num_experts_per_tok %d is more than num_experts %d", d["num_experts_per_tok"], d["num_experts"])
	}
	list, given := m.textField("layer_types").([]any)
	if given && int64(len(list)) != d["num_hidden_layers"] {
		return fmt.Errorf("layer_types has %d entries, num_hidden_layers is %d", len(list), d["num_hidden_layers"])
	}
	return nil
}

// readVision reads vision_config. One that leaves dimensions to the defaults of
// some class has no vision encoder here: its tensors are refused, if there are any.
func (m *model) readVision() error {
	fields := m.section("vision_config")
	d, err := read(func(name string) any { return fields[name] }, visionNeeded, visionOptional)
	if err != nil {
		return nil
	}
	d["merged"] = d["spatial_merge_size"] * d["spatial_merge_size"]
	if d["in_channels"] == 0 {
		d["in_channels"] = d["in_chans"]
	}
	if d["out_hidden_size"] == 0 {
		d["out_hidden_size"] = m.text["hidden_size"]
	}
	switch {
	case d["depth"] > maxLayers:
		return fmt.Errorf("vision_config: depth %d is more than %d", d["depth"], maxLayers)
	case d["hidden_size"]%d["num_heads"] != 0:
		return fmt.Errorf("vision_config: hidden_size %d is no multiple of num_heads %d", d["hidden_size"], d["num_heads"])
	case d["out_hidden_size"] != m.text["hidden_size"]:
		return unshrinkable("vision_config has out_hidden_size %d, the text model hidden_size %d", d["out_hidden_size"], m.text["hidden_size"])
	}
	m.vision = d
	return nil
}

func read(field func(string) any, needed, optional []string) (dimensions, error) {
	d := dimensions{}
	for _, name := range needed {
		if d[name] = whole(field(name)); d[name] == 0 {
			return nil, fmt.Errorf("%s is %v, want a positive whole number", name, field(name))
		}
	}
	for _, name := range optional {
		if d[name] = whole(field(name)); d[name] == 0 && field(name) != nil && field(name) != json.Number("0") {
			return nil, fmt.Errorf("%s is %v, want a whole number", name, field(name))
		}
	}
	return d, nil
}

// inert are numbers that are no width, though they may equal one.
var inert = []string{"max_position_embeddings", "max_sequence_length", "max_window_layers", "model_max_length", "sliding_window", "n_positions"}

// checkUnknown refuses an architecture that is not known where another number of
// its configuration equals a width that a twin changes: it may be that width.
func (m *model) checkUnknown() error {
	if slices.Contains(families, m.architecture) {
		return nil
	}
	known := slices.Concat(textNeeded, textOptional, inert)
	for _, fields := range []map[string]any{m.config, m.section("text_config")} {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			n := whole(fields[name])
			if n == 0 || slices.Contains(known, name) || strings.HasSuffix(name, "_token_id") {
				continue
			}
			for _, width := range []string{"hidden_size", "intermediate_size", "moe_intermediate_size"} {
				if n == m.text[width] {
					return unshrinkable("architecture %q is not one of those known here, and its %s is %d, as its %s is: whether they belong together cannot be told", manifest.Clip(m.architecture), manifest.Clip(name), n, width)
				}
			}
		}
	}
	return nil
}
