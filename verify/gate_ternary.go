package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

func decideTernary(e *evidence) outcome {
	if end, done := e.withoutAudit(); done {
		return end
	}
	o := outcome{findings: slices.Clone(e.audit.findings)}
	counts, bound := e.audit.counts, e.rules().FractionAbove
	o.note("T/(T+s+f) = %d/%d = %s, in %d packed and %d literal of %d entries", counts.Ternary, counts.Counted(), counts.Fraction,
		counts.Packed, counts.Literal, counts.Entries)
	switch {
	case bound.Denominator == 0:
		o.note("the profile has no bound")
	case counts.FractionMargin <= 0:
		o.fail(Finding{Path: e.sub.quantizationPath, Problem: "too little of the model is ternary",
			Want: "above " + ratio(bound), Got: counts.Fraction, Hint: "use larger groups, or make more linear tensors ternary"})
	default:
		o.note("margin %d/%d elements above %s", counts.FractionMargin, bound.Denominator, ratio(bound))
	}
	return o
}

// audit is what looking at every entry of the quantization manifest gave.
type audit struct {
	findings []Finding
	failed   map[string]bool // entries that are not what they claim
	counts   Counts
	alike    map[string]string // entry and capacity -> an earlier entry stored alike
}

func (e *evidence) runAudit() *audit {
	q := *e.sub.quantization
	a := &audit{failed: map[string]bool{}, alike: e.storedAlike(q)}
	for _, name := range q.Names() {
		entry := q.Tensors[name]
		check := entryCheck{evidence: e, name: name, entry: entry}
		check.format()
		if !check.present() { // gate coverage says so
			a.failed[name] = true
			continue
		}
		switch entry.Kind {
		case manifest.KindPacked2Bit:
			check.packed(a.alike)
		case manifest.KindLiteral:
			check.literal()
		default:
			check.float()
		}
		check.sanity()
		a.findings = append(a.findings, check.findings...)
		a.failed[name] = slices.ContainsFunc(check.findings, func(f Finding) bool { return f.Level == Error })
	}
	a.counts = Count(e.base, q, e.stored, e.rules(), a.failed)
	return a
}

// entryCheck checks one entry.
type entryCheck struct {
	*evidence
	outcome
	name   string
	entry  manifest.Quantity
	doubts []string // signs that the content is not a trained ternary tensor
}

// format checks that the task takes ternary tensors of this kind.
func (c *entryCheck) format() {
	allowed := c.rules().Formats
	if c.entry.Kind != manifest.KindFloat && len(allowed) > 0 && !slices.Contains(allowed, c.entry.Kind) {
		c.bad(c.sub.quantizationPath, "is of a kind that the task does not take", strings.Join(allowed, ", "), c.entry.Kind)
	}
}

// present reports whether the entry's stored tensors are all there.
func (c *entryCheck) present() bool {
	for _, r := range references(&c.entry) {
		if _, ok := c.stored[manifest.StoredTensor{File: *r.file, Tensor: r.tensor}]; !ok {
			return false
		}
	}
	return true
}

// bad records an error at the entry; file is where its bytes are.
func (c *entryCheck) bad(file, problem, want, got string) {
	c.fail(Finding{Path: file, Tensor: c.name, Problem: problem, Want: want, Got: got})
}

func describe(t safetensors.Tensor) string { return fmt.Sprintf("%s %v", t.DType, t.Shape) }

func (c *entryCheck) packed(alike map[string]string) {
	p, err := packingOf(c.entry)
	if err != nil {
		c.bad(c.entry.Codes.File, err.Error(), "", "")
		return
	}
	if minimum := c.groupMinimum(); c.entry.GroupSize < minimum {
		c.bad(c.entry.Codes.File, "a scale serves too few weights", fmt.Sprintf("group_size at least %d", minimum), fmt.Sprint(c.entry.GroupSize))
	}
	codes, scales := c.stored[*c.entry.Codes], c.stored[*c.entry.Scales]
	if codes.DType != safetensors.U8 || !slices.Equal(codes.Shape, p.codes) {
		c.bad(c.entry.Codes.File, fmt.Sprintf("codes do not fit shape %v", c.entry.Shape), fmt.Sprintf("U8 %v", p.codes), describe(codes))
	}
	if _, ok := layoutOf(scales.DType); !ok {
		c.bad(c.entry.Scales.File, "scales have a type that scales must not have", "F16, BF16 or F32", scales.DType.String())
	} else if !slices.Equal(scales.Shape, p.scales) {
		c.bad(c.entry.Scales.File, "there is not exactly one scale for each group", fmt.Sprint(p.scales), fmt.Sprint(scales.Shape))
	}
	if len(c.findings) > 0 {
		return // values are counted by a geometry that does not hold
	}
	c.codeValues(p, c.stats(*c.entry.Codes).codes)
	c.scaleValues(p, c.stats(*c.entry.Scales).scales, c.stats(*c.entry.Codes).codes)
	if other := alike[c.name+"\x00"+string(asCodes)]; other != "" {
		c.doubts = append(c.doubts, "its codes are those of "+other)
	}
	if other := alike[c.name+"\x00"+string(asScales)]; other != "" {
		c.doubts = append(c.doubts, "its scales are those of "+other)
	}
}

func (c *entryCheck) codeValues(p packing, codes *codeFacts) {
	if codes == nil {
		c.bad(c.entry.Codes.File, "its codes serve another entry as something else", "", "")
		return
	}
	if n := codes.histogram[3]; n > 0 {
		c.bad(c.entry.Codes.File, fmt.Sprintf("code 3 stands %d times, first at row %d, input %d", n, codes.firstBad/p.inputs, codes.firstBad%p.inputs),
			"codes 0, 1 and 2", "")
		return
	}
	total := p.rows * p.inputs
	if most := slices.Max(codes.histogram[:]); 100*most > 95*total {
		c.doubts = append(c.doubts, fmt.Sprintf("one code is %s of it", ratioText(most, total)))
	}
	c.zeroFraction(codes.histogram[1], total)
}

func (c *entryCheck) zeroFraction(zeros, total int64) {
	if 100*zeros < 2*total || 100*zeros > 90*total {
		c.doubts = append(c.doubts, fmt.Sprintf("zeros are %s of it, outside 0.02 to 0.90", ratioText(zeros, total)))
	}
}

func (c *entryCheck) scaleValues(p packing, scales *scaleFacts, codes *codeFacts) {
	file := c.entry.Scales.File
	if scales == nil || codes == nil {
		c.bad(file, "its scales serve another entry as something else", "", "")
		return
	}
	perRow := p.inputs / c.entry.GroupSize
	if scales.nonFinite > 0 {
		c.bad(file, fmt.Sprintf("%d scales are NaN or infinite, the first at row %d, group %d", scales.nonFinite,
			scales.firstNonFinite/perRow, scales.firstNonFinite%perRow), "", "")
	}
	if dead, first := scales.zeroUnits.missingFrom(codes.zeroUnits); dead > 0 {
		c.bad(file, fmt.Sprintf("%d groups have scale zero over codes that are not, the first at row %d, group %d", dead, first/perRow, first%perRow), "", "")
	}
	if scales.negative > 0 {
		c.warn(Finding{Path: file, Tensor: c.name, Problem: fmt.Sprintf("%d scales are negative", scales.negative)})
	}
	if scales.subnormal > 0 {
		c.warn(Finding{Path: file, Tensor: c.name, Problem: fmt.Sprintf("%d scales are subnormal", scales.subnormal),
			Hint: "a server that flushes subnormal numbers to zero computes something else"})
	}
	if scales.allEqual() {
		c.doubts = append(c.doubts, "all its scales are equal")
	}
}

func (c *entryCheck) literal() {
	key := manifest.StoredTensor{File: c.entry.File, Tensor: c.entry.Tensor}
	tensor, unit := c.stored[key], literalUnit(c.entry)
	if _, ok := layoutOf(tensor.DType); !ok {
		c.bad(key.File, "literal weights have a type that they must not have", "F16, BF16 or F32", tensor.DType.String())
		return
	}
	if !slices.Equal(tensor.Shape, c.entry.Shape) {
		c.bad(key.File, "is not stored in its shape", fmt.Sprint(c.entry.Shape), fmt.Sprint(tensor.Shape))
		return
	}
	row := int64(1)
	if n := len(c.entry.Shape); n > 0 {
		row = c.entry.Shape[n-1]
	}
	if minimum := c.groupMinimum(); unit < min(minimum, row) || unit == 0 || row%unit != 0 {
		c.bad(key.File, "group_size does not fit", fmt.Sprintf("a divisor of %d, at least %d", row, min(minimum, row)), fmt.Sprint(unit))
		return
	}
	facts := c.stats(key)
	if facts.nonFinite > 0 {
		c.bad(key.File, fmt.Sprintf("%d elements are NaN or infinite, the first at element %d", facts.nonFinite, facts.firstNonFinite), "", "")
	}
	l := facts.literal
	if l == nil || l.unit != unit {
		c.bad(key.File, "serves another entry as something else", "", "")
		return
	}
	if l.badUnits > 0 {
		c.bad(key.File, fmt.Sprintf("%d of %d units of %d weights are not {-a, 0, +a}; the first second magnitude is at row %d, input %d",
			l.badUnits, l.units, unit, l.firstBad/row, l.firstBad%row),
			"one magnitude a unit", number(value(tensor.DType, l.first))+" and "+number(value(tensor.DType, l.second)))
	}
	c.zeroFraction(l.zeros, tensor.Elements())
}

func (c *entryCheck) float() {
	key := manifest.StoredTensor{File: c.entry.File, Tensor: c.entry.Tensor}
	tensor := c.stored[key]
	if !isFloating(tensor.DType) {
		c.bad(key.File, "a float entry is stored in another type", "a floating type", tensor.DType.String())
	}
	if !slices.Equal(tensor.Shape, c.entry.Shape) {
		c.bad(key.File, "is not stored in its shape", fmt.Sprint(c.entry.Shape), fmt.Sprint(tensor.Shape))
	}
	if facts := c.stats(key); facts.nonFinite > 0 {
		c.bad(key.File, fmt.Sprintf("%d elements are NaN or infinite, the first at element %d", facts.nonFinite, facts.firstNonFinite), "", "")
	}
}

func isFloating(d safetensors.DType) bool {
	switch d {
	case safetensors.BF16, safetensors.F16, safetensors.F32, safetensors.F64, safetensors.F8E4M3, safetensors.F8E5M2:
		return true
	}
	return false
}

// sanity reports the doubts: one is worth a look, two are an error.
func (c *entryCheck) sanity() {
	file := c.entry.File
	if c.entry.Codes != nil {
		file = c.entry.Codes.File
	}
	for _, doubt := range c.doubts {
		f := Finding{Path: file, Tensor: c.name, Problem: "does not look like trained weights: " + doubt}
		if len(c.doubts) > 1 {
			c.fail(f)
		} else {
			c.warn(f)
		}
	}
}

// storedAlike finds packed entries whose codes or scales are those of an
// earlier entry: same type, shape, statistics and first prefixBytes.
func (e *evidence) storedAlike(q manifest.Quantization) map[string]string {
	alike, first := map[string]string{}, map[string]string{}
	for _, name := range q.Names() {
		entry := q.Tensors[name]
		for _, r := range references(&entry) {
			key := manifest.StoredTensor{File: *r.file, Tensor: r.tensor}
			tensor, ok := e.stored[key]
			if !ok || r.as == asValues || tensor.Elements() < 64 {
				continue
			}
			facts := e.stats(key)
			print := fmt.Sprintf("%s %v %s", r.as, describe(tensor), facts.prefix)
			switch {
			case r.as == asCodes && facts.codes != nil:
				print += fmt.Sprint(facts.codes.histogram)
			case r.as == asScales && facts.scales != nil && !facts.scales.allEqual():
				print += fmt.Sprint(facts.scales.min, facts.scales.max, facts.scales.negative)
			default:
				continue
			}
			if other := first[print]; other != "" {
				alike[name+"\x00"+string(r.as)] = other
			} else {
				first[print] = name
			}
		}
	}
	return alike
}

// number writes a value as briefly as it can be told from others.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 32) }

// tensorReports describes the ternary entries, by name.
func (e *evidence) tensorReports() []TensorReport {
	var reports []TensorReport
	for name, entry := range e.sub.quantization.Tensors {
		if entry.Kind == manifest.KindFloat {
			continue
		}
		report := TensorReport{Name: name, Kind: entry.Kind, Shape: entry.Shape, Unit: literalUnit(entry)}
		if entry.Codes != nil {
			report.describeStored(e, entry)
		}
		reports = append(reports, report)
	}
	slices.SortFunc(reports, func(a, b TensorReport) int { return cmp.Compare(a.Name, b.Name) })
	return reports
}

func (r *TensorReport) describeStored(e *evidence, entry manifest.Quantity) {
	if _, ok := e.stored[*entry.Codes]; ok {
		if codes := e.stats(*entry.Codes).codes; codes != nil {
			histogram := codes.histogram
			r.Histogram = &histogram
		}
	}
	if _, ok := e.stored[*entry.Scales]; !ok {
		return
	}
	if s := e.stats(*entry.Scales).scales; s != nil {
		r.ZeroScale, r.Negative, r.NonFinite = s.zeroUnits.size(), s.negative, s.nonFinite
		if s.min <= s.max {
			r.ScaleMin, r.ScaleMax = number(s.min), number(s.max)
		}
	}
}
