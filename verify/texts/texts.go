// Package texts searches single texts of a submission, code, documents and logs,
// for what people wrote that they should not have: credentials, benchmarks among
// the data, tables of answers. A search is a function of a text's path and bytes
// alone; it never shows a credential that it found.
package texts

import (
	"bytes"
	"path"
	"strings"

	"slipway/verify/report"
	"slipway/verify/script/python"
)

// File is a text of the submission that gates read for what people wrote.
type File struct {
	Path string
	Data []byte
}

// IsPython reports whether a file is Python by its name.
func IsPython(p string) bool { return strings.EqualFold(path.Ext(p), ".py") }

// Python is Data and Tables for a file of Python, which it reads once.
func Python(f File) (data, tables Found) {
	m := python.Scan(f.Data)
	data.dataOfPython(f, &m)
	tables.lookupInPython(f, &m)
	return data, tables
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
type Found struct {
	report.Outcome
	Written int64 // bytes of data that code writes out, as numbers or encoded
}
