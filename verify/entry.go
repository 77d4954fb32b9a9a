package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/ternary"
)

// audit is what looking at every entry of the quantization manifest gave.
type audit struct {
	findings []Finding
	found    map[string]Found
	counts   Counts
}

func (e *evidence) runAudit() *audit {
	q := *e.sub.quantization
	a := &audit{found: map[string]Found{}}
	alike := e.storedAlike(q)
	for _, name := range q.Names() {
		check := entryCheck{evidence: e, name: name, entry: q.Tensors[name], alike: alike}
		check.kind()
		if !check.present() { // gate coverage says so
			a.found[name] = Found{Failed: true}
			continue
		}
		switch check.entry.Kind {
		case manifest.KindPacked2Bit:
			check.packed()
		case manifest.KindLiteral:
			check.literal()
		default:
			check.float()
		}
		check.againstBase()
		check.sanity()
		a.findings = append(a.findings, check.findings...)
		failed := slices.ContainsFunc(check.findings, func(f Finding) bool { return f.Level == Error })
		a.found[name] = Found{Failed: failed, Unit: check.unit}
	}
	a.findings = append(a.findings, e.copies(q)...)
	stored := map[manifest.StoredTensor]safetensors.Tensor{} // of this model: others are not in its counts
	for _, key := range e.storedOf(&e.sub.models[0]) {
		stored[key] = e.stored[key]
	}
	a.counts = Count(e.base, q, stored, e.rules(), a.found)
	return a
}

// entryCheck checks one entry.
type entryCheck struct {
	*evidence
	outcome
	name   string
	entry  manifest.Quantity
	alike  map[string]string // entry and capacity -> an earlier entry stored alike
	unit   int64             // of a literal entry, found: weights that share a magnitude
	doubts []string          // signs that the content is not a trained ternary tensor
}

// kind checks that the task takes ternary tensors of this kind and format.
func (c *entryCheck) kind() {
	allowed, got := c.rules().Formats, c.entry.Kind
	if got == manifest.KindPacked2Bit {
		got = c.entry.FormatID()
	}
	if c.entry.Kind != manifest.KindFloat && len(allowed) > 0 && !slices.Contains(allowed, got) {
		c.bad(c.sub.quantizationPath, "is of a kind that the task does not take", strings.Join(allowed, ", "), got, "store it as a kind that the task takes")
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
	exportAgain = "export the tensor again, and look for the step that made them"
	ownStorage  = "store each tensor's own bytes"
	inItsShape  = "store it in the shape that its entry gives"
)

func describe(t safetensors.Tensor) string { return fmt.Sprintf("%s %v", t.DType, t.Shape) }

// at names a weight by its row and its input.
func (c *entryCheck) at(element int64) string {
	row := rowOf(c.entry)
	return fmt.Sprintf("row %d, input %d", element/row, element%row)
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
		c.notFinite(key.File, facts.NonFinite, facts.FirstNonFinite)
	}
	c.wider(key.File, tensor)
	if other := c.alike[c.name+"\x00"+string(asValues)]; other != "" {
		c.doubts = append(c.doubts, "it begins with the bytes of "+other)
	}
}

func (c *entryCheck) notFinite(file string, n, first int64) {
	c.bad(file, fmt.Sprintf("%s NaN or infinite, the first at element %d", isAre(n, "element"), first), "", "", exportAgain)
}

// wider refuses, under strict rules, a float entry of a 16-bit tensor of the
// backbone that is stored in a wider type: what is more could hold anything.
func (c *entryCheck) wider(file string, tensor safetensors.Tensor) {
	if c.rules().Counting != CountStrict || c.base == nil || roleOf(c.base, c.name) != manifest.RoleBackbone {
		return
	}
	base, known := safetensors.ParseDType(c.base.Tensors[c.name].DType)
	if known && base.Bits() == 16 && isFloating(tensor.DType) && tensor.DType.Bits() > 16 {
		c.bad(file, "a float entry is stored in a wider type than the base's", base.String(), tensor.DType.String(), "store it in the base's type")
	}
}

func isFloating(d safetensors.DType) bool {
	switch d {
	case safetensors.BF16, safetensors.F16, safetensors.F32, safetensors.F64, safetensors.F8E4M3, safetensors.F8E5M2:
		return true
	}
	return false
}

// number writes a value as briefly as it can be told from others.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 32) }

// valueText is a value of a type from its bits, for people.
func valueText(dtype safetensors.DType, b uint64) string { return number(ternary.Value(dtype, b)) }
