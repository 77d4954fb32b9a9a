package image

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"

	"slipway/manifest"
)

// A description travels in a log on one line between two marks, so that it can
// be found again among what a server prints and after line ends became spaces.
const (
	lineBegin = "slipway-image-begin"
	lineEnd   = "slipway-image-end"
)

// LineLimit is the length in bytes of a line that a grader's report keeps: the
// report of a failed start shows about 1,800 characters of the log's end.
const LineLimit = 1500

// Line returns the description on one line of at most limit bytes. Where not
// all fits, the free text goes first; of the distributions and the absent ones
// those of [Serving] stay longest.
func (i *Image) Line(limit int) (string, error) {
	short := *i
	short.Schema, short.Description = Schema, ""
	if line, err := short.mark(); err != nil || len(line) <= limit {
		return line, err
	}
	installed, absent := i.Distributions, i.Absent
	short.Complete, short.Distributions, short.Absent = false, map[string]string{}, nil
	line, err := short.mark()
	if err != nil {
		return "", err
	}
	if len(line) > limit {
		return "", fmt.Errorf("describe this machine in %d bytes: %d are needed without any distribution", limit, len(line))
	}
	left := limit - len(line) - len(`,"distributions":{},"absent":[]`)
	others := slices.Sorted(maps.Keys(installed))
	for _, name := range slices.Concat(Serving(), others, absent) {
		version, isInstalled := installed[name]
		cost := len(fmt.Sprintf(`"%s":"%s",`, name, version))
		switch _, done := short.Distributions[name]; {
		case done || slices.Contains(short.Absent, name) || cost > left || !isInstalled && !slices.Contains(absent, name):
			continue
		case isInstalled:
			short.Distributions[name] = version
		default:
			short.Absent = append(short.Absent, name)
		}
		left -= cost
	}
	return short.mark()
}

func (i *Image) mark() (string, error) {
	data, err := manifest.EncodeCanonical(i)
	if err != nil {
		return "", err
	}
	return lineBegin + string(data) + lineEnd, nil
}

// HasLine reports whether a line of a log holds a description, or its beginning.
func HasLine(line string) bool { return strings.Contains(line, lineBegin) }

// marked is a description that was found in a log.
type marked struct {
	image   *Image
	text    string
	clipped bool // its end is not in the log: what was there before is
	err     error
}

// findLines returns the descriptions that a log holds between marks.
func findLines(log string) []marked {
	var found []marked
	for {
		_, rest, ok := strings.Cut(log, lineBegin)
		if !ok {
			return found
		}
		text, after, whole := strings.Cut(rest, lineEnd)
		if whole {
			log = after
		} else {
			log = ""
		}
		text = unquoted(text)
		m := marked{text: text, clipped: !whole}
		if m.clipped {
			text = wholeMembers(text)
		}
		m.image, m.err = Decode([]byte(text))
		found = append(found, m)
	}
}

// unquoted undoes how a report quotes a log: in JSON, HTML or Markdown.
func unquoted(text string) string {
	switch {
	case strings.HasPrefix(text, `{\"`):
		return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text)
	case strings.HasPrefix(text, "{&#34;") || strings.HasPrefix(text, "{&quot;"):
		return html.UnescapeString(text)
	case strings.Contains(text, `\[`) || strings.Contains(text, `\_`): // which JSON escapes nowhere
		return markdownEscape.ReplaceAllString(text, "$1")
	}
	return text
}

// markdownEscape is a character that Markdown would read as its own.
var markdownEscape = regexp.MustCompile("\\\\([\\\\`*_\\[\\]<>|#&~!])")

// wholeMembers cuts a JSON object that lost its end after the last member that
// is certainly whole.
func wholeMembers(text string) string {
	decoder := json.NewDecoder(strings.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return "{}"
	}
	end := int64(1)
	for {
		var value json.RawMessage
		if _, err := decoder.Token(); err != nil {
			break
		}
		if err := decoder.Decode(&value); err != nil {
			break
		}
		after := decoder.InputOffset()
		if after >= int64(len(text)) || text[after] != ',' && text[after] != '}' {
			break // a number may go on
		}
		end = after
	}
	return text[:end] + "}"
}
