package verify

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

func decideSafetensors(e *evidence) outcome {
	if len(e.sub.shards) == 0 {
		return outcome{report.Outcome{Status: report.NotApplicable, Notes: []string{"there is no .safetensors file"}}}
	}
	var o outcome
	for _, shard := range e.sub.shards {
		f := e.facts[shard]
		switch {
		case f.Err != nil:
			o.Note("%s could not be read: see gate digests", shard)
		case f.HeaderErr != nil:
			o.Fail(brokenShard(shard, f))
		default:
			o.secondReader(shard, f)
			for _, twins := range f.Header.Twins(manifest.FoldPath) {
				o.Warn(report.Finding{Path: shard, Tensor: twins[1], Problem: "differs from another name only in case or Unicode form", Got: twins[0],
					Hint: "rename one: a reader that ignores that takes one for the other"})
			}
		}
	}
	return o
}

// brokenShard says what is wrong with a shard: it is another thing altogether,
// a part of a shard, or one that was written wrongly.
func brokenShard(shard string, f *scan.File) report.Finding {
	if what, hint := mistaken(f.Head, f.Size); what != "" {
		return report.Finding{Path: shard, Problem: "is " + what, Hint: hint}
	}
	finding := report.Finding{Path: shard, Tensor: f.HeaderErr.Tensor, Problem: fmt.Sprintf("%s (rule %s)", f.HeaderErr.Detail, f.HeaderErr.Rule), Hint: writeAgain}
	if cutShort(f.HeaderErr) {
		finding.Hint = getAgain
	}
	return finding
}

// secondReader reports what an independent reader says of a header that ours
// accepted.
func (o *outcome) secondReader(shard string, f *scan.File) {
	const reader = "the second reader, nlpodyssey/safetensors,"
	count := fmt.Sprintf("%s: %s, header of %s bytes", shard, words.Plural(len(f.Header.Tensors), "tensor"), words.Grouped(f.Header.DataStart))
	switch f.Opinion {
	case safetensors.Accepted:
		o.Note("%s; %s agrees", count, reader)
	case safetensors.Refused:
		o.Fail(report.Finding{Path: shard, Problem: fmt.Sprintf("%s refuses the header: %v", reader, f.OpinionErr), Hint: writeAgain})
	case safetensors.CannotRead:
		var types []string
		for _, t := range f.Unknown {
			types = append(types, t.String())
		}
		slices.Sort(types)
		o.Note("%s; %s does not know %s, which the format has since come to allow: no fault of the file", count, reader, strings.Join(types, ", "))
	case safetensors.TooLarge:
		o.Note("%s; too large to ask %s", count, strings.TrimSuffix(reader, ","))
	default:
		o.Note("%s; no second reader is available here", count)
	}
}
