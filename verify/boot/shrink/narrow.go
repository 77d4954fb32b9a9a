package shrink

import "maps"

// twinDimensions are those of a twin.
type twinDimensions struct {
	text, vision dimensions
}

// widest is the hidden size of a twin where the limit allows it; smaller ones
// halve it.
const widest, narrowest = 256, 32

// fewestVisionHeads are left of a vision encoder that has several.
const fewestVisionHeads = 2

// candidates returns the dimensions of twins, wider ones first. Vocabulary and head
// sizes stay, because tokenizer and rotary embedding rest on them; so do ratios
// between heads, where the limit allows; layers end with the first of each kind;
// and a width that was a multiple of its unit stays one, so that groups and blocks
// of scales stay whole.
func (m *model) candidates(unit units) (candidates []twinDimensions) {
	add := func(hidden, ratio int64) {
		to := m.narrowedText(hidden, ratio, unit.text)
		candidates = append(candidates, twinDimensions{to, m.narrowedVision(to, unit.vision)})
	}
	ratio := m.text["num_attention_heads"] / m.text["num_key_value_heads"]
	if !m.derivedHeads {
		for hidden := int64(widest); hidden >= narrowest; hidden /= 2 {
			add(hidden, ratio)
		}
		return candidates
	}
	for n := ratio; n >= 1; n-- {
		if ratio%n == 0 {
			add(0, n)
		}
	}
	return candidates
}

// narrowedText returns the dimensions of a text model of a hidden size and so many
// query heads for each key head. Where config.json gives no head size, the heads
// decide the hidden size.
func (m *model) narrowedText(hidden, ratio, unit int64) dimensions {
	from, to := m.text, maps.Clone(m.text)
	headDim := from["head_dim"]
	to["num_key_value_heads"] = fewest(1, from["num_key_value_heads"], unit, headDim, ratio*headDim)
	to["num_attention_heads"] = to["num_key_value_heads"] * ratio
	if m.derivedHeads {
		to["hidden_size"] = to["num_attention_heads"] * headDim
	} else {
		to["hidden_size"] = upTo(hidden, from["hidden_size"], unit)
	}
	to["intermediate_size"] = upTo(2*to["hidden_size"], from["intermediate_size"], unit)
	to["moe_intermediate_size"] = upTo(to["hidden_size"], from["moe_intermediate_size"], unit)
	to["num_experts"] = min(from["num_experts"], 2*max(from["num_experts_per_tok"], 1))
	to["num_hidden_layers"] = m.keptLayers
	if keyHeads := from["linear_num_key_heads"]; keyHeads > 0 {
		ratio := from["linear_num_value_heads"] / keyHeads
		to["linear_num_key_heads"] = fewest(1, keyHeads, unit, from["linear_key_head_dim"], ratio*from["linear_value_head_dim"])
		to["linear_num_value_heads"] = to["linear_num_key_heads"] * ratio
	}
	return to
}

// narrowedVision returns the dimensions of a vision encoder that hands its tokens
// to a text model. Its heads decide its hidden size.
func (m *model) narrowedVision(text dimensions, unit int64) dimensions {
	if m.vision == nil {
		return nil
	}
	from, to := m.vision, maps.Clone(m.vision)
	width := from["hidden_size"] / from["num_heads"]
	to["num_heads"] = fewest(fewestVisionHeads, from["num_heads"], unit, width)
	to["hidden_size"] = to["num_heads"] * width
	to["intermediate_size"] = upTo(2*to["hidden_size"], from["intermediate_size"], unit)
	to["depth"] = m.keptBlocks
	to["out_hidden_size"] = text["hidden_size"]
	return to
}

// upTo returns n, rounded up to a multiple of unit where the real width is one,
// but not more than that.
func upTo(n, width, unit int64) int64 {
	if width%unit == 0 {
		n = (n + unit - 1) / unit * unit
	}
	return min(n, width)
}

// fewest returns the smallest divisor of count from least on that keeps every
// width that was a multiple of unit a multiple of it. Widths are those of one head.
func fewest(least, count, unit int64, widths ...int64) int64 {
	for n := least; n < count; n++ {
		legal := count%n == 0
		for _, width := range widths {
			legal = legal && (count*width%unit != 0 || n*width%unit == 0)
		}
		if legal {
			return n
		}
	}
	return count
}
