package audit

import (
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/report"
	"slipway/verify/words"
)

// entryCheck checks one entry.
type entryCheck struct {
	*Evidence
	report.Outcome
	name   string
	entry  manifest.Quantity
	alike  map[string]string // entry and capacity -> an earlier entry stored alike
	unit   int64             // of a literal entry, found: weights that share a magnitude
	doubts []string          // signs that the content is not a trained ternary tensor
}

// kind checks that the task takes ternary tensors of this kind and format.
func (c *entryCheck) kind() {
	allowed, got := c.Rules.Formats, c.entry.Kind
	if got == manifest.KindPacked2Bit {
		got = c.entry.FormatID()
	}
	if c.entry.Kind != manifest.KindFloat && len(allowed) > 0 && !slices.Contains(allowed, got) {
		c.bad(c.Path, "is of a kind that the task does not take", strings.Join(allowed, ", "), got, "store it as a kind that the task takes")
	}
}

// present reports whether the entry's stored tensors are all there.
func (c *entryCheck) present() bool {
	for _, r := range References(&c.entry) {
		if _, ok := c.Stored[manifest.StoredTensor{File: *r.File, Tensor: r.Tensor}]; !ok {
			return false
		}
	}
	return true
}

// bad records an error at the entry; file is where its bytes are.
func (c *entryCheck) bad(file, problem, want, got, hint string) {
	c.Fail(report.Finding{Path: file, Tensor: c.name, Problem: problem, Want: want, Got: got, Hint: hint})
}

// Remedies that several checks share.
const (
	exportAgain = "export the tensor again, and look for the step that made them"
	ownStorage  = "store each tensor's own bytes"
	inItsShape  = "store it in the shape that its entry gives"
)

// at names a weight by its row and its input.
func (c *entryCheck) at(element int64) string {
	row := rowOf(c.entry)
	return fmt.Sprintf("row %d, input %d", element/row, element%row)
}

func (c *entryCheck) float() {
	key := manifest.StoredTensor{File: c.entry.File, Tensor: c.entry.Tensor}
	tensor := c.Stored[key]
	if !IsFloating(tensor.DType) {
		c.bad(key.File, "a float entry is stored in another type", "a floating type", tensor.DType.String(), "store it in the base's type")
	}
	if !slices.Equal(tensor.Shape, c.entry.Shape) {
		c.bad(key.File, "is not stored in its shape", fmt.Sprint(c.entry.Shape), fmt.Sprint(tensor.Shape), inItsShape)
	}
	if facts := c.stats(key); facts.NonFinite > 0 {
		c.notFinite(key.File, facts.NonFinite, facts.FirstNonFinite)
	}
	c.wider(key.File, tensor)
	if other := c.alike[c.name+"\x00"+string(AsValues)]; other != "" {
		c.doubts = append(c.doubts, "it begins with the bytes of "+other)
	}
}

func (c *entryCheck) notFinite(file string, n, first int64) {
	c.bad(file, fmt.Sprintf("%s NaN or infinite, the first at element %d", words.Are(n, "element"), first), "", "", exportAgain)
}

// wider refuses, under strict rules, a float entry of a 16-bit tensor of the
// backbone that is stored in a wider type: what is more could hold anything.
func (c *entryCheck) wider(file string, tensor safetensors.Tensor) {
	if c.Rules.Counting != report.CountStrict || c.Base == nil || RoleOf(c.Base, c.name) != manifest.RoleBackbone {
		return
	}
	base, known := safetensors.ParseDType(c.Base.Tensors[c.name].DType)
	if known && base.Bits() == 16 && IsFloating(tensor.DType) && tensor.DType.Bits() > 16 {
		c.bad(file, "a float entry is stored in a wider type than the base's", base.String(), tensor.DType.String(), "store it in the base's type")
	}
}
