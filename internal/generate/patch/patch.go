// Package patch writes a set of files as the edits that make it of another set,
// in a text that people can read: a file of a few kilobytes then holds a whole
// submission with one fault. The same sets give the same text.
package patch

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Files are a set of files: by path, their bytes, and by path the targets of
// symbolic links.
type Files struct {
	Content map[string][]byte
	Links   map[string]string
}

// Clone returns a set that may be edited without changing f.
func (f Files) Clone() Files {
	out := Files{map[string][]byte{}, maps.Clone(f.Links)}
	for p, data := range f.Content {
		out.Content[p] = slices.Clone(data)
	}
	if out.Links == nil {
		out.Links = map[string]string{}
	}
	return out
}

// The ways to edit a file. Each is the last word of an edit's line.
const (
	replaceWay = "replace" // a text in the file by another one, apart by a line "=>"
	writeWay   = "write"   // bytes in hexadecimal at an offset, one run a line
	textWay    = "text"    // the whole file, which ends in a newline
	bytesWay   = "bytes"   // the whole file, deflated, in base64
	removeWay  = "remove"
	linkWay    = "link" // a symbolic link to the path in the next line
)

// maxRuns bounds the runs of one write; a file with more is written whole.
const maxRuns = 40

// Diff returns the edits that make want of clean. Paths hold no line break.
func Diff(clean, want Files) string {
	var out strings.Builder
	edit := func(p, way, body string) { fmt.Fprintf(&out, "-- %s: %s --\n%s", p, way, body) }
	paths := slices.Sorted(maps.Keys(want.Content))
	for _, p := range slices.Sorted(maps.Keys(clean.Content)) {
		if _, kept := want.Content[p]; !kept {
			edit(p, removeWay, "")
		}
	}
	for _, p := range paths {
		data, old := want.Content[p], clean.Content[p]
		if _, there := clean.Content[p]; there && bytes.Equal(data, old) {
			continue
		}
		way, body := shortest(old, data)
		edit(p, way, body)
	}
	for _, p := range slices.Sorted(maps.Keys(want.Links)) {
		edit(p, linkWay, want.Links[p]+"\n")
	}
	return out.String()
}

// briefEdit is how long an edit that people can read may be, in bytes, without
// a shorter one being looked for.
const briefEdit = 400

// shortest returns the edit of the fewest bytes, or one that is brief.
func shortest(old, data []byte) (way, body string) {
	choose := func(w, b string, ok bool) {
		if ok && (way == "" || len(b) < len(body)) {
			way, body = w, b
		}
	}
	text := isText(data)
	if len(old) == len(data) && !text {
		runs, ok := changedRuns(old, data)
		choose(writeWay, runs, ok)
	}
	if text && isText(old) {
		replaced, ok := replacement(string(old), string(data))
		choose(replaceWay, replaced, ok)
	}
	choose(textWay, string(data), text && bytes.HasSuffix(data, []byte("\n")))
	if way == "" || len(body) > briefEdit {
		choose(bytesWay, packed(data), true)
	}
	return way, body
}

// isText reports whether data can stand in an edit as it is.
func isText(data []byte) bool {
	return utf8.Valid(data) && !strings.ContainsFunc(string(data), func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) &&
		!strings.HasPrefix(string(data), "-- ") && !strings.Contains(string(data), "\n-- ")
}

// changedRuns lists where equally long files differ.
func changedRuns(old, data []byte) (runs string, ok bool) {
	var out strings.Builder
	count := 0
	for i := 0; i < len(data); {
		if old[i] == data[i] {
			i++
			continue
		}
		end := i + 1
		for gap := 0; end+gap < len(data) && gap < 8; gap++ { // short stretches in between come along
			if old[end+gap] != data[end+gap] {
				end, gap = end+gap+1, -1
			}
		}
		fmt.Fprintf(&out, "%d %s\n", i, hex.EncodeToString(data[i:end]))
		if count++; count > maxRuns {
			return "", false
		}
		i = end
	}
	return out.String(), true
}

// replacement finds the one stretch of lines in which two texts differ. Its old
// form must occur once.
func replacement(old, text string) (body string, ok bool) {
	a, b := strings.SplitAfter(old, "\n"), strings.SplitAfter(text, "\n")
	begin := 0
	for begin < len(a) && begin < len(b) && a[begin] == b[begin] {
		begin++
	}
	end := 0
	for end < len(a)-begin && end < len(b)-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	for ; begin >= 0; begin-- {
		from, to := strings.Join(a[begin:len(a)-end], ""), strings.Join(b[begin:len(b)-end], "")
		if from != "" && strings.Count(old, from) == 1 {
			fits := strings.HasSuffix(from, "\n") && (to == "" || strings.HasSuffix(to, "\n")) && !strings.Contains("\n"+from, "\n=>\n")
			return from + "=>\n" + to, fits
		}
	}
	return "", false
}

func packed(data []byte) string {
	var deflated bytes.Buffer
	w, err := flate.NewWriter(&deflated, flate.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err = cmp.Or(err, w.Close()); err != nil {
		panic(err) // a buffer takes every write
	}
	var out strings.Builder
	for line := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(deflated.Bytes())), 120) {
		out.Write(append(line, '\n'))
	}
	return out.String()
}

// Apply makes the edited set of the clean one, which stays as it is.
func Apply(clean Files, edits string) (Files, error) {
	out := clean.Clone()
	for edits != "" {
		line, rest, _ := strings.Cut(edits, "\n")
		inner, ok := strings.CutPrefix(line, "-- ")
		inner, closed := strings.CutSuffix(inner, " --")
		at := strings.LastIndex(inner, ": ")
		if !ok || !closed || at < 0 {
			return Files{}, fmt.Errorf("%q begins no edit", line)
		}
		body := rest
		if end := strings.Index("\n"+rest, "\n-- "); end >= 0 {
			body = rest[:end]
		}
		edits = rest[len(body):]
		p, way := inner[:at], inner[at+2:]
		if err := out.apply(p, way, body); err != nil {
			return Files{}, fmt.Errorf("%s: %s: %w", p, way, err)
		}
	}
	return out, nil
}

func (f Files) apply(p, way, body string) error {
	old, there := f.Content[p]
	if !there && (way == replaceWay || way == writeWay || way == removeWay) {
		return errors.New("there is no such file")
	}
	switch way {
	case textWay:
		f.Content[p] = []byte(body)
	case removeWay:
		delete(f.Content, p)
	case linkWay:
		f.Links[p] = strings.TrimSuffix(body, "\n")
	case replaceWay:
		from, to, ok := strings.Cut("\n"+body, "\n=>\n")
		from = strings.TrimPrefix(from, "\n") + "\n"
		if !ok || strings.Count(string(old), from) != 1 {
			return errors.New("does not say what is replaced")
		}
		f.Content[p] = []byte(strings.Replace(string(old), from, to, 1))
	case writeWay:
		return write(old, body)
	case bytesWay:
		deflated, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(body, "\n", ""))
		if err != nil {
			return err
		}
		f.Content[p], err = io.ReadAll(flate.NewReader(bytes.NewReader(deflated)))
		return err
	default:
		return errors.New("is no way to edit a file")
	}
	return nil
}

// write overwrites runs of bytes.
func write(data []byte, body string) error {
	for line := range strings.Lines(body) {
		offset, digits, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		at, err := strconv.Atoi(offset)
		if err != nil {
			return err
		}
		run, err := hex.DecodeString(digits)
		if err != nil {
			return err
		}
		if at < 0 || at > len(data)-len(run) {
			return fmt.Errorf("byte %d is not in the file", at)
		}
		copy(data[at:], run)
	}
	return nil
}
