package verify

import (
	"cmp"
	"slices"

	"slipway/manifest"
	"slipway/verify/scan"
)

// tensorReports describes the ternary entries, by name.
func (e *evidence) tensorReports() []TensorReport {
	var reports []TensorReport
	for name, entry := range e.sub.quantization.Tensors {
		if entry.Kind == manifest.KindFloat {
			continue
		}
		report := TensorReport{Name: name, Kind: entry.Kind, Format: entry.FormatID(), Shape: entry.Shape, Stored: e.storedParts(entry)}
		if entry.Kind == manifest.KindLiteral {
			report.describeLiteral(e, entry, e.audit.found[name].Unit)
		} else {
			report.describePacked(e, entry)
		}
		reports = append(reports, report)
	}
	slices.SortFunc(reports, func(a, b TensorReport) int { return cmp.Compare(a.Name, b.Name) })
	return reports
}

// storedParts lists the stored tensors of an entry, with what is known of them.
func (e *evidence) storedParts(entry manifest.Quantity) []StoredPart {
	var parts []StoredPart
	for _, r := range references(&entry) {
		part := StoredPart{As: string(r.as), File: *r.file, Tensor: r.tensor}
		key := manifest.StoredTensor{File: *r.file, Tensor: r.tensor}
		if tensor, there := e.stored[key]; there {
			part.DType = tensor.DType.String()
			if digest := e.stats(key).Digest; !digest.IsZero() {
				part.Digest = digest.String()
			}
		}
		parts = append(parts, part)
	}
	return parts
}

func (r *TensorReport) describeLiteral(e *evidence, entry manifest.Quantity, unit int64) {
	r.Unit, r.SharedBy = unit, literalUnitName(entry, unit)
	key := manifest.StoredTensor{File: entry.File, Tensor: entry.Tensor}
	if _, ok := e.stored[key]; !ok {
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
	switch sizes := literalSizes(entry); {
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

func (r *TensorReport) describePacked(e *evidence, entry manifest.Quantity) {
	r.SharedBy = entry.ScaleUnit()
	if l, err := layoutOf(entry); err == nil {
		r.Unit = l.UnitSize
	}
	if _, ok := e.stored[*entry.Codes]; ok {
		if codes := e.stats(*entry.Codes).Codes; codes != nil {
			histogram := codes.Histogram
			r.Histogram = &histogram
		}
	}
	if scales, ok := e.stored[*entry.Scales]; ok {
		r.ScaleDType = scales.DType.String()
		if s := e.stats(*entry.Scales).Scales; s != nil {
			r.describeScales(s)
		}
	}
}

func (r *TensorReport) describeScales(s *scan.Scales) {
	r.ZeroScale, r.Negative, r.NonFinite = s.ZeroUnits.Size(), s.Negative, s.NonFinite
	if s.Min <= s.Max {
		r.ScaleMin, r.ScaleMax = number(s.Min), number(s.Max)
	}
}
