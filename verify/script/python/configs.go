package python

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
)

// quantizers are what transformers needs to load a checkpoint by its
// quantization_config.quant_method. Source: transformers, quantizers/, each
// quantizer's validate_environment.
var quantizers = map[string][]need{
	"fp8":                {{"accelerate"}},
	"fbgemm_fp8":         {{"accelerate"}, {"fbgemm-gpu"}},
	"mxfp4":              {{"accelerate"}, {"kernels"}},
	"compressed-tensors": {{"compressed-tensors"}},
	"bitsandbytes":       {{"bitsandbytes"}, {"accelerate"}},
	"gptq":               {{"gptqmodel", "auto-gptq"}, {"optimum"}},
	"awq":                {{"autoawq", "gptqmodel"}, {"accelerate"}},
	"aqlm":               {{"aqlm"}, {"accelerate"}},
	"hqq":                {{"hqq"}},
	"torchao":            {{"torchao"}},
	"quanto":             {{"optimum-quanto"}, {"accelerate"}},
	"eetq":               {{"kernels", "eetq"}, {"accelerate"}},
	"bitnet":             {{"accelerate"}},
	"vptq":               {{"vptq"}, {"accelerate"}},
	"spqr":               {{"spqr-quant"}, {"accelerate"}},
	"higgs":              {{"flute-kernel"}, {"accelerate"}},
	"auto-round":         {{"auto-round"}},
}

// QuantizationOf returns the quant_method of a config.json, in lower case, or "".
func QuantizationOf(data []byte) string {
	var config struct {
		Quantization struct {
			Method string `json:"quant_method"`
		} `json:"quantization_config"`
	}
	if manifest.DecodeLoose(data, &config) != nil {
		return ""
	}
	return strings.ToLower(config.Quantization.Method)
}

// CodeOf returns the repositories whose code a config.json names in auto_map, as
// "org/name--module.Class", sorted. Source: transformers, dynamic_module_utils.py.
func CodeOf(data []byte) (repositories []string) {
	var config struct {
		AutoMap map[string]json.RawMessage `json:"auto_map"`
	}
	if manifest.DecodeLoose(data, &config) != nil {
		return nil
	}
	for _, value := range config.AutoMap {
		var one string
		if json.Unmarshal(value, &one) != nil {
			continue
		}
		if repository, _, other := strings.Cut(one, "--"); other && !slices.Contains(repositories, manifest.Clip(repository)) {
			repositories = append(repositories, manifest.Clip(repository))
		}
	}
	slices.Sort(repositories)
	return repositories
}

// RequirementsOfConfig lists the distributions that transformers needs for what a
// model's configuration says: a config.json (quantization) or
// preprocessor_config.json (images). They count only where transformers loads
// that folder; other runtimes read the same files otherwise. Other files, and
// what is no JSON object, need nothing.
func RequirementsOfConfig(p string, data []byte) []Requirement {
	l := requirementList{path: p}
	var config struct {
		ImageProcessor string `json:"image_processor_type"`
		VideoProcessor string `json:"video_processor_type"`
	}
	var fields map[string]json.RawMessage
	if manifest.DecodeLoose(data, &fields) != nil || manifest.DecodeLoose(data, &config) != nil {
		return nil
	}
	switch path.Base(p) {
	case "config.json":
		if method := QuantizationOf(data); quantizers[method] != nil {
			l.add(quantizers[method], "transformers loads quant_method \""+method+"\" with it", 0)
		}
	case "preprocessor_config.json":
		if config.ImageProcessor != "" {
			l.add([]need{{"pillow"}}, "image processors require pillow", 0)
		}
		if strings.HasSuffix(config.ImageProcessor, "Fast") {
			l.add([]need{{"torchvision"}}, "image_processor_type "+manifest.Clip(config.ImageProcessor)+" requires torchvision", 0)
		}
	case "video_preprocessor_config.json":
		if config.VideoProcessor != "" {
			l.add([]need{{"torchvision"}}, "video processors require torchvision", 0)
		}
	}
	return l.list
}
