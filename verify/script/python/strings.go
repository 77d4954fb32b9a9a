package python

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxNesting bounds f-strings within f-strings; Python's own limit is 150.
const maxNesting = 150

// isPrefix reports whether letters before a quote belong to a string literal.
func isPrefix(name string) bool {
	switch strings.ToLower(name) {
	case "r", "u", "b", "f", "t", "br", "rb", "fr", "rf", "tr", "rt":
		return true
	}
	return false
}

// prefixHas reports whether a string literal's prefix has one of the letters.
func prefixHas(prefix, letters string) bool {
	return strings.ContainsAny(strings.ToLower(prefix), letters)
}

// stringEnd returns the end of the string literal whose prefix begins at start
// and whose quote is at quote. Within a replacement field of an f-string every
// quote may come again (PEP 701).
func stringEnd(src string, start, quote, depth int) (end int, problem string) {
	if depth > maxNesting {
		return 0, "strings are nested too deeply"
	}
	terminator := src[quote : quote+1]
	if triple := strings.Repeat(terminator, 3); strings.HasPrefix(src[quote:], triple) {
		terminator = triple
	}
	prefix := src[start:quote]
	fields, raw := prefixHas(prefix, "ft"), prefixHas(prefix, "r")
	at := quote + len(terminator)
	for at < len(src) {
		switch c := src[at]; {
		case strings.HasPrefix(src[at:], terminator):
			return at + len(terminator), ""
		case (c == '\n' || c == '\r') && len(terminator) == 1:
			return 0, "a string does not end on its line"
		case c == '\\':
			at = afterBackslash(src, at, raw, fields)
		case c == '{' && fields && strings.HasPrefix(src[at:], "{{"):
			at += 2
		case c == '{' && fields:
			if at, problem = fieldEnd(src, at, terminator, depth); problem != "" {
				return 0, problem
			}
		default:
			at++
		}
	}
	return 0, "a string does not end"
}

// afterBackslash steps over an escape sequence as far as quotes, newlines and
// braces are concerned.
func afterBackslash(src string, at int, raw, fields bool) int {
	at++
	if at >= len(src) {
		return at
	}
	switch c := src[at]; {
	case c == '\r' || c == '\n':
		return at + newlineLength(src, at)
	case fields && (c == '{' || c == '}'):
		return at // no escape: the brace counts
	case fields && !raw && c == 'N' && strings.HasPrefix(src[at+1:], "{"):
		if i := strings.IndexAny(src[at:min(len(src), at+128)], "}\r\n"); i >= 0 {
			return at + i
		}
	}
	return at + 1
}

// fieldEnd returns the offset behind a replacement field {expression!r:spec}.
func fieldEnd(src string, at int, terminator string, depth int) (end int, problem string) {
	if depth > maxNesting {
		return 0, "replacement fields are nested too deeply"
	}
	open := 0
	for at++; at < len(src); {
		switch c := src[at]; {
		case c == '"' || c == '\'':
			at, problem = stringEnd(src, at, at, depth+1)
		case startsName(c):
			start := at
			at = nameEnd(src, at)
			if at < len(src) && (src[at] == '"' || src[at] == '\'') && isPrefix(src[start:at]) {
				at, problem = stringEnd(src, start, at, depth+1)
			}
		case c == '#':
			at = lineEnd(src, at)
		case c == '(' || c == '[' || c == '{':
			open++
			at++
		case open == 0 && c == '}':
			return at + 1, ""
		case c == ')' || c == ']' || c == '}':
			open--
			at++
		case open == 0 && c == ':':
			return specEnd(src, at+1, terminator, depth)
		default:
			at++
		}
		if problem != "" {
			return 0, problem
		}
	}
	return 0, "a replacement field of a string does not end"
}

// specEnd returns the offset behind the } that ends a format specification,
// which may hold replacement fields of its own.
func specEnd(src string, at int, terminator string, depth int) (end int, problem string) {
	for at < len(src) {
		switch c := src[at]; {
		case c == '}':
			return at + 1, ""
		case c == '{':
			if at, problem = fieldEnd(src, at, terminator, depth+1); problem != "" {
				return 0, problem
			}
		case strings.HasPrefix(src[at:], terminator), (c == '\n' || c == '\r') && len(terminator) == 1:
			return 0, "a replacement field of a string does not end"
		case c == '\\':
			at = afterBackslash(src, at, false, true)
		default:
			at++
		}
	}
	return 0, "a replacement field of a string does not end"
}

// literalText returns what a string token stands for; plain is false for bytes
// and for an f-string, whose text keeps its replacement fields as written.
func literalText(source string) (text string, plain bool) {
	quote := strings.IndexAny(source, `"'`)
	prefix, body := source[:quote], source[quote:]
	width := 1
	if len(body) >= 6 && body[1] == body[0] && body[2] == body[0] {
		width = 3
	}
	body = body[width : len(body)-width]
	plain = !prefixHas(prefix, "bft")
	if !prefixHas(prefix, "r") && strings.ContainsAny(body, "\\\r") {
		body = unescape(body)
	}
	return body, plain
}

var escapes = map[byte]string{
	'\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\n': "",
}

// unescape resolves escape sequences (Python's language reference 2.4.1.1)
// but for \N{...}, which stays as it is written.
func unescape(body string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(body, '\\')
		if i < 0 || i+1 >= len(body) {
			out.WriteString(body)
			return out.String()
		}
		out.WriteString(body[:i])
		body = body[i+1:]
		width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[body[0]]
		switch replacement, known := escapes[body[0]]; {
		case known:
			out.WriteString(replacement)
			body = body[1:]
		case strings.HasPrefix(body, "\r\n"):
			body = body[2:]
		case width > 0 && len(body) > width:
			code, err := strconv.ParseUint(body[1:1+width], 16, 32)
			if err != nil || code > utf8.MaxRune {
				out.WriteByte('\\')
				continue
			}
			out.WriteRune(rune(code))
			body = body[1+width:]
		case body[0] >= '0' && body[0] <= '7':
			n := 1
			for n < 3 && n < len(body) && body[n] >= '0' && body[n] <= '7' {
				n++
			}
			code, _ := strconv.ParseUint(body[:n], 8, 32)
			out.WriteRune(rune(code))
			body = body[n:]
		default:
			out.WriteByte('\\') // no escape: the backslash stays
		}
	}
}
