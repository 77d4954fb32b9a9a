// Package texts searches single texts of a submission, code, documents and logs,
// for what people wrote that they should not have: credentials, benchmarks among
// the data, tables of answers. A search is a function of a text's path and bytes
// alone; it never shows a credential that it found.
package texts

import (
	"bytes"
	"strings"

	"slipway/verify/report"
)

// File is a text of the submission that gates read for what people wrote.
type File struct {
	Path string
	Data []byte
}

// linesOf calls f with each line of a text and its number, from 1.
func linesOf(data []byte, f func(number int, line string)) {
	number := 0
	for len(data) > 0 {
		line := data
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			line, data = data[:i], data[i+1:]
		} else {
			data = nil
		}
		number++
		f(number, strings.TrimSuffix(string(line), "\r"))
	}
}

// Found is what a search of one text came upon.
type Found struct{ report.Outcome }
