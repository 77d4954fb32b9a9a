package audit

import (
	"fmt"
	"math/big"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
	"slipway/verify/report"
	"slipway/verify/ternary"
)

func ratioText(a, b int64) string {
	if b == 0 {
		return "undefined"
	}
	return big.NewRat(a, b).FloatString(6)
}

// exactText writes a ratio as it is, not reduced, so that its parts are the counts.
func exactText(a, b int64) string { return fmt.Sprintf("%d/%d", a, b) }

// Count counts a submission's tensors. contract may be nil: roles then follow
// from names, and P0 is the manifest's own sum. quantization has its files
// resolved to the keys of stored. found is what looking at the entries' bytes
// gave, by name; of an entry that is not in it, what it says holds.
// rules.Counting is "observed" or "strict" ("" is observed).
func Count(contract *manifest.Contract, quantization manifest.Quantization,
	stored map[manifest.StoredTensor]safetensors.Tensor, rules profiles.Ternary, found map[string]Found,
) report.Counts {
	counter := counter{contract: contract, stored: stored, found: found, strict: rules.Counting == report.CountStrict,
		referenced: map[manifest.StoredTensor]bool{}}
	counter.Counting = report.CountObserved
	if counter.strict {
		counter.Counting = report.CountStrict
	}
	for _, name := range quantization.Names() {
		counter.entry(name, quantization.Tensors[name])
	}
	for key, tensor := range stored {
		if !counter.referenced[key] {
			counter.Unreferenced += counter.weightUnreferenced(tensor)
		}
	}
	counter.BaseSelfDeclared = contract == nil
	if contract != nil {
		for _, tensor := range contract.Tensors {
			if tensor.Role == manifest.RoleBackbone {
				counter.Base += tensor.Elements()
			}
		}
	}
	c := counter.Counts
	c.Fraction, c.FractionExact = ratioText(c.Ternary, c.Counted()), exactText(c.Ternary, c.Counted())
	c.StoredRatio, c.StoredRatioExact = ratioText(c.Stored(), c.Base), exactText(c.Stored(), c.Base)
	if r := rules.FractionAbove; r.Denominator > 0 {
		c.FractionMargin = r.Denominator*c.Ternary - r.Numerator*c.Counted()
		c.FractionMarginElements = report.Elements(c.FractionMargin, r.Denominator)
	}
	if r := rules.StoredAtMost; r.Denominator > 0 {
		c.StoredMargin = r.Numerator*c.Base - r.Denominator*c.Stored()
		c.StoredMarginElements = report.Elements(c.StoredMargin, r.Denominator)
		c.StoredLimit = r.Numerator * c.Base / r.Denominator
	}
	return c
}

// Found is what an entry turned out to be.
type Found struct {
	Failed     bool  // its stored bytes are not what it claims: a ternary entry then counts as float, whole
	Unit       int64 // of a literal entry: how many weights share a magnitude; 0: as many as it says, or a row
	Asymmetric bool  // they share two: one for each sign
}

type counter struct {
	report.Counts
	contract   *manifest.Contract
	stored     map[manifest.StoredTensor]safetensors.Tensor
	referenced map[manifest.StoredTensor]bool
	found      map[string]Found
	strict     bool
}

func (c *counter) entry(name string, e manifest.Quantity) {
	c.Entries++
	for _, r := range References(&e) {
		c.referenced[manifest.StoredTensor{File: *r.File, Tensor: r.Tensor}] = true
	}
	switch e.Kind {
	case manifest.KindPacked2Bit:
		c.Packed++
	case manifest.KindLiteral:
		c.Literal++
	default:
		c.Float++
	}
	elements, ok := ternary.Product(e.Shape)
	if !ok {
		return // an absurd shape is a finding of its own and fits no stored tensor
	}
	if role := RoleOf(c.contract, name); role != manifest.RoleBackbone {
		c.Excluded = append(c.Excluded, report.Excluded{Name: name, Role: role, Kind: e.Kind, Elements: elements})
		return
	}
	if c.contract == nil {
		c.Base += elements
	}
	scales := c.scalesOf(e)
	switch {
	case e.Kind == manifest.KindFloat:
		c.Floats += elements * c.floatWeight(name, e)
	case c.found[name].Failed: // what is no ternary tensor has no scales
		c.Floats += elements*c.floatWeight(name, e) + scales
	case e.Kind == manifest.KindLiteral:
		c.Ternary += elements
		if unit := c.literalUnit(name, e); c.strict && unit > 0 {
			c.Scales += elements / unit
			if c.found[name].Asymmetric {
				c.Scales += elements / unit
			}
		}
	default:
		c.Ternary += elements
		c.Scales += scales
	}
}

// scalesOf counts the stored scales and biases of a packed entry.
func (c *counter) scalesOf(e manifest.Quantity) (n int64) {
	for _, part := range []*manifest.StoredTensor{e.Scales, e.Biases} {
		if part != nil {
			n += c.elements(*part) * c.scaleWeight(c.stored[*part].DType)
		}
	}
	return n
}

// literalUnit is how many weights of a literal entry share a magnitude.
func (c *counter) literalUnit(name string, e manifest.Quantity) int64 {
	if unit := c.found[name].Unit; unit > 0 {
		return unit
	}
	if sizes := LiteralSizes(e); len(sizes) == 1 {
		return sizes[0]
	}
	return rowOf(e)
}

// elements counts those of a stored tensor, none where it is not there.
func (c *counter) elements(key manifest.StoredTensor) int64 {
	if tensor, there := c.stored[key]; there {
		return tensor.Elements()
	}
	return 0
}

// floatWeight is 4 for what is stored in bytes, which hold so many codes, as
// whole numbers -1, 0 and 1 are. Under strict rules it is 2 for F32 and 4 for F64
// where the base has 16 bits: so much more could be stored there.
func (c *counter) floatWeight(name string, e manifest.Quantity) int64 {
	if dtype := c.stored[manifest.StoredTensor{File: e.File, Tensor: e.Tensor}].DType; e.Kind != manifest.KindPacked2Bit &&
		(dtype == safetensors.U8 || dtype == safetensors.I8) {
		return 4
	}
	if !c.strict || e.Kind == manifest.KindPacked2Bit || c.contract == nil {
		return 1
	}
	base, known := safetensors.ParseDType(c.contract.Tensors[name].DType)
	tensor := c.stored[manifest.StoredTensor{File: e.File, Tensor: e.Tensor}]
	if known && base.Bits() == 16 && (tensor.DType == safetensors.F32 || tensor.DType == safetensors.F64) {
		return int64(tensor.DType.Bits() / 16)
	}
	return 1
}

func (c *counter) scaleWeight(dtype safetensors.DType) int64 {
	if c.strict && dtype == safetensors.F32 {
		return 2
	}
	return 1
}

// weightUnreferenced charges a tensor that nothing refers to.
func (c *counter) weightUnreferenced(t safetensors.Tensor) int64 {
	n := t.Elements()
	if !c.strict {
		if t.DType == safetensors.U8 || t.DType == safetensors.I8 {
			return 4 * n
		}
		return n
	}
	switch t.DType {
	case safetensors.BOOL, safetensors.U8, safetensors.I8, safetensors.I16, safetensors.U16,
		safetensors.I32, safetensors.U32, safetensors.I64, safetensors.U64:
		return n * int64(t.DType.Bits()) / 2
	case safetensors.F32:
		return 2 * n
	case safetensors.F64, safetensors.C64:
		return 4 * n
	}
	return n
}
