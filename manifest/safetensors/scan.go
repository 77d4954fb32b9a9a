package safetensors

import (
	"errors"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads the subset of JSON (RFC 8259) that headers use: objects,
// arrays, strings and plain non-negative integers. encoding/json is unfit: it
// lets the last duplicate win, folds the case of keys and repairs bad UTF-8.
//
// The source must be valid UTF-8. Errors are *Error and give the offset in the
// file of the byte at fault.
type scanner struct {
	src   []byte
	pos   int
	base  int    // offset in the file of src[0], for messages
	space int    // white space between tokens so far, in bytes
	rule  string // rule that a malformed structure breaks
}

func (s *scanner) fault(rule, format string, args ...any) error {
	return fault(rule, "", format+" at byte %d", append(args, s.base+s.pos)...)
}

// peek skips white space and returns the next byte, or 0 at the end; no token
// begins with a 0 byte, so the two need no telling apart.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.src); s.pos++ {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.space++
		default:
			return c
		}
	}
	return 0
}

// expect skips white space and consumes c.
func (s *scanner) expect(c byte) error {
	if s.peek() != c {
		return s.unexpected(c)
	}
	s.pos++
	return nil
}

func (s *scanner) unexpected(want byte) error {
	if s.pos == len(s.src) {
		return s.fault(s.rule, "JSON ends where %q should be", want)
	}
	r, _ := utf8.DecodeRune(s.src[s.pos:])
	return s.fault(s.rule, "%q where %q should be", r, want)
}

// object reads an object and calls member for each key, with the scanner
// before the value; member must consume the value. Duplicates are member's to
// refuse.
func (s *scanner) object(member func(key []byte) error) error {
	return s.list('{', '}', func() error {
		key, err := s.string()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// list reads a comma-separated list between two brackets and calls item before
// each item.
func (s *scanner) list(opening, closing byte, item func() error) error {
	if err := s.expect(opening); err != nil {
		return err
	}
	if s.peek() == closing {
		s.pos++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if s.peek() != ',' {
			return s.expect(closing)
		}
		s.pos++
	}
}

// integer reads a decimal integer in 0..2^63-1 without sign, leading zero,
// fraction or exponent; anything else breaks rule.
func (s *scanner) integer(rule string) (int64, error) {
	s.peek()
	start := s.pos
	value := int64(0)
	for ; s.pos < len(s.src) && '0' <= s.src[s.pos] && s.src[s.pos] <= '9'; s.pos++ {
		digit := int64(s.src[s.pos] - '0')
		if value > (math.MaxInt64-digit)/10 {
			s.pos = start
			return 0, s.fault(rule, "integer above 2^63-1")
		}
		value = value*10 + digit
	}
	digits := s.src[start:s.pos]
	plain := len(digits) > 0 && (digits[0] != '0' || len(digits) == 1)
	if s.pos < len(s.src) {
		switch s.src[s.pos] {
		case '.', 'e', 'E':
			plain = false
		}
	}
	if !plain {
		s.pos = start
		return 0, s.fault(rule, "no plain non-negative integer")
	}
	return value, nil
}

// string reads a string and returns its decoded bytes, which may alias the
// source.
func (s *scanner) string() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	start := s.pos
	var decoded []byte // nil until the first escape
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == '"':
			rest := s.src[start:s.pos]
			s.pos++
			if decoded == nil {
				return rest, nil
			}
			return append(decoded, rest...), nil
		case c < 0x20:
			return nil, s.fault(s.rule, "control character U+%04X in a string", c)
		case c == '\\':
			r, length, err := unescape(s.src[s.pos:])
			if err != nil {
				return nil, s.fault(s.rule, "%v", err)
			}
			decoded = utf8.AppendRune(append(decoded, s.src[start:s.pos]...), r)
			s.pos += length
			start = s.pos
		default:
			s.pos++
		}
	}
	return nil, s.fault(s.rule, "string without end")
}

var (
	errEscape    = errors.New("unknown escape")
	errSurrogate = errors.New("escaped surrogate without its pair")
)

// unescape decodes the escape sequence at the start of src and returns its
// length: 2, 6, or 12 for a surrogate pair.
func unescape(src []byte) (r rune, length int, err error) {
	if len(src) < 2 {
		return 0, 0, errEscape
	}
	switch c := src[1]; c {
	case '"', '\\', '/':
		return rune(c), 2, nil
	case 'b':
		return '\b', 2, nil
	case 'f':
		return '\f', 2, nil
	case 'n':
		return '\n', 2, nil
	case 'r':
		return '\r', 2, nil
	case 't':
		return '\t', 2, nil
	}
	r, ok := codeUnit(src)
	if !ok {
		return 0, 0, errEscape
	}
	if !utf16.IsSurrogate(r) {
		return r, 6, nil
	}
	low, _ := codeUnit(src[6:])
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, 0, errSurrogate
	}
	return r, 12, nil
}

// codeUnit decodes the \uXXXX at the start of src.
func codeUnit(src []byte) (rune, bool) {
	if len(src) < 6 || src[0] != '\\' || src[1] != 'u' {
		return 0, false
	}
	var unit rune
	for _, c := range src[2:6] {
		switch {
		case '0' <= c && c <= '9':
			unit = unit<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			unit = unit<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			unit = unit<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return unit, true
}
