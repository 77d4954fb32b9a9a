package audit

import (
	"cmp"
	"slices"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/scan"
	"slipway/verify/ternary"
)

// tensorReports describes the entries, by name.
func (e *Evidence) tensorReports(found map[string]Found) []report.Tensor {
	var reports []report.Tensor
	for name, entry := range e.Quantization.Tensors {
		tensor := report.Tensor{Name: name, Kind: entry.Kind, Format: entry.FormatID(), Role: string(RoleOf(e.Base, name)), Shape: entry.Shape, Stored: e.storedParts(entry)}
		switch entry.Kind {
		case manifest.KindLiteral:
			e.describeLiteral(&tensor, entry, found[name].Unit)
		case manifest.KindPacked2Bit:
			e.describePacked(&tensor, entry)
		default:
			if key := (manifest.StoredTensor{File: entry.File, Tensor: entry.Tensor}); e.has(key) {
				tensor.NonFinite = e.stats(key).NonFinite
			}
		}
		reports = append(reports, tensor)
	}
	slices.SortFunc(reports, func(a, b report.Tensor) int { return cmp.Compare(a.Name, b.Name) })
	return reports
}

func (e *Evidence) has(key manifest.StoredTensor) bool {
	_, there := e.Stored[key]
	return there
}

// storedParts lists the stored tensors of an entry, with what is known of them.
func (e *Evidence) storedParts(entry manifest.Quantity) []report.StoredPart {
	var parts []report.StoredPart
	for _, r := range References(&entry) {
		part := report.StoredPart{As: string(r.As), File: *r.File, Tensor: r.Tensor}
		key := manifest.StoredTensor{File: *r.File, Tensor: r.Tensor}
		if tensor, there := e.Stored[key]; there {
			part.DType = tensor.DType.String()
			if digest := e.stats(key).Digest; !digest.IsZero() {
				part.Digest = digest.String()
			}
		}
		parts = append(parts, part)
	}
	return parts
}

func (e *Evidence) describeLiteral(r *report.Tensor, entry manifest.Quantity, unit int64) {
	r.Unit, r.SharedBy = unit, literalUnitName(entry, unit)
	key := manifest.StoredTensor{File: entry.File, Tensor: entry.Tensor}
	if _, ok := e.Stored[key]; !ok {
		return
	}
	facts := e.stats(key)
	r.NonFinite = facts.NonFinite
	l := facts.Literal
	if l == nil {
		return
	}
	if unit == 0 {
		r.Unit = l.Tested
	}
	r.Histogram = &[4]int64{l.Minus, l.Zeros, l.Count - l.Zeros - l.Minus, 0}
	if l.Max > 0 {
		r.ScaleMin, r.ScaleMax = number(l.Min), number(l.Max)
	}
}

// literalUnitName says what a unit of so many weights is; "" for none.
func literalUnitName(entry manifest.Quantity, unit int64) string {
	switch sizes := LiteralSizes(entry); {
	case unit == 0:
		return ""
	case entry.ScaleUnit() != "":
		return entry.ScaleUnit()
	case unit == rowOf(entry):
		return manifest.UnitRow
	case unit == sizes[0]:
		return manifest.UnitTensor
	}
	return manifest.UnitGroup
}

func (e *Evidence) describePacked(r *report.Tensor, entry manifest.Quantity) {
	r.SharedBy = entry.ScaleUnit()
	if l, err := ternary.LayoutOf(entry); err == nil {
		r.Unit = l.UnitSize
	}
	if _, ok := e.Stored[*entry.Codes]; ok {
		if codes := e.stats(*entry.Codes).Codes; codes != nil {
			histogram := codes.Histogram
			r.Histogram = &histogram
		}
	}
	if scales, ok := e.Stored[*entry.Scales]; ok {
		r.ScaleDType = scales.DType.String()
		if s := e.stats(*entry.Scales).Scales; s != nil {
			describeScales(r, s)
		}
	}
}

func describeScales(r *report.Tensor, s *scan.Scales) {
	r.ZeroScale, r.Negative, r.NonFinite = s.ZeroUnits.Size(), s.Negative, s.NonFinite
	if s.Min <= s.Max {
		r.ScaleMin, r.ScaleMax = number(s.Min), number(s.Max)
	}
}
