package python

import (
	"fmt"
	"strings"
)

// kind is a token's class.
type kind uint8

const (
	nameToken kind = iota // keywords too
	numberToken
	stringToken // with prefix and quotes; of an f-string, all of it
	operatorToken
)

// token is a piece of the source, as offsets: 16 bytes, whatever its length.
type token struct {
	start, end, line int32
	kind             kind
}

// logicalLine is a line as Python's grammar sees it: brackets and backslashes
// join physical lines, comments and blank lines are none.
type logicalLine struct {
	column int // of its first token; tabs reach to multiples of 8
	tokens []token
}

// tokenizer reads logical lines one after the other. At the first thing that is
// no Python it sets problem and ends.
type tokenizer struct {
	src      string
	pos      int
	line     int
	brackets []byte
	opened   []int // line of each open bracket
	buffer   []token
	problem  string
}

func (t *tokenizer) fail(line int, format string, args ...any) {
	if t.problem == "" {
		t.problem = fmt.Sprintf("line %d: ", line) + fmt.Sprintf(format, args...)
	}
	t.pos = len(t.src)
}

// next reads a logical line; ok is false at the end. The line's tokens are
// overwritten by the next call.
func (t *tokenizer) next() (l logicalLine, ok bool) {
	t.buffer = t.buffer[:0]
	for t.pos < len(t.src) {
		if len(t.buffer) == 0 {
			l.column = t.indentation()
		}
		if t.logicalLineEnds() && len(t.buffer) > 0 {
			break
		}
	}
	if n := len(t.brackets); n > 0 && t.pos >= len(t.src) {
		t.fail(t.opened[n-1], "%q is never closed", t.brackets[n-1])
		t.brackets = t.brackets[:0]
	}
	l.tokens = t.buffer
	return l, len(t.buffer) > 0
}

// indentation skips white space at the start of a physical line and returns its width.
func (t *tokenizer) indentation() int {
	column := 0
	for ; t.pos < len(t.src); t.pos++ {
		switch t.src[t.pos] {
		case ' ':
			column++
		case '\t':
			column = (column/8 + 1) * 8
		case '\f':
			column = 0
		default:
			return column
		}
	}
	return column
}

// logicalLineEnds reads tokens up to the end of a physical line and reports
// whether a logical line ends there.
func (t *tokenizer) logicalLineEnds() bool {
	for t.pos < len(t.src) {
		switch c := t.src[t.pos]; {
		case c == '\n' || c == '\r':
			t.newline()
			return len(t.brackets) == 0
		case c == ' ' || c == '\t' || c == '\f':
			t.pos++
		case c == '#':
			t.pos = lineEnd(t.src, t.pos)
		case c == '\\':
			if t.pos++; t.pos < len(t.src) && t.src[t.pos] != '\n' && t.src[t.pos] != '\r' {
				t.fail(t.line, "a backslash is followed by more than the end of the line")
				return true
			}
			t.newline()
		default:
			t.token()
		}
	}
	return true
}

// newline steps over \n, \r or \r\n.
func (t *tokenizer) newline() {
	if t.pos < len(t.src) {
		t.pos += newlineLength(t.src, t.pos)
		t.line++
	}
}

func newlineLength(src string, at int) int {
	if strings.HasPrefix(src[at:], "\r\n") {
		return 2
	}
	return 1
}

// lineEnd returns where the physical line of an offset ends.
func lineEnd(src string, at int) int {
	if i := strings.IndexAny(src[at:], "\r\n"); i >= 0 {
		return at + i
	}
	return len(src)
}

// Python's tokens of three and two characters, as far as they could be taken
// for others.
var operators = []string{
	"...", "**=", "//=", ">>=", "<<=",
	"**", "//", "==", "!=", "<=", ">=", "->", ":=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=", "<<", ">>",
}

// token reads one token.
func (t *tokenizer) token() {
	start, line := t.pos, t.line
	c := t.src[start]
	kind := operatorToken
	switch {
	case c == '"' || c == '\'':
		kind = stringToken
		t.string(start)
	case startsName(c):
		kind = nameToken
		t.pos = nameEnd(t.src, start)
		if t.pos < len(t.src) && (t.src[t.pos] == '"' || t.src[t.pos] == '\'') && isPrefix(t.src[start:t.pos]) {
			kind = stringToken
			t.string(start)
		}
	case isDigit(c), c == '.' && start+1 < len(t.src) && isDigit(t.src[start+1]):
		kind = numberToken
		t.pos = numberEnd(t.src, start)
	default:
		t.operator(c)
	}
	if t.problem == "" {
		t.buffer = append(t.buffer, token{int32(start), int32(t.pos), int32(line), kind})
	}
}

// string steps over the string literal that begins, with its prefix, at start;
// t.pos is at the quote.
func (t *tokenizer) string(start int) {
	end, problem := stringEnd(t.src, start, t.pos, 0)
	if problem != "" {
		t.fail(t.line, "%s", problem)
		return
	}
	t.line += countLines(t.src[t.pos:end])
	t.pos = end
}

// countLines counts \n, \r and \r\n.
func countLines(text string) int {
	return strings.Count(text, "\n") + strings.Count(text, "\r") - strings.Count(text, "\r\n")
}

func (t *tokenizer) operator(c byte) {
	switch c {
	case '(', '[', '{':
		t.brackets = append(t.brackets, c)
		t.opened = append(t.opened, t.line)
	case ')', ']', '}':
		n := len(t.brackets) - 1
		if n < 0 || !strings.Contains("()[]{}", string([]byte{t.brackets[n], c})) {
			t.fail(t.line, "%q closes nothing that is open", c)
			return
		}
		t.brackets, t.opened = t.brackets[:n], t.opened[:n]
	}
	for _, o := range operators {
		if strings.HasPrefix(t.src[t.pos:], o) {
			t.pos += len(o)
			return
		}
	}
	if !strings.ContainsRune("()[]{}+-*/%@&|^~<>=,:;.", rune(c)) {
		t.fail(t.line, "%q does not belong there", c)
		return
	}
	t.pos++
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// startsName takes every byte beyond ASCII for a letter's.
func startsName(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

func nameEnd(src string, at int) int {
	for at < len(src) && (startsName(src[at]) || isDigit(src[at])) {
		at++
	}
	return at
}

// numberEnd steps over 0x1f, 1_000, 1.5e-3 and 2j. It may take a keyword that
// follows without a space ("1if") along, which Python deprecates.
func numberEnd(src string, at int) int {
	hexadecimal := strings.HasPrefix(src[at:], "0x") || strings.HasPrefix(src[at:], "0X")
	for at < len(src) {
		c := src[at]
		exponent := (c == '+' || c == '-') && !hexadecimal && src[at-1]|0x20 == 'e'
		if !isDigit(c) && !startsName(c) && c != '.' && !exponent {
			break
		}
		at++
	}
	return at
}
