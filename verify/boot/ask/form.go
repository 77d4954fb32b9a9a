package ask

import (
	"regexp"
	"strings"
	"unicode"
)

// form is the shape of an answer, without its content: "letter", "integer",
// "number", "word" or "other", with an s for several of a kind ("integers" of
// "30 83 95"), several kinds joined by spaces. "" for nothing.
func form(answer string) string {
	var kinds []string
	for field := range strings.FieldsSeq(answer) {
		kind := kindOf(field)
		if n := len(kinds); n > 0 && strings.TrimSuffix(kinds[n-1], "s") == kind {
			kinds[n-1] = kind + "s"
			continue
		}
		kinds = append(kinds, kind)
	}
	return strings.Join(kinds, " ")
}

var number = regexp.MustCompile(`^[+-]?(\d[\d,]*)?(\.\d+)?%?$`)

func kindOf(field string) string {
	digits := strings.TrimLeft(field, "+-")
	switch {
	case digits != "" && strings.Trim(digits, "0123456789") == "":
		return "integer"
	case strings.ContainsAny(field, "0123456789") && number.MatchString(field):
		return "number"
	case strings.ContainsFunc(field, func(r rune) bool { return !unicode.IsLetter(r) }):
		return "other"
	case len([]rune(field)) == 1:
		return "letter"
	}
	return "word"
}

// Parses reports whether an answer has the form of the expected one: where that
// is free text, any answer has.
func Parses(answer, expected string) bool {
	got, want := form(answer), form(expected)
	if strings.Contains(want, "other") || len(strings.Fields(expected)) > maxListed && strings.Contains(want, "word") {
		return got != ""
	}
	// A list of one is still a list.
	return strings.TrimSuffix(got, "s") == strings.TrimSuffix(want, "s")
}

// maxListed is how many words an expected answer has at most before it counts
// as free text.
const maxListed = 3

var option = regexp.MustCompile(`(?m)^\s*\(?([A-Z])[.):]\s`)

// Options returns how many lettered options a question offers; 0 for one that
// is not answered with a letter.
func (q Question) Options() int {
	if form(q.Answer) != "letter" {
		return 0
	}
	if len(q.Choices) > 0 {
		return len(q.Choices)
	}
	seen := map[string]bool{}
	for _, m := range option.FindAllStringSubmatch(q.Question, -1) {
		seen[m[1]] = true
	}
	if !seen[strings.ToUpper(strings.TrimSpace(q.Answer))] {
		return 0
	}
	return len(seen)
}
