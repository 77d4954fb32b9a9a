package modelconfig

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Keys with which converters say that a matrix is stored in another basis than
// the model's: rotated by a Hadamard matrix, or with permuted rows or inputs.
var (
	otherBasis = regexp.MustCompile(`(?i)hadamard|rotated|rotation|permut|desc_act|act_order`)
	ofRotary   = regexp.MustCompile(`(?i)rope|rotary`) // positions, which every model has
)

// BasisKeys lists the dotted keys of a JSON document that say so, with a value
// which means yes, of any tensor.
func BasisKeys(content any) []string { return basisKeysBelow("", content) }

func basisKeysBelow(path string, content any) (keys []string) {
	switch content := content.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(content)) {
			full := strings.TrimPrefix(path+"."+key, ".")
			if otherBasis.MatchString(key) && !ofRotary.MatchString(key) && meansYes(content[key]) {
				keys = append(keys, full)
				continue
			}
			keys = append(keys, basisKeysBelow(full, content[key])...)
		}
	case []any:
		for i, element := range content {
			keys = append(keys, basisKeysBelow(fmt.Sprintf("%s[%d]", path, i), element)...)
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
