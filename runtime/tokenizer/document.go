package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// tokenizer.json is mostly one object of 150,000 keys and one array as long.
// The functions here walk over JSON that checkJSON has passed, in place and in
// one go, where encoding/json would take most of a second. They also keep what
// it drops: keys in their case, and keys given twice.

// checkJSON must have passed a document before anything else here reads it.
func checkJSON(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("not valid UTF-8")
	}
	if !json.Valid(data) {
		var value any
		return json.Unmarshal(data, &value) // for its account of what is wrong
	}
	return nil
}

// members visits the keys and values of an object in order.
func members(object []byte, visit func(key, value []byte) error) error {
	i := afterSpace(object, 0)
	if object[i] != '{' {
		return errors.New("is no object")
	}
	for i = afterSpace(object, i+1); object[i] != '}'; {
		end := stringEnd(object, i)
		key, err := unquoted(object[i:end])
		if err != nil {
			return err
		}
		start := afterSpace(object, afterSpace(object, end)+1) // past the colon
		end = valueEnd(object, start)
		if err := visit(key, object[start:end]); err != nil {
			return err
		}
		i = afterComma(object, end)
	}
	return nil
}

// uniqueMembers is members that refuses a key given twice. It is for objects of
// few keys.
func uniqueMembers(object []byte, visit func(key string, value []byte) error) error {
	seen := map[string]bool{}
	return members(object, func(key, value []byte) error {
		if seen[string(key)] {
			return fmt.Errorf("key %q given twice", clip(string(key)))
		}
		seen[string(key)] = true
		return visit(string(key), value)
	})
}

// elements visits the elements of an array in order.
func elements(array []byte, visit func(element []byte) error) error {
	i := afterSpace(array, 0)
	if array[i] != '[' {
		return errors.New("is no array")
	}
	for i = afterSpace(array, i+1); array[i] != ']'; {
		end := valueEnd(array, i)
		if err := visit(array[i:end]); err != nil {
			return err
		}
		i = afterComma(array, end)
	}
	return nil
}

// unquoted returns the text of a JSON string, in place where it has no escapes.
func unquoted(value []byte) ([]byte, error) {
	if value[0] != '"' {
		return nil, fmt.Errorf("%s is no string", clip(string(value)))
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1], nil
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return nil, err
	}
	return []byte(text), nil
}

func afterSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// afterComma returns the start of the next item, or of the closing bracket.
func afterComma(data []byte, i int) int {
	i = afterSpace(data, i)
	if data[i] == ',' {
		i = afterSpace(data, i+1)
	}
	return i
}

func stringEnd(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd returns the end of the value that starts at i.
func valueEnd(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			i = stringEnd(data, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
		default:
			i = literalEnd(data, i)
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// literalEnd returns the end of a number, true, false or null.
func literalEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '"', '{', '[', '}', ']', ',', ':', ' ', '\n', '\t', '\r':
			return i
		}
	}
	return i
}
