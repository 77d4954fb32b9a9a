package audit

import (
	"fmt"
	"slices"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/scan"
	"slipway/verify/ternary"
	"slipway/verify/words"
)

// packed checks an entry of codes and scales, of any format.
func (c *entryCheck) packed() {
	l, err := ternary.LayoutOf(c.entry)
	if err != nil {
		format, _ := ternary.Lookup(c.entry.FormatID())
		c.bad(c.entry.Codes.File, err.Error(), "", "", format.Remedy)
		return
	}
	if minimum := c.groupMinimum(); l.UnitSize < minimum && l.Unit != manifest.UnitRow {
		c.bad(c.entry.Codes.File, "a scale serves too few weights", fmt.Sprintf("group_size at least %d", minimum), fmt.Sprint(l.UnitSize), "use larger groups")
	}
	codes := c.Stored[*c.entry.Codes]
	if codes.DType != l.Codes.DType || !slices.Equal(codes.Shape, l.Codes.Shape) {
		c.bad(c.entry.Codes.File, fmt.Sprintf("codes do not fit shape %v", c.entry.Shape), fmt.Sprintf("%s %v", l.Codes.DType, l.Codes.Shape), Describe(codes), l.Format.Remedy)
	}
	c.scaleShape(&l, c.entry.Scales, "scales", l.Scales)
	if c.entry.Biases != nil {
		c.scaleShape(&l, c.entry.Biases, "biases", *l.Biases)
	}
	if len(c.Findings) > 0 {
		return // values are counted by a geometry that does not hold
	}
	c.codeValues(&l, c.stats(*c.entry.Codes).Codes)
	c.scaleValues(&l, c.stats(*c.entry.Scales).Scales, c.stats(*c.entry.Codes).Codes)
	if c.entry.Biases != nil {
		c.biasValues(&l)
	}
	c.doubtAlike(AsCodes)
	c.doubtAlike(AsScales)
}

// scaleShape checks type and shape of the stored scales, or of the biases.
func (c *entryCheck) scaleShape(l *ternary.Layout, at *manifest.StoredTensor, what string, want ternary.Part) {
	stored := c.Stored[*at]
	switch {
	case want.DType != 0 && stored.DType != want.DType:
		c.bad(at.File, fmt.Sprintf("%s are not of the type that %s has", what, l.Format.ID), want.DType.String(), stored.DType.String(), l.Format.Remedy)
	case !ternary.HoldsValues(stored.DType):
		c.bad(at.File, what+" have a type that scales must not have", "F16, BF16 or F32", stored.DType.String(), "store the scales as F16")
	case c.entry.ScaleDType != "" && stored.DType.String() != c.entry.ScaleDType:
		c.bad(at.File, what+" are not of the type that the entry gives", c.entry.ScaleDType, stored.DType.String(), "correct scale_dtype")
	case !slices.Equal(stored.Shape, want.Shape):
		c.bad(at.File, fmt.Sprintf("there is not exactly one of the %s for each %s", what, l.Unit), fmt.Sprint(want.Shape), fmt.Sprint(stored.Shape), l.Format.Remedy)
	}
}

func (c *entryCheck) codeValues(l *ternary.Layout, codes *scan.Codes) {
	file := c.entry.Codes.File
	if codes == nil {
		c.bad(file, "its codes serve another entry as something else", "", "", ownStorage)
		return
	}
	if codes.BadPads > 0 {
		c.bad(file, fmt.Sprintf("%d codes of the padding are not its code, the first in packed row %d", codes.BadPads, l.PackedRow(codes.FirstBadPad)),
			"code 0", "", "pad with code 0: whatever is there is no weight")
	}
	if n, packing := codes.Histogram[ternary.Bad], l.Format.Packing; n > 0 {
		c.bad(file, fmt.Sprintf("%s stands %d times, first at %s", packing.BadOne, n, c.at(codes.FirstBad)),
			packing.Good, "", fmt.Sprintf("pack %s only, for -1, 0 and +1", packing.Good))
		return
	}
	c.frequencies(codes.Histogram[0], codes.Histogram[1], codes.Histogram[2])
}

// frequencies doubts tensors of which one value is nearly all, or too few or
// too many are zero.
func (c *entryCheck) frequencies(minus, zeros, plus int64) {
	total := minus + zeros + plus
	if most := max(minus, zeros, plus); 100*most > 95*total {
		c.doubts = append(c.doubts, fmt.Sprintf("one code is %s of it", ratioText(most, total)))
	}
	if 100*zeros < 2*total || 100*zeros > 90*total {
		c.doubts = append(c.doubts, fmt.Sprintf("zeros are %s of it, outside 0.02 to 0.90", ratioText(zeros, total)))
	}
}

// unitAt names a scale unit.
func unitAt(l *ternary.Layout, unit int64) string {
	switch l.Unit {
	case manifest.UnitTensor:
		return "the only one"
	case manifest.UnitRow:
		return fmt.Sprintf("row %d", unit)
	}
	perRow := l.Inputs / l.UnitSize
	return fmt.Sprintf("row %d, group %d", unit/perRow, unit%perRow)
}

func (c *entryCheck) scaleValues(l *ternary.Layout, scales *scan.Scales, codes *scan.Codes) {
	file := c.entry.Scales.File
	if scales == nil || codes == nil {
		c.bad(file, "its scales serve another entry as something else", "", "", ownStorage)
		return
	}
	if scales.NonFinite > 0 {
		c.bad(file, fmt.Sprintf("%d scales are NaN or infinite, the first at %s", scales.NonFinite, unitAt(l, scales.FirstNonFinite)), "", "", exportAgain)
	}
	if dead, first := scales.ZeroUnits.MissingFrom(codes.ZeroUnits); dead > 0 {
		c.bad(file, fmt.Sprintf("%d %ss have scale zero over codes that are not, the first at %s", dead, l.Unit, unitAt(l, first)), "", "",
			"write the code of 0 where the scale is zero, or the scale that the group has; a scale below the smallest F16 is stored as zero")
	}
	if scales.Negative > 0 {
		c.Warn(report.Finding{Path: file, Tensor: c.name, Problem: fmt.Sprintf("%d scales are negative", scales.Negative),
			Hint: "store their magnitudes and swap the codes of -1 and +1, so that every server agrees"})
	}
	if scales.Subnormal > 0 {
		c.Warn(report.Finding{Path: file, Tensor: c.name, Problem: fmt.Sprintf("%d scales are subnormal", scales.Subnormal),
			Hint: "a server that flushes subnormal numbers to zero computes something else"})
	}
	if scales.AllEqual() {
		c.doubts = append(c.doubts, "all its scales are equal")
	}
}

// biasValues checks that every bias is the negative of its scale: only then do
// codes 0, 1 and 2 stand for -scale, 0 and +scale.
func (c *entryCheck) biasValues(l *ternary.Layout) {
	scales, biases := c.Stored[*c.entry.Scales], c.Stored[*c.entry.Biases]
	if scales.DType != biases.DType {
		c.bad(c.entry.Biases.File, "biases are of another type than their scales", scales.DType.String(), biases.DType.String(), l.Format.Remedy)
		return
	}
	a, b := c.stats(*c.entry.Scales).Pair, c.stats(*c.entry.Biases).Pair
	if a.IsZero() || b.IsZero() {
		c.bad(c.entry.Biases.File, "its biases serve another entry as something else", "", "", ownStorage)
		return
	}
	if a == b {
		return
	}
	finding := report.Finding{Path: c.entry.Biases.File, Tensor: c.name, Problem: "not every bias is the negative of its scale, bit for bit",
		Hint: "store -scale as the bias of every group of a ternary tensor; a tensor that needs other biases is not ternary"}
	if p := c.Unpaired[c.name]; p != nil {
		finding.Problem = fmt.Sprintf("%s not the negative of the scale, bit for bit, the first at %s", words.Are(p.count, "bias value"), unitAt(l, p.first))
		finding.Want, finding.Got = number(-p.scale(scales.DType)), valueText(biases.DType, p.biasBits)
		finding.Problem += fmt.Sprintf(": codes 0, 1 and 2 stand for %s, %s and %s", number(p.value(scales.DType, 0)), number(p.value(scales.DType, 1)), number(p.value(scales.DType, 2)))
	}
	c.Fail(finding)
}
