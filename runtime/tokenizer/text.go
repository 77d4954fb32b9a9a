package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// validText returns text with U+FFFD in the place of every maximal part that
// is no UTF-8.
func validText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	out.Grow(len(text) + 2*utf8.UTFMax)
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			size = invalidPrefix(text)
		}
		out.WriteRune(r)
		text = text[size:]
	}
	return out.String()
}

// invalidPrefix returns how many bytes of text, which starts with no valid
// character, one U+FFFD stands for: the longest beginning of a character, or a
// single byte that cannot begin one.
func invalidPrefix(text string) int {
	size := 1
	for size < len(text) && !utf8.FullRuneInString(text[:size+1]) {
		size++
	}
	if utf8.FullRuneInString(text[:size]) {
		return 1
	}
	return size
}

// incompleteTail returns how many bytes at the end of text begin a character
// that further bytes may complete.
func incompleteTail(text string) int {
	for size := 1; size < utf8.UTFMax && size <= len(text); size++ {
		tail := text[len(text)-size:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRuneInString(tail) {
				return 0
			}
			return size
		}
	}
	return 0
}
