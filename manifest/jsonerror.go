package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// explainJSON says where an error of encoding/json lies and what was wanted,
// in terms of the file and not of Go's types.
func explainJSON(data []byte, err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		// A decoder that gives tokens counts from its last value: ask again.
		offset, reason := syntax.Offset, syntax
		if whole := json.Unmarshal(data, new(json.RawMessage)); errors.As(whole, &reason) {
			offset = reason.Offset
		}
		if offset >= int64(len(data)) && strings.HasPrefix(reason.Error(), "unexpected end") {
			return fmt.Errorf("ends in the middle of a value, at %s", position(data, len(data)))
		}
		return fmt.Errorf("no JSON at %s: %s", position(data, int(offset)-1), reason)
	case errors.As(err, &mismatch):
		got, _, _ := strings.Cut(mismatch.Value, " ")
		return wrongKind(mismatch.Field, wantedKind(mismatch.Type), article(got))
	}
	return err
}

// position writes an offset as line and column, both from 1; columns are bytes.
func position(data []byte, offset int) string {
	before := data[:max(0, min(offset, len(data)))]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n'))
}

// invalidAt returns the offset of the first byte that is no UTF-8.
func invalidAt(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// takes reports whether a value of type t may be written as the JSON value
// that begins with token. What a type reads by itself it may refuse later.
func takes(t reflect.Type, token json.Token) bool {
	if t == reflect.TypeFor[json.RawMessage]() || reflect.PointerTo(t).Implements(unmarshaler) {
		return true
	}
	if reflect.PointerTo(t).Implements(textUnmarshaler) {
		_, isText := token.(string)
		return isText
	}
	delim, isDelim := token.(json.Delim)
	_, isText := token.(string)
	number, isNumber := token.(json.Number)
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Struct, reflect.Map:
		return isDelim && delim == '{'
	case reflect.Slice, reflect.Array:
		return isDelim && delim == '[' || isText && t.Elem().Kind() == reflect.Uint8
	case reflect.String:
		return isText || isNumber && t == reflect.TypeFor[json.Number]()
	case reflect.Bool:
		_, ok := token.(bool)
		return ok
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		_, err := strconv.ParseInt(number.String(), 10, t.Bits())
		return isNumber && err == nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		_, err := strconv.ParseUint(number.String(), 10, t.Bits())
		return isNumber && err == nil
	case reflect.Float32, reflect.Float64:
		return isNumber
	}
	return true
}

// wantedKind names the JSON value that a type is written as.
func wantedKind(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(textUnmarshaler) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number that is not negative"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "another value"
}

// kindOf names the JSON value that begins with token.
func kindOf(token json.Token) string {
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return "an array"
		}
		return "an object"
	case string:
		return "a string"
	case bool:
		return strconv.FormatBool(token)
	case json.Number:
		return Clip(token.String())
	}
	return "null"
}

// article names the JSON value that encoding/json calls by one word.
func article(kind string) string {
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + strings.Replace(kind, "bool", "truth value", 1)
}

func wrongKind(path, want, got string) error {
	if path == "" {
		return fmt.Errorf("want %s, got %s", want, got)
	}
	return fmt.Errorf("%s: want %s, got %s", path, want, got)
}
