package image

import (
	"reflect"
	"strings"

	"slipway/manifest"
)

// Learned is what a log reveals of the machine that it comes from.
type Learned struct {
	Image    Image
	Evidence []Evidence
}

// Evidence is one fact and the words of the log that show it. A fact that no
// field of a description can hold, or that contradicts an earlier one, is only
// noted.
type Evidence struct {
	Fact  string `json:"fact"`
	Quote string `json:"quote"`
	Noted bool   `json:"noted,omitempty"`
}

// Learn reads a server's log or the report of a check, clipped anywhere and with
// its line ends kept or not. Descriptions that a probe printed come first; then
// what tracebacks and messages imply. What a log does not show stays unknown.
func Learn(log string) Learned {
	l := &learner{
		seen: map[string]bool{}, result: Learned{Evidence: []Evidence{}},
		installs: installs.MatchString(log), ownEnvironment: ownEnvironment.MatchString(log), loaded: strings.Contains(log, "Loading weights took"),
	}
	l.result.Image.Schema = Schema
	if whole, err := Decode([]byte(log)); err == nil { // what `image probe --full` prints
		l.add(*whole, "a whole description", "{")
		return l.result
	}
	for _, found := range findLines(log) {
		if l.seen[found.text] {
			continue
		}
		l.seen[found.text] = true
		text := strings.ToValidUTF8(found.text[:min(len(found.text), quoteBytes)], "")
		switch {
		case found.err != nil:
			l.add(Image{}, "a probe's line cannot be read: "+found.err.Error(), text)
		case found.clipped:
			l.add(*found.image, "the beginning of a probe's line, whose end was clipped", text)
		default:
			l.add(*found.image, "a probe's line", text)
		}
	}
	for _, c := range clues {
		for _, at := range c.pattern.FindAllStringSubmatchIndex(log, -1) {
			groups := make([]string, len(at)/2)
			for i := range groups {
				if at[2*i] >= 0 {
					groups[i] = log[at[2*i]:at[2*i+1]]
				}
			}
			if part, fact := c.read(l, groups, log[at[1]:min(len(log), at[1]+quoteBytes)]); fact != "" {
				l.addMatch(part, fact, log, at[0], at[1])
			}
		}
	}
	return l.result
}

type learner struct {
	result Learned
	seen   map[string]bool // facts, and texts of a probe's lines

	installs       bool // pip ran
	ownEnvironment bool // the submission made a Python environment
	loaded         bool // a server loaded its weights
}

// addMatch is add for a part of the log. The same fact counts once.
func (l *learner) addMatch(part Image, fact, log string, from, to int) {
	if !l.seen[fact] {
		l.seen[fact] = true
		l.add(part, fact, quote(log, from, to))
	}
}

// add joins a part of a description to what was learned before.
func (l *learner) add(part Image, fact, quoted string) {
	noted := reflect.DeepEqual(part, Image{})
	merged, disagreements := Merge(&l.result.Image, &part)
	if len(disagreements) > 0 {
		fact += " (" + strings.Join(disagreements, "; ") + ")"
	}
	merged.Description = l.result.Image.Description
	noted = noted || len(disagreements) > 0 && reflect.DeepEqual(merged, l.result.Image)
	l.result.Image = merged
	l.result.Evidence = append(l.result.Evidence, Evidence{Fact: fact, Quote: manifest.Printable(quoted), Noted: noted})
}

// quoteBytes is how much of a log a quote shows.
const quoteBytes = 200

// quote returns a match with some of its line before and after it.
func quote(log string, from, to int) string {
	const around = 30
	before, behind := log[max(0, from-around):from], log[to:min(len(log), to+around)]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	behind, _, _ = strings.Cut(behind, "\n")
	text := before + log[from:to] + behind
	return strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), quoteBytes)], ""))
}
