package modelconfig

import (
	"slices"
	"strings"
)

// The prefixes of the text model's names: published files of multimodal models
// have the long one, text-only files of the same models the short one.
const (
	LongPrefix  = "model.language_model."
	ShortPrefix = "model."
)

// TextPrefix returns the one that names have.
func TextPrefix(names []string) string {
	if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, LongPrefix) }) {
		return LongPrefix
	}
	return ShortPrefix
}

// PrefixAllowed reports whether a family's files name the text model's tensors
// under a prefix: the long one is that of multimodal models.
func PrefixAllowed(architecture, prefix string) bool {
	return prefix == ShortPrefix || architecture != "Qwen3ForCausalLM"
}
