package bundle

import (
	"encoding/json"

	"slipway/manifest"
)

// modelFacts is what an artifact's config repeats from a model's config.json.
type modelFacts struct {
	architecture string
	precision    string // "bfloat16" and the like
	quantization string // "fp8" and the like
}

// readModelFacts reads them strictly, so that no key given twice or in another
// case decides what a digest depends on. No config.json, or one that does not
// say, leaves fields empty: the config gate judges it.
func readModelFacts(data []byte) (facts modelFacts, err error) {
	if data == nil {
		return facts, nil
	}
	var keys map[string]json.RawMessage
	if err := manifest.DecodeStrict(data, &keys); err != nil {
		return facts, err
	}
	var architectures []string
	if raw, ok := keys["architectures"]; ok && manifest.DecodeStrict(raw, &architectures) == nil && len(architectures) > 0 {
		facts.architecture = architectures[0]
	}
	for _, key := range []string{"torch_dtype", "dtype"} {
		var dtype string
		if raw, ok := keys[key]; ok && manifest.DecodeStrict(raw, &dtype) == nil && dtype == "bfloat16" {
			facts.precision = dtype
		}
	}
	var quantization map[string]json.RawMessage
	if raw, ok := keys["quantization_config"]; ok && manifest.DecodeStrict(raw, &quantization) == nil {
		var method string
		if raw, ok := quantization["quant_method"]; ok && manifest.DecodeStrict(raw, &method) == nil {
			facts.quantization = method
		}
	}
	return facts, nil
}
