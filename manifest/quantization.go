package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// QuantizationPath is where the quantization manifest stands in a bundle.
const QuantizationPath = "quantization_manifest.json"

// The kinds of a quantization manifest's entries.
const (
	KindPacked2Bit = "packed_2bit" // ternary codes with scales
	KindLiteral    = "literal"     // floating-point values that are exactly ternary
	KindFloat      = "float"       // full precision
)

// The formats of packed entries. An entry without a format has FormatPacked2Bit.
const (
	FormatPacked2Bit        = "packed_2bit"             // U8, four codes a byte along the inputs
	FormatMLXAffine         = "mlx_affine_2bit"         // U32, sixteen codes a word; scales and biases
	FormatMLXRowAlpha       = "mlx_row_alpha_2bit"      // U32, sixteen codes a word; one BF16 scale a row
	FormatBitNetU8          = "bitnet_u8"               // U8, a byte holds one row of each quarter; one scale
	FormatCompressedTensors = "compressed_tensors_2bit" // I32, sixteen codes a word, rows padded; value (code-2)*scale
)

// PackedFormat is what the grammar of an entry needs to know of its format. How
// its bytes are read is for verify/ternary to say, which knows the same formats.
type PackedFormat struct {
	ID     string
	Unit   string // what shares a scale; "" where the entry says
	Biases bool   // whether entries give biases
}

var packedFormats = []PackedFormat{
	{ID: FormatPacked2Bit},
	{ID: FormatMLXAffine, Unit: UnitGroup, Biases: true},
	{ID: FormatMLXRowAlpha, Unit: UnitRow},
	{ID: FormatBitNetU8, Unit: UnitTensor},
	{ID: FormatCompressedTensors},
}

// RegisterPackedFormat makes a format known for tests that prove that a format is
// one line here and a decoder: nothing but a test calls it, once, when it starts.
func RegisterPackedFormat(f PackedFormat) { packedFormats = append(packedFormats, f) }

// PackedFormatIDs lists the formats of packed entries, in the order in which they
// are documented.
func PackedFormatIDs() (ids []string) {
	for _, f := range packedFormats {
		ids = append(ids, f.ID)
	}
	return ids
}

// packedFormat returns what is known of the entry's format.
func (e Quantity) packedFormat() (PackedFormat, bool) {
	i := slices.IndexFunc(packedFormats, func(f PackedFormat) bool { return f.ID == e.FormatID() })
	if i < 0 {
		return PackedFormat{}, false
	}
	return packedFormats[i], true
}

// What shares a scale: the whole tensor, each row, or a group of a row's inputs.
const (
	UnitTensor = "tensor"
	UnitRow    = "row"
	UnitGroup  = "group"
)

// Quantization is quantization_manifest.json: for each logical tensor of the
// model, how and where it is stored.
type Quantization struct {
	BaseModel    *string             `json:"base_model"`
	BaseRevision *string             `json:"base_revision"`
	Format       string              `json:"format,omitempty"`
	Tensors      map[string]Quantity `json:"tensors"`
}

// Quantity is one entry: a logical tensor of a kind and a shape (out, in, ...)
// and the stored tensors that hold it. File and Tensor locate a float or
// literal tensor; Codes and Scales, and for some formats Biases, locate a
// packed one.
//
// Unit says what shares a scale; without it, groups of GroupSize inputs do
// where there is a GroupSize, and else what the format fixes. ScaleDType is
// the scales' type, F16, BF16 or F32, for whoever plans by the manifest alone:
// it must be that of the stored tensor. Axis is the index of the dimension
// along which codes are packed, by default the one that the format packs.
type Quantity struct {
	Axis       *int64        `json:"axis,omitempty"`
	Biases     *StoredTensor `json:"biases,omitempty"`
	Codes      *StoredTensor `json:"codes,omitempty"`
	File       string        `json:"file,omitempty"`
	Format     string        `json:"format,omitempty"`
	GroupSize  int64         `json:"group_size,omitempty"`
	Kind       string        `json:"kind"`
	ScaleDType string        `json:"scale_dtype,omitempty"`
	Scales     *StoredTensor `json:"scales,omitempty"`
	Shape      []int64       `json:"shape"`
	Tensor     string        `json:"tensor,omitempty"`
	Unit       string        `json:"unit,omitempty"`
}

// StoredTensor names a tensor of a safetensors file.
type StoredTensor struct {
	File   string `json:"file"`
	Tensor string `json:"tensor"`
}

// Names returns the logical tensors' names in byte order.
func (q Quantization) Names() []string { return slices.Sorted(maps.Keys(q.Tensors)) }

// Encode writes the canonical bytes.
func (q Quantization) Encode() ([]byte, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	return EncodeLines(q)
}

// DecodeQuantization reads a quantization manifest, strictly. One with too many
// entries is refused before it is decoded.
func DecodeQuantization(data []byte) (Quantization, error) {
	if err := checkMembers(data, MaxQuantities); err != nil {
		return Quantization{}, err
	}
	var q Quantization
	if err := DecodeStrict(data, &q); err != nil {
		return Quantization{}, err
	}
	return q, q.check()
}

// MaxQuantities is how many entries a quantization manifest may have: ten times
// what published models have.
const MaxQuantities = 200_000

func (q Quantization) check() error {
	if len(q.Tensors) == 0 {
		return fmt.Errorf("tensors is empty")
	}
	if len(q.Tensors) > MaxQuantities {
		return fmt.Errorf("tensors has %d entries, more than %d", len(q.Tensors), MaxQuantities)
	}
	for _, name := range q.Names() {
		if err := q.Tensors[name].check(); err != nil {
			return fmt.Errorf("tensor %q: %w", Clip(name), err)
		}
	}
	return nil
}

func (e Quantity) check() error {
	for _, dimension := range e.Shape {
		if dimension < 0 {
			return fmt.Errorf("shape %v has a negative dimension", e.Shape)
		}
	}
	if e.Axis != nil && (*e.Axis < 0 || *e.Axis >= int64(len(e.Shape))) {
		return fmt.Errorf("axis %d is not a dimension of shape %v", *e.Axis, e.Shape)
	}
	switch e.Kind {
	case KindPacked2Bit:
		return e.checkPacked()
	case KindFloat, KindLiteral:
		return e.checkPlain()
	}
	return fmt.Errorf("kind %q is not %s, %s or %s", Clip(e.Kind), KindPacked2Bit, KindLiteral, KindFloat)
}

func (e Quantity) checkPacked() error {
	format, known := e.packedFormat()
	switch {
	case e.Codes == nil || e.Scales == nil:
		return fmt.Errorf("kind %s needs codes and scales", e.Kind)
	case e.File != "" || e.Tensor != "":
		return fmt.Errorf("kind %s takes codes and scales, not file and tensor", e.Kind)
	case len(e.Shape) == 0:
		return fmt.Errorf("kind %s needs a shape", e.Kind)
	case !known:
		return fmt.Errorf("format %q is not one of %s", Clip(e.Format), strings.Join(PackedFormatIDs(), ", "))
	case e.Biases != nil && !format.Biases:
		return fmt.Errorf("format %s takes no biases", format.ID)
	case e.Biases == nil && format.Biases:
		return fmt.Errorf("format %s needs biases", format.ID)
	case !slices.Contains([]string{"", "F16", "BF16", "F32"}, e.ScaleDType):
		return fmt.Errorf("scale_dtype %q is not F16, BF16 or F32", Clip(e.ScaleDType))
	}
	if err := e.checkUnit(); err != nil {
		return err
	}
	for i, stored := range e.Stored() {
		if err := stored.check(); err != nil {
			return fmt.Errorf("%s: %w", []string{"codes", "scales", "biases"}[i], err)
		}
	}
	return nil
}

func (e Quantity) checkPlain() error {
	switch {
	case e.Codes != nil || e.Scales != nil || e.Biases != nil:
		return fmt.Errorf("kind %s takes file and tensor, not codes and scales", e.Kind)
	case e.Format != "" || e.ScaleDType != "" || e.Axis != nil:
		return fmt.Errorf("kind %s takes no format, scale_dtype or axis", e.Kind)
	case e.Kind == KindFloat && e.GroupSize != 0:
		return fmt.Errorf("kind %s takes no group_size", e.Kind)
	case e.Kind == KindFloat && e.Unit != "":
		return fmt.Errorf("kind %s takes no unit", e.Kind)
	}
	if e.Unit != "" {
		if err := e.checkUnit(); err != nil {
			return err
		}
	}
	return StoredTensor{e.File, e.Tensor}.check()
}

// checkUnit holds unit, group_size and format against each other.
func (e Quantity) checkUnit() error {
	format, _ := e.packedFormat()
	switch unit := e.ScaleUnit(); {
	case !slices.Contains([]string{UnitTensor, UnitRow, UnitGroup}, unit):
		return fmt.Errorf("unit %q is not %s, %s or %s", Clip(unit), UnitTensor, UnitRow, UnitGroup)
	case format.Unit != "" && unit != format.Unit:
		return fmt.Errorf("unit %s does not go with format %s, which has a scale for each %s", unit, format.ID, format.Unit)
	case unit == UnitGroup && e.GroupSize <= 0:
		return fmt.Errorf("group_size %d is not positive", e.GroupSize)
	case unit != UnitGroup && e.GroupSize != 0:
		return fmt.Errorf("unit %s takes no group_size", unit)
	}
	return nil
}

func (s StoredTensor) check() error {
	if s.Tensor == "" {
		return fmt.Errorf("tensor is empty")
	}
	return CheckPath(s.File)
}

// ScaleUnit returns what shares a scale: the entry's unit, or what holds where
// it gives none. A literal entry's is "" where its weights have to tell.
func (e Quantity) ScaleUnit() string {
	switch {
	case e.Unit != "":
		return e.Unit
	case e.Kind == KindFloat:
		return ""
	case e.GroupSize > 0:
		return UnitGroup
	case e.Kind == KindLiteral:
		return ""
	}
	if format, _ := e.packedFormat(); format.Unit != "" {
		return format.Unit
	}
	return UnitGroup
}

// FormatID returns the format of a packed entry, "" for the other kinds.
func (e Quantity) FormatID() string {
	if e.Kind == KindPacked2Bit && e.Format == "" {
		return FormatPacked2Bit
	}
	return e.Format
}

// Stored lists the stored tensors that an entry refers to.
func (e Quantity) Stored() []StoredTensor {
	if e.Kind != KindPacked2Bit {
		return []StoredTensor{{e.File, e.Tensor}}
	}
	stored := []StoredTensor{*e.Codes, *e.Scales}
	if e.Biases != nil {
		stored = append(stored, *e.Biases)
	}
	return stored
}
