package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/ardanlabs/jinja"
)

// parseJSON returns a JSON value as Python's json.loads does: keys in order, the
// last of equal keys at the place of the first.
func parseJSON(data []byte) (jinja.Value, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if !json.Valid(data) { // bounds the depth too
		return jinja.Undefined(), errors.New("not JSON")
	}
	value, err := nextJSON(decoder)
	if err == nil {
		if _, after := decoder.Token(); after != io.EOF {
			err = errors.New("more after the value")
		}
	}
	return value, err
}

func nextJSON(decoder *json.Decoder) (jinja.Value, error) {
	token, err := decoder.Token()
	if err != nil {
		return jinja.Undefined(), err
	}
	switch token := token.(type) {
	case bool:
		return jinja.NewBool(token), nil
	case string:
		return jinja.NewString(token), nil
	case json.Number:
		return number(string(token)), nil
	case json.Delim:
		if token == '[' {
			var items []jinja.Value
			for decoder.More() {
				item, err := nextJSON(decoder)
				if err != nil {
					return item, err
				}
				items = append(items, item)
			}
			_, err = decoder.Token()
			return jinja.NewList(items), err
		}
		object := jinja.NewDict()
		for decoder.More() {
			key, err := decoder.Token()
			if err != nil {
				return object, err
			}
			value, err := nextJSON(decoder)
			if err != nil {
				return object, err
			}
			object.AsDict().Set(key.(string), value)
		}
		_, err = decoder.Token()
		return object, err
	}
	return jinja.None(), nil
}

// number is an integer if it has neither fraction nor exponent. One beyond 64
// bits becomes a callable that only carries its digits: the engine passes it on,
// and the filters here write it.
func number(literal string) jinja.Value {
	if strings.ContainsAny(literal, ".eE") {
		f, _ := strconv.ParseFloat(literal, 64) // out of range: an infinity, as in Python
		return jinja.NewFloat(f)
	}
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return jinja.NewInt(n)
	}
	return jinja.NewCallable(literal, func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
		return jinja.Undefined(), errors.New("an integer is not callable")
	})
}

// bigInteger returns the digits of what number made of an integer too large.
func bigInteger(v jinja.Value) (string, bool) {
	if !v.IsCallable() {
		return "", false
	}
	name := v.AsCallable().Name
	return name, strings.Trim(name, "-0123456789") == ""
}
