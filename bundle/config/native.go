package config

import (
	"fmt"
	"slices"
	"strings"
)

// NativeArchitectures are what the runtime that a bundle can have computes, as
// config.json names them: the keys of families in runtime/model.
var NativeArchitectures = []string{"Qwen3ForCausalLM", "Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration"}

// NotNative says why the runtime does not serve a model of an architecture; ""
// where it does, or where no architecture is named.
func NotNative(architecture string) string {
	if architecture == "" || slices.Contains(NativeArchitectures, architecture) {
		return ""
	}
	return fmt.Sprintf("the bundled runtime computes %s: not %s", strings.Join(NativeArchitectures, ", "), printable(architecture))
}
