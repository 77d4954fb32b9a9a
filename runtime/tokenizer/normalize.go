package tokenizer

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// longMarks is how many combining marks in a row x/text certainly normalises as
// the standard says. It counts the marks of a character's decomposition, two
// or three for one, and puts U+034F after every thirty, which the reference
// does not.
const longMarks = 8

// composed returns text in Unicode normalisation form C (UAX #15).
func composed(text string) string {
	if isASCII(text) {
		return text
	}
	marks := 0
	for _, r := range text {
		if r < 0x300 || !unicode.Is(unicode.M, r) { // U+0300 is the first mark
			marks = 0
		} else if marks++; marks > longMarks {
			return composedUnlimited(text)
		}
	}
	return norm.NFC.String(text)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// decomposedRune is a character that has no decomposition, and its canonical
// combining class.
type decomposedRune struct {
	r     rune
	class uint8
}

// composedUnlimited is composed for any number of marks in a row: the three
// steps of UAX #15 with x/text as the source of the tables.
func composedUnlimited(text string) string {
	var parts []decomposedRune
	for _, r := range text {
		for _, part := range norm.NFD.String(string(r)) {
			parts = append(parts, decomposedRune{part, norm.NFD.PropertiesString(string(part)).CCC()})
		}
	}
	orderMarks(parts)
	out := make([]rune, 0, len(parts))
	starter, previous := -1, -1 // previous: class of the last character after the starter, -1 for none
	for _, part := range parts {
		if starter >= 0 && previous < int(part.class) {
			if r, ok := composite(out[starter], part.r); ok {
				out[starter] = r
				continue
			}
		}
		previous = int(part.class)
		if part.class == 0 {
			starter, previous = len(out), -1
		}
		out = append(out, part.r)
	}
	return string(out)
}

// orderMarks sorts each run of characters of class above zero by class.
func orderMarks(parts []decomposedRune) {
	for start := 0; start < len(parts); {
		end := start
		for end < len(parts) && parts[end].class > 0 {
			end++
		}
		slices.SortStableFunc(parts[start:end], func(a, b decomposedRune) int { return int(a.class) - int(b.class) })
		start = end + 1
	}
}

// composite returns the one character that stands for two.
func composite(first, second rune) (rune, bool) {
	text := norm.NFC.String(string(first) + string(second))
	r, size := utf8.DecodeRuneInString(text)
	return r, size == len(text)
}
