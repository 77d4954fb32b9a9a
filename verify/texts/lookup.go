package texts

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/script/python"
	"slipway/verify/words"
)

// NoTable is the remedy for a table of answers.
const NoTable = "remove it: what is asked must be answered by the model; public examples have no place in a submission"

// Tables looks for tables of answers in a text, in the form that its extension
// tells. Python is searched by Python.
func Tables(f File) Found {
	var o Found
	switch strings.ToLower(path.Ext(f.Path)) {
	case ".json":
		o.table(f.Path, tablesOfJSON(f.Data))
	case ".jsonl":
		o.table(f.Path, tablesOfLines(f.Data))
	case ".csv", ".tsv":
		o.table(f.Path, tablesOfCSV(f))
	case ".txt", ".md":
		o.table(f.Path, tablesOfText(f.Data))
	}
	return o
}

// table judges the counts of a file.
func (o *Found) table(p string, t tables) {
	records := report.Finding{Path: p, Problem: fmt.Sprintf("holds %s of %s", words.Plural(t.records, "record"), t.keys), Hint: NoTable}
	switch {
	case t.records >= maxRecords:
		o.Fail(records)
	case t.records >= someRecords:
		o.Warn(records)
	}
	if t.pairs >= maxPairs {
		o.Fail(report.Finding{Path: p, Problem: fmt.Sprintf("maps %s to others", words.Plural(t.pairs, "text")), Hint: NoTable})
	}
	if t.numbers >= maxPairs {
		o.Fail(report.Finding{Path: p, Problem: fmt.Sprintf("maps %s to others, as a table of next tokens does", words.Plural(t.numbers, "integer")), Hint: NoTable})
	}
	if t.sequences >= maxSequences && t.records < someRecords {
		o.Fail(report.Finding{Path: p, Problem: fmt.Sprintf("holds %s of integers, as token ids are", words.Plural(t.sequences, "list")), Hint: NoTable})
	}
}

// hashes are calls that make a key of a text.
var hashes = []string{"hashlib.md5", "hashlib.sha1", "hashlib.sha256", "hashlib.sha512", "hashlib.blake2b", "hashlib.blake2s", "xxhash.xxh64", "xxhash.xxh3_64", "mmh3.hash"}

// asked are names, in source, of what a request asks.
var asked = []string{"prompt", "question", "message", "token", "content", "request", "query"}

// lookupInPython looks for data that is written out in code, and for keys that
// are made of what is asked.
func (o *Found) lookupInPython(f File, m *python.Module) {
	if m.Problem != "" { // what cannot be read as code, or is too long for any, may be data
		o.Written += int64(len(f.Data))
	}
	for _, t := range m.Tables {
		o.Written += numberBytes * int64(t.Numbers)
		switch {
		case t.Pairs >= maxPairs:
			o.Fail(report.Finding{Path: f.Path, Problem: fmt.Sprintf("line %d writes out a table of %s", t.Line, words.Plural(t.Pairs, "pair")), Hint: NoTable})
		case t.Numbers >= maxNumbers:
			o.Fail(report.Finding{Path: f.Path, Problem: fmt.Sprintf("line %d writes out %s", t.Line, words.Plural(t.Numbers, "number")), Hint: NoTable})
		}
	}
	for i := range m.Calls {
		c := &m.Calls[i]
		if !slices.Contains(hashes, c.Name) || len(c.Arguments) == 0 {
			continue
		}
		argument := strings.ToLower(c.Arguments[0].Text)
		if slices.ContainsFunc(asked, func(word string) bool { return strings.Contains(argument, word) }) {
			o.Warn(report.Finding{Path: f.Path, Problem: fmt.Sprintf("line %d makes a key of what is asked", c.Line), Got: manifest.Clip(c.Name + "(" + c.Arguments[0].Text + ")"),
				Hint: "a reviewer will ask what is found by it: no stored answer may be"})
			break
		}
	}
	for _, s := range m.Strings {
		o.Written += encodedBytes(s.Text)
		if len(s.Text) >= maxStringBytes {
			o.Warn(report.Finding{Path: f.Path, Problem: fmt.Sprintf("line %d holds a string of %s", s.Line, words.Plural(len(s.Text), "byte")), Hint: "a reviewer will ask what it encodes: ship it as a file of its own"})
		}
	}
}

// numberBytes is what a number that is written out counts as data: an F32's bytes.
const numberBytes = 4

// encodedRun is how many characters without a space are no word, name or path.
const encodedRun = 32

// encodedBytes counts what of a string stands for bytes: runs of hexadecimal
// digits or base64, and all of a string that is not text.
func encodedBytes(s string) (n int64) {
	characters, controls := 0, 0
	for _, r := range s {
		characters++
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			controls++
		}
	}
	if characters >= encodedRun && 20*controls > characters { // of random bytes, a fourth are
		return int64(characters)
	}
	for run := range strings.FieldsSeq(s) {
		if len(run) >= encodedRun && strings.Trim(run, base64Alphabet) == "" {
			n += int64(len(run))
		}
	}
	return n
}

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="

// maxStringBytes is more than a prompt or a page of HTML in code has.
const maxStringBytes = 64 << 10
