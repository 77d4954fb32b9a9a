package verify

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/scan"
)

func decideTernary(e *evidence) outcome {
	if end, done := e.withoutAudit(); done {
		return end
	}
	o := outcome{findings: slices.Clone(e.audit.findings)}
	o.formatText(e)
	counts, bound := e.audit.counts, e.rules().FractionAbove
	switch {
	case bound.Denominator == 0:
		o.note("the profile has no bound")
	case counts.FractionMargin > 0:
		spare := (counts.FractionMargin + bound.Denominator/2) / bound.Denominator
		o.note("%s to spare above %s of T+s+f", plural(int(spare), "ternary element"), ratio(bound))
	default:
		o.fail(Finding{Path: e.sub.quantizationPath, Problem: "too little of the model is ternary",
			Want: "T above " + ratio(bound) + " of T+s+f", Got: counts.Fraction, Hint: "use larger groups, or make more linear tensors ternary"})
	}
	return e.asFarAsThere(o)
}

// knownFormat is the packing that this package reads, as the quantization
// manifest's format may name it: by its kind, or in full.
var knownFormat = regexp.MustCompile(`^packed_2bit(: U8, four codes a byte, lowest bits first along the input axis; value = \(code - 1\) \* scale; (BF16|F16|F32) scale per group of \d+ inputs)?$`)

// formatText warns where the manifest says in words that its packed tensors
// are something else than they are read as.
func (o *outcome) formatText(e *evidence) {
	text := e.sub.quantization.Format
	if text == "" || e.audit.counts.Packed == 0 || knownFormat.MatchString(text) {
		return
	}
	o.warn(Finding{Path: e.sub.quantizationPath, Problem: "format names another packing than the one that packed tensors are read as",
		Want: "packed_2bit: U8, four codes a byte, lowest bits first along the input axis; value = (code - 1) * scale", Got: manifest.Clip(text),
		Hint: "pack the codes so; if they are, correct the text"})
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
	stored := map[manifest.StoredTensor]safetensors.Tensor{} // of this model: others are not in its counts
	for _, key := range e.storedOf(&e.sub.models[0]) {
		stored[key] = e.stored[key]
	}
	a.counts = Count(e.base, q, stored, e.rules(), a.failed)
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
		c.bad(c.sub.quantizationPath, "is of a kind that the task does not take", strings.Join(allowed, ", "), c.entry.Kind, "store it as a kind that the task takes")
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
func (c *entryCheck) bad(file, problem, want, got, hint string) {
	c.fail(Finding{Path: file, Tensor: c.name, Problem: problem, Want: want, Got: got, Hint: hint})
}

// Remedies that several checks share.
const (
	packAgain   = "pack the tensor again: U8 codes [N, K/4] and one scale for each group of a row"
	exportAgain = "export the tensor again, and look for the step that made them"
	ownStorage  = "store each tensor's own bytes"
	inItsShape  = "store it in the shape that its entry gives"
)

func describe(t safetensors.Tensor) string { return fmt.Sprintf("%s %v", t.DType, t.Shape) }

func (c *entryCheck) packed(alike map[string]string) {
	p, err := packingOf(c.entry)
	if err != nil {
		c.bad(c.entry.Codes.File, err.Error(), "", "", packAgain)
		return
	}
	if minimum := c.groupMinimum(); c.entry.GroupSize < minimum {
		c.bad(c.entry.Codes.File, "a scale serves too few weights", fmt.Sprintf("group_size at least %d", minimum), fmt.Sprint(c.entry.GroupSize), "use larger groups")
	}
	codes, scales := c.stored[*c.entry.Codes], c.stored[*c.entry.Scales]
	if codes.DType != safetensors.U8 || !slices.Equal(codes.Shape, p.codes) {
		c.bad(c.entry.Codes.File, fmt.Sprintf("codes do not fit shape %v", c.entry.Shape), fmt.Sprintf("U8 %v", p.codes), describe(codes), packAgain)
	}
	if !scan.HoldsValues(scales.DType) {
		c.bad(c.entry.Scales.File, "scales have a type that scales must not have", "F16, BF16 or F32", scales.DType.String(), "store the scales as F16")
	} else if !slices.Equal(scales.Shape, p.scales) {
		c.bad(c.entry.Scales.File, "there is not exactly one scale for each group", fmt.Sprint(p.scales), fmt.Sprint(scales.Shape), packAgain)
	}
	if len(c.findings) > 0 {
		return // values are counted by a geometry that does not hold
	}
	c.codeValues(p, c.stats(*c.entry.Codes).Codes)
	c.scaleValues(p, c.stats(*c.entry.Scales).Scales, c.stats(*c.entry.Codes).Codes)
	if other := alike[c.name+"\x00"+string(asCodes)]; other != "" {
		c.doubts = append(c.doubts, "its codes are those of "+other)
	}
	if other := alike[c.name+"\x00"+string(asScales)]; other != "" {
		c.doubts = append(c.doubts, "its scales are those of "+other)
	}
}

func (c *entryCheck) codeValues(p packing, codes *scan.Codes) {
	if codes == nil {
		c.bad(c.entry.Codes.File, "its codes serve another entry as something else", "", "", ownStorage)
		return
	}
	if n := codes.Histogram[3]; n > 0 {
		c.bad(c.entry.Codes.File, fmt.Sprintf("code 3 stands %d times, first at row %d, input %d", n, codes.FirstBad/p.inputs, codes.FirstBad%p.inputs),
			"codes 0, 1 and 2", "", "pack codes 0, 1 and 2 only, for -1, 0 and +1")
		return
	}
	total := p.rows * p.inputs
	if most := slices.Max(codes.Histogram[:]); 100*most > 95*total {
		c.doubts = append(c.doubts, fmt.Sprintf("one code is %s of it", ratioText(most, total)))
	}
	c.zeroFraction(codes.Histogram[1], total)
}

func (c *entryCheck) zeroFraction(zeros, total int64) {
	if 100*zeros < 2*total || 100*zeros > 90*total {
		c.doubts = append(c.doubts, fmt.Sprintf("zeros are %s of it, outside 0.02 to 0.90", ratioText(zeros, total)))
	}
}

func (c *entryCheck) scaleValues(p packing, scales *scan.Scales, codes *scan.Codes) {
	file := c.entry.Scales.File
	if scales == nil || codes == nil {
		c.bad(file, "its scales serve another entry as something else", "", "", ownStorage)
		return
	}
	perRow := p.inputs / c.entry.GroupSize
	if scales.NonFinite > 0 {
		c.bad(file, fmt.Sprintf("%d scales are NaN or infinite, the first at row %d, group %d", scales.NonFinite,
			scales.FirstNonFinite/perRow, scales.FirstNonFinite%perRow), "", "", exportAgain)
	}
	if dead, first := scales.ZeroUnits.MissingFrom(codes.ZeroUnits); dead > 0 {
		c.bad(file, fmt.Sprintf("%d groups have scale zero over codes that are not, the first at row %d, group %d", dead, first/perRow, first%perRow), "", "",
			"write code 1 where the scale is zero, or the scale that the group has; a scale below the smallest F16 is stored as zero")
	}
	if scales.Negative > 0 {
		c.warn(Finding{Path: file, Tensor: c.name, Problem: fmt.Sprintf("%d scales are negative", scales.Negative),
			Hint: "store their magnitudes and swap codes 0 and 2, so that every server agrees"})
	}
	if scales.Subnormal > 0 {
		c.warn(Finding{Path: file, Tensor: c.name, Problem: fmt.Sprintf("%d scales are subnormal", scales.Subnormal),
			Hint: "a server that flushes subnormal numbers to zero computes something else"})
	}
	if scales.AllEqual() {
		c.doubts = append(c.doubts, "all its scales are equal")
	}
}

func (c *entryCheck) literal() {
	key := manifest.StoredTensor{File: c.entry.File, Tensor: c.entry.Tensor}
	tensor, unit := c.stored[key], literalUnit(c.entry)
	if !scan.HoldsValues(tensor.DType) {
		c.bad(key.File, "literal weights have a type that they must not have", "F16, BF16 or F32", tensor.DType.String(), "store it as BF16")
		return
	}
	if !slices.Equal(tensor.Shape, c.entry.Shape) {
		c.bad(key.File, "is not stored in its shape", fmt.Sprint(c.entry.Shape), fmt.Sprint(tensor.Shape), inItsShape)
		return
	}
	row := int64(1)
	if n := len(c.entry.Shape); n > 0 {
		row = c.entry.Shape[n-1]
	}
	if minimum := c.groupMinimum(); unit < min(minimum, row) || unit == 0 || row%unit != 0 {
		c.bad(key.File, "group_size does not fit", fmt.Sprintf("a divisor of %d, at least %d", row, min(minimum, row)), fmt.Sprint(unit), "give the group size that the weights were quantized with")
		return
	}
	facts := c.stats(key)
	if facts.NonFinite > 0 {
		c.bad(key.File, fmt.Sprintf("%d elements are NaN or infinite, the first at element %d", facts.NonFinite, facts.FirstNonFinite), "", "", exportAgain)
	}
	l := facts.Literal
	if l == nil || l.Unit != unit {
		c.bad(key.File, "serves another entry as something else", "", "", ownStorage)
		return
	}
	if l.BadUnits > 0 {
		c.bad(key.File, fmt.Sprintf("%d of %d units of %d weights are not {-a, 0, +a}; the first second magnitude is at row %d, input %d",
			l.BadUnits, l.Units, unit, l.FirstBad/row, l.FirstBad%row),
			"one magnitude a unit", number(scan.Value(tensor.DType, l.First))+" and "+number(scan.Value(tensor.DType, l.Second)),
			"export the quantized weights, not the ones they were made from, and in a type that does not round them apart; or list the tensor as float")
	}
	c.zeroFraction(l.Zeros, tensor.Elements())
}

func (c *entryCheck) float() {
	key := manifest.StoredTensor{File: c.entry.File, Tensor: c.entry.Tensor}
	tensor := c.stored[key]
	if !isFloating(tensor.DType) {
		c.bad(key.File, "a float entry is stored in another type", "a floating type", tensor.DType.String(), "store it in the base's type")
	}
	if !slices.Equal(tensor.Shape, c.entry.Shape) {
		c.bad(key.File, "is not stored in its shape", fmt.Sprint(c.entry.Shape), fmt.Sprint(tensor.Shape), inItsShape)
	}
	if facts := c.stats(key); facts.NonFinite > 0 {
		c.bad(key.File, fmt.Sprintf("%d elements are NaN or infinite, the first at element %d", facts.NonFinite, facts.FirstNonFinite), "", "", exportAgain)
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
		f := Finding{Path: file, Tensor: c.name, Problem: "does not look like trained weights: " + doubt,
			Hint: "compare it with the model that was trained: a tensor may have been exported twice, or not at all"}
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
			print := fmt.Sprintf("%s %v %s", r.as, describe(tensor), facts.Prefix)
			switch {
			case r.as == asCodes && facts.Codes != nil:
				print += fmt.Sprint(facts.Codes.Histogram)
			case r.as == asScales && facts.Scales != nil && !facts.Scales.AllEqual():
				print += fmt.Sprint(facts.Scales.Min, facts.Scales.Max, facts.Scales.Negative)
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
		if codes := e.stats(*entry.Codes).Codes; codes != nil {
			histogram := codes.Histogram
			r.Histogram = &histogram
		}
	}
	if _, ok := e.stored[*entry.Scales]; !ok {
		return
	}
	if s := e.stats(*entry.Scales).Scales; s != nil {
		r.ZeroScale, r.Negative, r.NonFinite = s.ZeroUnits.Size(), s.Negative, s.NonFinite
		if s.Min <= s.Max {
			r.ScaleMin, r.ScaleMax = number(s.Min), number(s.Max)
		}
	}
}
