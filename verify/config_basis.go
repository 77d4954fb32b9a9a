package verify

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"slipway/manifest"
)

// Keys with which converters say that a matrix is stored in another basis than
// the model's: rotated by a Hadamard matrix, or with permuted rows or inputs.
var (
	otherBasis = regexp.MustCompile(`(?i)hadamard|rotated|rotation|permut|desc_act|act_order`)
	ofRotary   = regexp.MustCompile(`(?i)rope|rotary`) // positions, which every model has
)

// basis refuses a config.json that says so of a model which the quantization
// manifest describes: its formats have no such basis, so that either the file or
// the weights are wrong.
func (c *configCheck) basis() {
	f := c.facts[c.model.configPath]
	var content any
	if !c.model.quantized || f == nil || manifest.DecodeLoose(f.Small, &content) != nil {
		return
	}
	for _, key := range basisKeys(content, "") {
		c.bad(c.model.configPath, fmt.Sprintf("%s says that weights are stored in another basis than the model's", manifest.Clip(key)),
			"no such key", "", "store the weights in the model's own basis and remove the key, or list the tensors as float")
	}
}

// basisKeys lists the dotted keys of a JSON document that say so with a value
// which means yes.
func basisKeys(content any, path string) (keys []string) {
	switch content := content.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(content)) {
			full := strings.TrimPrefix(path+"."+key, ".")
			if otherBasis.MatchString(key) && !ofRotary.MatchString(key) && meansYes(content[key]) {
				keys = append(keys, full)
				continue
			}
			keys = append(keys, basisKeys(content[key], full)...)
		}
	case []any:
		for i, element := range content {
			keys = append(keys, basisKeys(element, fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return keys
}

// meansYes reports whether a value is more than false, nothing or none.
func meansYes(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != "" && !strings.EqualFold(v, "none") && !strings.EqualFold(v, "false")
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
