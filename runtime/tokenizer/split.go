package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// The Split patterns of the Qwen families, as tokenizer.json writes them. They
// differ in whether combining marks belong to letters or to symbols.
const (
	patternLetters = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternMarks   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// class is what the patterns tell apart.
type class uint8

const (
	symbol class = iota
	letter
	number
	space   // \s without newline
	newline // \r and \n
	nothing // the end of the text
)

// splitter finds the words of a pattern. Go's regexp has no lookahead, so the
// alternatives are written out, in the pattern's order.
type splitter struct {
	marks bool            // \p{M} counts as a letter
	table *[1 << 16]class // of the basic multilingual plane
}

func newSplitter(marks bool) splitter {
	s := splitter{marks: marks, table: new([1 << 16]class)}
	s.fill(letter, unicode.L)
	if marks {
		s.fill(letter, unicode.M)
	}
	s.fill(number, unicode.N)
	s.fill(space, unicode.White_Space)
	s.table['\r'], s.table['\n'] = newline, newline
	return s
}

func (s splitter) fill(c class, ranges *unicode.RangeTable) {
	for _, r := range ranges.R16 {
		for i := int(r.Lo); i <= int(r.Hi); i += int(r.Stride) {
			s.table[i] = c
		}
	}
}

// at returns the class and the width of the character of text at i.
func (s splitter) at(text string, i int) (class, int) {
	if i >= len(text) {
		return nothing, 0
	}
	if text[i] < utf8.RuneSelf {
		return s.table[text[i]], 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	switch {
	case int(r) < len(s.table):
		return s.table[r], size
	case unicode.Is(unicode.L, r), s.marks && unicode.Is(unicode.M, r):
		return letter, size
	case unicode.Is(unicode.N, r):
		return number, size
	}
	return symbol, size // no white space beyond the basic plane
}

// run returns the end of the characters of class c that start at i.
func (s splitter) run(text string, i int, c class) int {
	for {
		found, size := s.at(text, i)
		if found != c {
			return i
		}
		i += size
	}
}

// next returns the end of the word that starts at start < len(text).
func (s splitter) next(text string, start int) int {
	if end := contraction(text, start); end > 0 {
		return end
	}
	first, size := s.at(text, start)
	second := start + size
	switch first {
	case letter:
		return s.run(text, second, letter)
	case number:
		return second
	case symbol, space:
		if after, _ := s.at(text, second); after == letter {
			return s.run(text, second, letter)
		}
	}
	body := start
	if text[start] == ' ' {
		body = second
	}
	if end := s.run(text, body, symbol); end > body {
		return s.run(text, end, newline)
	}
	return s.blank(text, start)
}

// blank returns the end of the word at start, where white space stands: up to
// the last line break of the run if it has one; else all of it at the end of
// the text; else all but its last character, which the next word may want.
func (s splitter) blank(text string, start int) int {
	end, last, lineEnd := start, start, 0
	for {
		found, size := s.at(text, end)
		if found != space && found != newline {
			break
		}
		last = end
		end += size
		if found == newline {
			lineEnd = end
		}
	}
	switch {
	case lineEnd > 0:
		return lineEnd
	case end == len(text) || last == start:
		return end
	}
	return last
}

// contraction returns the end of one of 's 't 're 've 'm 'll 'd at start, in
// any case, or 0.
func contraction(text string, start int) int {
	if text[start] != '\'' || start+1 >= len(text) {
		return 0
	}
	first, size := utf8.DecodeRuneInString(text[start+1:])
	end := start + 1 + size
	switch folded(first) {
	case 's', 't', 'm', 'd':
		return end
	}
	if end == len(text) {
		return 0
	}
	switch string([]byte{byte(folded(first)), byte(folded(rune(text[end])))}) {
	case "re", "ve", "ll":
		return end + 1
	}
	return 0
}

// folded returns the simple case folding of r as far as a contraction's letters
// go: U+017F, the long s, folds to s.
func folded(r rune) rune {
	switch {
	case r == 'ſ':
		return 's'
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	case r >= utf8.RuneSelf:
		return 0
	}
	return r
}
