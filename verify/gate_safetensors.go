package verify

import (
	"errors"
	"fmt"

	"slipway/manifest/safetensors"
)

func decideSafetensors(e *evidence) outcome {
	if len(e.sub.shards) == 0 {
		return outcome{status: NotApplicable, notes: []string{"there is no .safetensors file"}}
	}
	var o outcome
	for _, shard := range e.sub.shards {
		f := e.facts[shard]
		switch {
		case f.err != nil:
			o.note("%s could not be read: see gate digests", shard)
		case f.headerErr != nil:
			finding := Finding{Path: shard, Problem: f.headerErr.Error(), Hint: "write the file again with a safetensors library"}
			var violation *safetensors.Error
			if errors.As(f.headerErr, &violation) {
				finding.Tensor = violation.Tensor
				finding.Problem = fmt.Sprintf("%s (rule %s)", violation.Detail, violation.Rule)
			}
			o.fail(finding)
		default:
			o.secondReader(shard, f)
			for _, twins := range f.header.CaseTwins() {
				o.warn(Finding{Path: shard, Tensor: twins[1], Problem: "differs from another name only in case", Got: twins[0],
					Hint: "a reader that ignores case takes one for the other"})
			}
		}
	}
	return o
}

// secondReader reports what an independent reader says of a header that ours
// accepted.
func (o *outcome) secondReader(shard string, f *fileFacts) {
	count := fmt.Sprintf("%s: %d tensors, header of %d bytes", shard, len(f.header.Tensors), f.header.DataStart)
	switch f.opinion {
	case safetensors.Accepted:
		o.note("%s; a second reader agrees", count)
	case safetensors.Refused:
		o.fail(Finding{Path: shard, Problem: fmt.Sprintf("a second reader refuses the header: %v", f.opinionErr)})
	case safetensors.CannotRead:
		o.note("%s; a second reader does not know one of its types", count)
	case safetensors.TooLarge:
		o.note("%s; too large to ask a second reader", count)
	default:
		o.note("%s; no second reader is available here", count)
	}
}
