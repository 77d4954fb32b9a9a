package ask

import (
	"regexp"
	"strings"
	"unicode"
)

// Extract returns what a reply gives as its answer, in the form of the expected
// one: the last \boxed{} of it, the reply itself where it has that form, what
// follows the last "answer is" or "answer:", its last line, and in prose its
// last number, or its only option letter. Marks of emphasis, quotes, brackets
// around and punctuation after it are left out. ok is false where nothing has the
// form; what is free text has it always.
func Extract(reply, expected string) (answer string, ok bool) {
	want := form(expected)
	list := candidates(reply, want)
	for _, candidate := range list {
		if bare := plain(candidate, want); form(bare) == want {
			return bare, true
		}
	}
	if want == "word" { // prose has the form of several
		return stripped(reply), false
	}
	for _, candidate := range list {
		if bare := plain(candidate, want); Parses(bare, expected) {
			return bare, true
		}
	}
	return stripped(reply), false
}

var thousands = regexp.MustCompile(`^[+-]?\d{1,3}(,\d{3})+$`)

// plain is a candidate without what is no part of an answer of that form.
func plain(candidate, want string) string {
	bare := stripped(candidate)
	if want == "integer" && thousands.MatchString(bare) {
		return strings.ReplaceAll(bare, ",", "")
	}
	return bare
}

var stated = regexp.MustCompile(`(?i)\b(?:answer|result)\b(?: is|:| =|\*\*:)*[\s:*]*([^\n]+)`)

func candidates(reply, kind string) []string {
	var list []string
	if i := strings.LastIndex(reply, `\boxed{`); i >= 0 {
		list = append(list, braced(reply[i+len(`\boxed{`):]))
	}
	list = append(list, reply)
	if all := stated.FindAllStringSubmatch(reply, -1); all != nil {
		said := all[len(all)-1][1]
		list = append(list, said)
		if end := strings.IndexAny(said, ".;,"); end >= 0 && kind != "number" {
			list = append(list, said[:end])
		}
		if first, _, more := strings.Cut(said, " "); more && (kind == "letter" || kind == "integer" || kind == "number") {
			list = append(list, first)
		}
	}
	lines := strings.Split(strings.TrimSpace(reply), "\n")
	list = append(list, lines[len(lines)-1])
	words := strings.Fields(reply)
	if len(words) < prose {
		return list
	}
	switch kind {
	case "letter":
		if letter := onlyLetter(words); letter != "" {
			list = append(list, letter)
		}
	case "integer", "number":
		for i := len(words) - 1; i >= 0; i-- {
			if bare := stripped(words[i]); strings.HasPrefix(kindOf(bare), "integer") || kindOf(bare) == "number" {
				return append(list, bare)
			}
		}
	}
	return list
}

// prose is how many words a reply has at least that explains its answer.
const prose = 8

// braced is what stands before the brace that closes.
func braced(text string) string {
	depth := 0
	for i, r := range text {
		switch {
		case r == '{':
			depth++
		case r == '}' && depth == 0:
			return text[:i]
		case r == '}':
			depth--
		}
	}
	return text
}

// onlyLetter is the one capital letter that stands alone, in brackets or before a
// full stop, "" where there are several; A and I are words too.
func onlyLetter(words []string) string {
	found := ""
	for _, word := range words {
		bare := stripped(word)
		if len(bare) != 1 || bare[0] < 'A' || bare[0] > 'Z' || word == "A" || word == "I" {
			continue
		}
		if found != "" && found != bare {
			return ""
		}
		found = bare
	}
	return found
}

// stripped leaves out what stands around an answer and is no part of it.
func stripped(text string) string {
	for {
		before := text
		text = strings.TrimSpace(text)
		text = strings.TrimRight(text, ".,;:!?")
		for _, mark := range []string{"**", "*", "`", "$", "\"", "'", "“", "”"} {
			text = strings.TrimSuffix(strings.TrimPrefix(text, mark), mark)
		}
		for _, pair := range []string{"()", "[]", "{}"} {
			if inner, ok := strings.CutPrefix(text, pair[:1]); ok && strings.Count(inner, pair[1:]) == 1 {
				text = strings.TrimSuffix(inner, pair[1:])
			}
		}
		if text == before {
			return text
		}
	}
}

// equal compares answers: letters whatever their case, whole numbers without the
// commas of thousands.
func equal(answer, expected string) bool {
	answer, expected = stripped(answer), stripped(expected)
	switch form(expected) {
	case "letter":
		return strings.EqualFold(answer, expected)
	case "integer":
		return strings.TrimPrefix(strings.ReplaceAll(answer, ",", ""), "+") == strings.TrimPrefix(strings.ReplaceAll(expected, ",", ""), "+")
	}
	return strings.Join(strings.FieldsFunc(answer, unicode.IsSpace), " ") == strings.Join(strings.FieldsFunc(expected, unicode.IsSpace), " ")
}
