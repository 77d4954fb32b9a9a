package verify

import (
	"strings"

	"slipway/manifest"
	"slipway/verify/texts"
	"slipway/verify/words"
)

// decideData looks for benchmarks in the code, in what is said of the data, and
// in the logs. What was really used nobody can read off a submission: a pass
// means that nothing in it says so.
func decideData(e *evidence) outcome {
	var o outcome
	read, python := e.prose(), e.searchPython()
	for _, f := range read {
		if texts.IsPython(f.Path) {
			o.add(python.data[f.Path])
		} else {
			o.add(texts.Data(f))
		}
	}
	o.asFarAsSearched(python)
	o.Note("%s looked through for the names of %d benchmarks; what the data was is for a reviewer to trace", words.Plural(len(read)-len(python.beyond), "text file"), texts.Benchmarks())
	if unread := e.unread(); len(unread) > 0 {
		o.Note("too large to be looked through: %s", manifest.Clip(strings.Join(unread, ", ")))
	}
	return o
}
