package page

import (
	"fmt"
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/words"
)

// The evidence of REVIEW.md's lines: numbers and digests of the report, none of
// them a judgement. What only the submission says is called so.

func baseEvidence(r *report.Report) []string {
	var parts []string
	for _, t := range r.Trust {
		if strings.HasPrefix(t.Input, "contract ") {
			parts = append(parts, fmt.Sprintf("held against %s %s", plain(t.Input), literal(t.Digest.String())))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "no contract of a base was given")
	}
	for _, c := range r.SelfDeclared {
		if c.Name == "base_model" || c.Name == "base_revision" {
			parts = append(parts, fmt.Sprintf("self-declared in %s: %s = %s", literal(c.Source), plain(c.Name), literal(c.Value)))
		}
	}
	return parts
}

func componentEvidence(r *report.Report) []string {
	var parts []string
	if c := r.Counts; c != nil {
		parts = append(parts, fmt.Sprintf("%s in the quantization manifest", pluralOf(c.Entries, "entry", "entries")),
			fmt.Sprintf("%s stored elements that no entry refers to", words.Grouped(c.Unreferenced)))
		roles := map[manifest.Role]int{}
		for _, e := range c.Excluded {
			roles[e.Role]++
		}
		for _, role := range []manifest.Role{manifest.RoleVision, manifest.RoleMTP, manifest.RoleHead} {
			if roles[role] > 0 {
				parts = append(parts, fmt.Sprintf("%s of role %s", words.Plural(roles[role], "tensor"), plain(string(role))))
			}
		}
	}
	return append(parts, sizesEvidence(r, report.WeightFiles, "weight file")...)
}

func numericEvidence(r *report.Report) []string {
	c := r.Counts
	if c == nil {
		return []string{"no quantization manifest, so that nothing was counted"}
	}
	parts := []string{fmt.Sprintf("T = %s, s = %s, f = %s, u = %s, P0 = %s (%s rules)", words.Grouped(c.Ternary), words.Grouped(c.Scales), words.Grouped(c.Floats),
		words.Grouped(c.Unreferenced), words.Grouped(c.Base), plain(c.Counting))}
	fraction, stored := "T/(T+s+f) = "+plain(c.Fraction), "(T+s+f+u)/P0 = "+plain(c.StoredRatio)
	if limit := r.Limits.FractionAbove; limit != "" {
		fraction += ", more than " + plain(limit) + ": " + plain(c.FractionText(limit))
	}
	if limit := r.Limits.StoredAtMost; limit != "" {
		stored += ", at most " + plain(limit) + ": " + plain(c.StoredText(limit))
	}
	if c.BaseSelfDeclared {
		stored += " (P0 is self-declared)"
	}
	parts = append(parts, fraction, stored)
	bad, counted := int64(0), 0
	for _, t := range r.Tensors {
		if t.Histogram != nil {
			bad += t.Histogram[3]
			counted++
		}
	}
	if counted > 0 {
		parts = append(parts, fmt.Sprintf("codes that stand for nothing: %s in %s", words.Grouped(bad), words.Plural(counted, "packed tensor")))
	}
	return parts
}

func dataEvidence(r *report.Report) []string {
	return sizesEvidence(r, report.DocumentFiles, "document")
}

func inferenceEvidence(r *report.Report) []string {
	m := r.Measured
	switch {
	case m == nil:
		return []string{"not started, so that no opened file is known"}
	case m.Trace == nil:
		return []string{"started, and nothing could be traced"}
	}
	opened := 0
	for _, a := range m.Trace.Opened {
		if report.KindOf(a.Path) == report.WeightFiles {
			opened++
		}
	}
	shipped := 0
	for _, s := range r.Sizes {
		if s.Kind == report.WeightFiles {
			shipped = s.Files
		}
	}
	return []string{
		fmt.Sprintf("the running server opened %s; the submission ships %d", words.Plural(opened, "weight file"), shipped),
		words.Plural(len(m.Trace.Programs), "program") + " started",
		pluralOf(len(m.Trace.Connected), "address", "addresses") + " beyond loopback tried",
	}
}

func textEvidence(r *report.Report) []string {
	if r.Counts == nil {
		return nil
	}
	elements := map[manifest.Role]int64{}
	for _, e := range r.Counts.Excluded {
		elements[e.Role] += e.Elements
	}
	return []string{fmt.Sprintf("%s vision and %s MTP elements in the quantization manifest", words.Grouped(elements[manifest.RoleVision]), words.Grouped(elements[manifest.RoleMTP]))}
}

func lookupEvidence(r *report.Report) []string {
	var parts []string
	for _, s := range r.Sizes {
		if s.Kind != report.WeightFiles && s.Kind != report.WheelFiles {
			parts = append(parts, fmt.Sprintf("%s %s", plain(string(s.Kind)), bytesText(s.Bytes)))
		}
	}
	return parts
}

func credentialEvidence(r *report.Report) []string {
	if m := r.Measured; m != nil && m.Trace != nil {
		return []string{pluralOf(len(m.Trace.Connected), "address", "addresses") + " beyond loopback tried"}
	}
	return nil
}

func wheelEvidence(r *report.Report) []string {
	if parts := sizesEvidence(r, report.WheelFiles, "wheel"); parts != nil {
		return parts
	}
	return []string{"no wheel is shipped"}
}

// sizesEvidence counts the files of a kind.
func sizesEvidence(r *report.Report, kind report.FileKind, thing string) []string {
	for _, s := range r.Sizes {
		if s.Kind == kind {
			return []string{fmt.Sprintf("%s, %s bytes", words.Plural(s.Files, thing), words.Grouped(s.Bytes))}
		}
	}
	return nil
}

func pluralOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return words.Grouped(int64(n)) + " " + many
}
