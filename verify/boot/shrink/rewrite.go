package shrink

import (
	"maps"
	"slices"
	"strings"

	"slipway/manifest"
)

// layerIndices are lists of config.json that name layers by their index.
var layerIndices = []string{"mlp_only_layers", "fullatt_block_indexes"}

// rewrite returns config.json of a twin with other dimensions.
func (m *model) rewrite(to twinDimensions) ([]byte, error) {
	config := rewriteSection(m.config, m.text, to.text, "num_hidden_layers")
	if nested := m.section("text_config"); nested != nil {
		config["text_config"] = rewriteSection(nested, m.text, to.text, "num_hidden_layers")
	}
	vision := m.section("vision_config")
	switch {
	case m.vision != nil:
		config["vision_config"] = rewriteSection(vision, m.vision, to.vision, "depth")
	case whole(vision["out_hidden_size"]) == m.text["hidden_size"]: // without an encoder's tensors: what is built from it still fits
		config["vision_config"] = maps.Clone(vision)
		config["vision_config"].(map[string]any)["out_hidden_size"] = to.text["hidden_size"]
	}
	return manifest.EncodeLines(config)
}

// rewriteSection replaces the dimensions that fields gives, and cuts its lists of
// layers, whose number has the name layers.
func rewriteSection(fields map[string]any, from, to dimensions, layers string) map[string]any {
	out := maps.Clone(fields)
	for key, value := range fields {
		if n := whole(value); n > 0 && n == from[key] {
			out[key] = to[key]
		}
		list, isList := value.([]any)
		switch {
		case !isList:
		case slices.Contains(layerIndices, key):
			out[key] = slices.DeleteFunc(slices.Clone(list), func(index any) bool { return whole(index) >= to[layers] })
		case strings.Contains(key, "layer") && int64(len(list)) == from[layers]:
			out[key] = list[:to[layers]]
		}
	}
	return out
}
