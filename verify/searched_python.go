package verify

import (
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/texts"
	"slipway/verify/words"
)

// maxPythonBytes bounds the Python that is searched, all files together. Dense code
// takes half a second of a core a MiB.
const maxPythonBytes = 16 << 20

// searchedPython is what a submission's Python was searched for, by path.
type searchedPython struct {
	data, tables map[string]texts.Found
	beyond       []string // files that did not fit into maxPythonBytes, and were not searched
}

// searchPython searches the Python that was kept, each file once for all gates.
func (e *evidence) searchPython() *searchedPython {
	if e.python != nil {
		return e.python
	}
	searched := &searchedPython{data: map[string]texts.Found{}, tables: map[string]texts.Found{}}
	left := maxPythonBytes
	for _, f := range e.prose() {
		switch {
		case !texts.IsPython(f.Path):
		case len(f.Data) > left:
			searched.beyond = append(searched.beyond, f.Path)
		default:
			left -= len(f.Data)
			searched.data[f.Path], searched.tables[f.Path] = texts.Python(f)
		}
	}
	e.python = searched
	return searched
}

// asFarAsSearched leaves a gate undecided where some Python was not searched.
func (o *outcome) asFarAsSearched(python *searchedPython) {
	if len(python.beyond) == 0 {
		return
	}
	o.Status = report.Undecided
	o.Note("not looked through, since all Python together has more than the %s bytes that are: %s", words.Grouped(maxPythonBytes), manifest.Clip(strings.Join(python.beyond, ", ")))
}
