package audit

import (
	"fmt"
	"slices"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/report"
	"slipway/verify/scan"
	"slipway/verify/ternary"
)

// literal checks an entry of floating-point weights that are exactly ternary.
func (c *entryCheck) literal() {
	key := manifest.StoredTensor{File: c.entry.File, Tensor: c.entry.Tensor}
	tensor, sizes := c.Stored[key], LiteralSizes(c.entry)
	row := rowOf(c.entry)
	least := min(c.groupMinimum(), row)
	switch {
	case !ternary.HoldsValues(tensor.DType):
		c.bad(key.File, "literal weights have a type that they must not have", "F16, BF16 or F32", tensor.DType.String(), "store it as BF16")
		return
	case !slices.Equal(tensor.Shape, c.entry.Shape):
		c.bad(key.File, "is not stored in its shape", fmt.Sprint(c.entry.Shape), fmt.Sprint(tensor.Shape), inItsShape)
		return
	case sizes == nil || sizes[0] < least:
		c.bad(key.File, "group_size does not fit", fmt.Sprintf("a divisor of %d, at least %d", row, least), fmt.Sprint(c.entry.GroupSize), "give the group size that the weights were quantized with")
		return
	}
	facts := c.stats(key)
	if facts.NonFinite > 0 {
		c.notFinite(key.File, facts.NonFinite, facts.FirstNonFinite)
	}
	l := facts.Literal
	if l == nil || l.Tested != sizes[len(sizes)-1] {
		c.bad(key.File, "serves another entry as something else", "", "", ownStorage)
		return
	}
	c.unit = l.Unit
	if c.asymmetric = c.Rules.AllowAsymmetric && l.BadUnits > 0 && facts.Asymmetric >= least; c.asymmetric {
		c.unit = facts.Asymmetric
		c.Warn(report.Finding{Path: key.File, Tensor: c.name, Problem: "is {-b, 0, +a}, of two magnitudes a unit, which the task takes",
			Hint: "check that the server computes with both"})
	}
	switch {
	case c.asymmetric:
	case l.BadUnits > 0:
		c.secondMagnitude(key.File, tensor.DType, l, sizes)
	case l.Unit < least:
		c.bad(key.File, "a magnitude serves too few weights", fmt.Sprintf("units of at least %d", least), fmt.Sprint(l.Unit), "use larger groups")
	}
	c.frequencies(l.Minus, l.Zeros, l.Count-l.Zeros-l.Minus)
	c.doubtAlike(AsValues)
}

// secondMagnitude reports the first unit that is not {-a, 0, +a}, and what may
// have made it so.
func (c *entryCheck) secondMagnitude(file string, dtype safetensors.DType, l *scan.Literal, sizes []int64) {
	problem := fmt.Sprintf("%d of %d units of %d weights are not {-a, 0, +a}; the first second magnitude is at %s", l.BadUnits, l.Units, l.Tested, c.at(l.FirstBad))
	if len(sizes) > 1 {
		problem = fmt.Sprintf("is ternary in no unit of %v weights: ", sizes) + problem
	}
	hint := "export the quantized weights, not the ones they were made from; or list the tensor as float"
	if l.Near {
		problem += "; all are within 2^-7 of each other"
		hint = "it looks ternary but for rounding: export it in the type that it was quantized in, without a conversion"
	}
	c.bad(file, problem, "one magnitude a unit", valueText(dtype, l.First)+" and "+valueText(dtype, l.Second), hint)
}
