package shrink

import (
	"bytes"
	"encoding/json"
	"fmt"

	"slipway/manifest"
)

// model is a configuration that a twin can be made for.
type model struct {
	architecture string
	config       map[string]any // all of config.json, numbers as written
	text         map[string]any // the text model's part: config, or text_config in it
	dimensions   dimensions
	block        []int64 // of block FP8: rows and columns to a scale; nil without
}

// families are the architectures whose tensors are known here, and whether they
// are of Qwen3.5.
var families = map[string]bool{
	"Qwen3ForCausalLM": false, "Qwen3_5ForCausalLM": true, "Qwen3_5ForConditionalGeneration": true,
}

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
	hybrid, known := families[m.architecture]
	if !known {
		return nil, unshrinkable("architecture %q is not one whose tensors are known here", manifest.Clip(m.architecture))
	}
	m.text = m.config
	if nested, ok := m.config["text_config"].(map[string]any); ok {
		m.text = nested
	}
	if err := m.readBlock(); err != nil {
		return nil, err
	}
	r := &reader{fields: m.text}
	m.dimensions = r.dimensions(hybrid)
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

func (m *model) readBlock() error {
	quantization, ok := m.config["quantization_config"].(map[string]any)
	if !ok {
		if quantization, ok = m.text["quantization_config"].(map[string]any); !ok {
			return nil
		}
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

// reader reads dimensions and keeps the first fault.
type reader struct {
	fields map[string]any
	err    error
}

func (r *reader) need(key string) int64 {
	n := whole(r.fields[key])
	if n == 0 && r.err == nil {
		r.err = fmt.Errorf("%s is %v, want a positive whole number", key, r.fields[key])
	}
	return n
}

func (r *reader) dimensions(hybrid bool) dimensions {
	d := dimensions{
		hybrid: hybrid, vocabulary: r.need("vocab_size"), hidden: r.need("hidden_size"), intermediate: r.need("intermediate_size"),
		layers: r.need("num_hidden_layers"), heads: r.need("num_attention_heads"), keyValueHeads: r.need("num_key_value_heads"), headDim: r.need("head_dim"),
		interval: 1,
	}
	if hybrid {
		d.keyHeads, d.valueHeads = r.need("linear_num_key_heads"), r.need("linear_num_value_heads")
		d.keyDim, d.valueDim = r.need("linear_key_head_dim"), r.need("linear_value_head_dim")
		if d.kernel = whole(r.fields["linear_conv_kernel_dim"]); d.kernel == 0 {
			d.kernel = 4
		}
		if d.interval = whole(r.fields["full_attention_interval"]); d.interval == 0 {
			d.interval = 4
		}
	}
	d.kinds = r.kinds(d)
	switch {
	case r.err != nil:
	case d.heads%d.keyValueHeads != 0:
		r.err = fmt.Errorf("num_attention_heads %d is no multiple of num_key_value_heads %d", d.heads, d.keyValueHeads)
	case hybrid && d.valueHeads%d.keyHeads != 0:
		r.err = fmt.Errorf("linear_num_value_heads %d is no multiple of linear_num_key_heads %d", d.valueHeads, d.keyHeads)
	}
	return d
}

// maxLayers is far above any model's.
const maxLayers = 10_000

// kinds returns which layers are attention: as layer_types says, else every so
// manieth.
func (r *reader) kinds(d dimensions) []bool {
	if r.err != nil {
		return nil
	}
	if d.layers > maxLayers {
		r.err = fmt.Errorf("num_hidden_layers %d is more than %d", d.layers, maxLayers)
		return nil
	}
	kinds := make([]bool, d.layers)
	list, given := r.fields["layer_types"].([]any)
	if given && int64(len(list)) != d.layers {
		r.err = fmt.Errorf("layer_types has %d entries, num_hidden_layers is %d", len(list), d.layers)
		return nil
	}
	for i := range kinds {
		kinds[i] = (int64(i)+1)%d.interval == 0
		if given {
			kinds[i] = list[i] == "full_attention"
			if !kinds[i] && (!d.hybrid || list[i] != "linear_attention") {
				r.err = unshrinkable("layer_types has %v, which is not known here", list[i])
				return nil
			}
		}
	}
	return kinds
}

// rewrite returns config.json of a twin with other dimensions.
func (m *model) rewrite(to dimensions) ([]byte, error) {
	numbers := map[string]int64{
		"hidden_size": to.hidden, "intermediate_size": to.intermediate, "num_hidden_layers": to.layers,
		"num_attention_heads": to.heads, "num_key_value_heads": to.keyValueHeads,
	}
	if to.hybrid {
		numbers["linear_num_key_heads"], numbers["linear_num_value_heads"] = to.keyHeads, to.valueHeads
	}
	replace := func(fields map[string]any) map[string]any {
		out := map[string]any{}
		for key, value := range fields {
			out[key] = value
			if n, ok := numbers[key]; ok && value != nil {
				out[key] = n
			}
			if list, ok := value.([]any); ok && key == "layer_types" && int64(len(list)) > to.layers {
				out[key] = list[:to.layers]
			}
		}
		return out
	}
	config := replace(m.config)
	if nested, ok := m.config["text_config"].(map[string]any); ok {
		config["text_config"] = replace(nested)
	}
	if vision, ok := m.config["vision_config"].(map[string]any); ok {
		tiny := map[string]any{}
		for key, value := range vision {
			tiny[key] = value
		}
		tiny["depth"], tiny["out_hidden_size"] = visionBlocks, to.hidden
		config["vision_config"] = tiny
	}
	return manifest.EncodeLines(config)
}
