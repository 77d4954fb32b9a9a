package audit

import (
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/report"
	"slipway/verify/scan"
	"slipway/verify/words"
)

// entryCheck checks one entry.
type entryCheck struct {
	*Evidence
	report.Outcome
	name       string
	entry      manifest.Quantity
	alike      map[capacityOf]string // what says that an earlier entry is stored alike
	unit       int64                 // of a literal entry, found: weights that share a magnitude
	asymmetric bool                  // of a literal entry, found: such weights share two magnitudes
	doubts     []string              // signs that the content is not a trained ternary tensor
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
	if !c.wider(key.File, tensor) {
		c.halves(key.File, tensor.DType, c.stats(key).Halves)
	}
	c.doubtAlike(AsValues)
}

func (c *entryCheck) notFinite(file string, n, first int64) {
	c.bad(file, fmt.Sprintf("%s NaN or infinite, the first at element %d", words.Are(n, "element"), first), "", "", exportAgain)
}

// narrow reports whether the base stores the entry's tensor in 16 bits.
func (c *entryCheck) narrow() (base safetensors.DType, narrow bool) {
	if c.Base == nil {
		return base, false
	}
	base, known := safetensors.ParseDType(c.Base.Tensors[c.name].DType)
	return base, known && base.Bits() == 16
}

// wider refuses, under strict rules, a float entry of a 16-bit tensor of the
// backbone that is stored in a wider type: what is more could hold anything.
func (c *entryCheck) wider(file string, tensor safetensors.Tensor) bool {
	base, narrow := c.narrow()
	if c.Rules.Counting != report.CountStrict || !narrow || RoleOf(c.Base, c.name) != manifest.RoleBackbone ||
		!IsFloating(tensor.DType) || tensor.DType.Bits() <= 16 {
		return false
	}
	c.bad(file, "a float entry is stored in a wider type than the base's", base.String(), tensor.DType.String(), "store it in the base's type")
	return true
}

// halves refuses, under all rules, float entries in which a second number of 16
// bits stands below each one, and doubles of a 16-bit tensor whose precision
// nothing computes with. Trained weights in single precision remain.
func (c *entryCheck) halves(file string, dtype safetensors.DType, halves *scan.Halves) {
	const inItsType = "store it in the base's type"
	base, narrow := c.narrow()
	switch {
	case halves == nil:
	case halves.TwoInOne():
		c.bad(file, "holds a second number of 16 bits in the lower half of each", "lower halves that look random, or zeros",
			fmt.Sprintf("%s of them have the same 32 exponents", ratioText(halves.Narrow, halves.Counted)), inItsType)
	case narrow && halves.Beyond > 0:
		c.bad(file, fmt.Sprintf("%s not a number of single precision", words.Are(halves.Beyond, "element")), base.String(), dtype.String(), inItsType)
	}
}
