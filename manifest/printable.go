package manifest

import (
	"strconv"
	"strings"
	"unicode"
)

// Printable writes what would steer a terminal (control characters, bidirectional
// overrides, invalid UTF-8) the way Go does in strings. Names of an untrusted
// bundle go through it before a person sees them.
func Printable(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		out.WriteString(quoted[1 : len(quoted)-1])
	}
	return out.String()
}
