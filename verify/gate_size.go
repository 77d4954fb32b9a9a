package verify

import "fmt"

func decideSize(e *evidence) outcome {
	var o outcome
	sum := int64(0)
	for _, f := range e.tree.Files {
		sum += f.Size
	}
	limit := e.options.Profile.MaxBytes
	if limit == 0 {
		o.note("%d bytes in all; the profile has no limit", sum)
		return o
	}
	o.note("%d bytes in all, limit %d", sum, limit)
	if sum > limit {
		o.fail(Finding{Problem: fmt.Sprintf("the files are %d bytes too large together", sum-limit),
			Want: fmt.Sprintf("at most %d bytes", limit), Got: fmt.Sprintf("%d bytes", sum)})
	}
	return o
}
