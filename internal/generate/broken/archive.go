package broken

import (
	"bytes"
	"fmt"
	"strings"
)

// section is one file of an archive: "-- NAME --" on a line, then its bytes up
// to the next such line. The format is that of Go's txtar.
type section struct {
	name string
	data []byte
}

// readArchive splits an archive into what stands before the first section, and
// the sections.
func readArchive(data []byte) (comment string, sections []section) {
	var before bytes.Buffer
	current := &before
	bodies := []*bytes.Buffer{}
	for line := range bytes.Lines(data) {
		name, ok := sectionName(string(line))
		if !ok {
			current.Write(line)
			continue
		}
		current = &bytes.Buffer{}
		bodies = append(bodies, current)
		sections = append(sections, section{name: name})
	}
	for i, body := range bodies {
		sections[i].data = body.Bytes()
	}
	return before.String(), sections
}

func sectionName(line string) (name string, ok bool) {
	line = strings.TrimRight(line, "\r\n")
	name, ok = strings.CutPrefix(line, "-- ")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, " --")
	return strings.TrimSpace(name), ok
}

// edited applies an edit: blocks of lines, each with "- " before the lines that
// go and "+ " before those that come in their place, and an empty line between
// blocks. The lines that go must stand in the text once, so that a changed base
// is noticed.
func edited(text, edit []byte) ([]byte, error) {
	for block := range strings.SplitSeq(strings.Trim(string(edit), "\n"), "\n\n") {
		var out, in strings.Builder
		for line := range strings.SplitSeq(block, "\n") {
			switch {
			case line == "-" || strings.HasPrefix(line, "- "):
				fmt.Fprintln(&out, strings.TrimPrefix(line[1:], " "))
			case line == "+" || strings.HasPrefix(line, "+ "):
				fmt.Fprintln(&in, strings.TrimPrefix(line[1:], " "))
			default:
				return nil, fmt.Errorf("edit: line %q begins with neither \"- \" nor \"+ \"", line)
			}
		}
		padded := append([]byte("\n"), text...)
		gone := []byte("\n" + out.String())
		if n := bytes.Count(padded, gone); out.Len() == 0 || n != 1 {
			return nil, fmt.Errorf("edit: the lines %q are there %d times, not once", out.String(), n)
		}
		text = bytes.Replace(padded, gone, []byte("\n"+in.String()), 1)[1:]
	}
	return text, nil
}
