package verify

import (
	"fmt"

	"slipway/verify/report"
	"slipway/verify/words"
)

func decideSize(e *evidence) outcome {
	var o outcome
	sum := int64(0)
	for _, f := range e.tree.Files {
		sum += f.Size
	}
	limit := e.options.Profile.MaxBytes
	if limit == 0 {
		o.Note("the profile has no limit")
		return o
	}
	if sum <= limit {
		o.Note("%s bytes to spare below the limit of %s", words.Grouped(limit-sum), words.Grouped(limit))
	} else {
		o.Fail(report.Finding{Problem: fmt.Sprintf("the files are %s bytes too large together", words.Grouped(sum-limit)),
			Want: fmt.Sprintf("at most %s bytes", words.Grouped(limit)), Got: fmt.Sprintf("%s bytes", words.Grouped(sum)),
			Hint: "leave out what is not needed: a head that the embedding serves as, F32 where 16 bits do"})
	}
	return o
}
