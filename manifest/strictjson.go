package manifest

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds nesting, so that hostile input cannot exhaust the stack.
const maxDepth = 64

// DecodeStrict decodes one JSON value into target, a non-nil pointer, and
// refuses what encoding/json lets through: keys that differ from the declared
// ones in case, keys given twice, unknown keys, null where no pointer or
// interface takes it, invalid UTF-8, lone surrogates, and anything after the
// value. Structs need a json tag on every field that may appear; embedded
// structs are not supported.
func DecodeStrict(data []byte, target any) error {
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		return errors.New("begins with a byte order mark: save it as UTF-8 without one")
	}
	if !utf8.Valid(data) {
		return fmt.Errorf("not valid UTF-8 at %s", position(data, invalidAt(data)))
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	walker := strictWalker{decoder: decoder, data: data}
	if err := walker.value(reflect.TypeOf(target).Elem(), "", 0); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("ends in the middle of a value, at %s", position(data, len(data)))
		}
		return explainJSON(data, err)
	}
	end := int(decoder.InputOffset())
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("has more after the value, at %s", position(data, end))
	}
	return explainJSON(data, json.Unmarshal(data, target))
}

// DecodeLoose decodes JSON that others own: unknown and repeated keys pass, as
// encoding/json takes them. Errors are those that DecodeStrict gives.
func DecodeLoose(data []byte, target any) error {
	return explainJSON(data, json.Unmarshal(data, target))
}

// EncodeCanonical writes value in the one form the format uses: keys in
// declared order (maps: byte order), no insignificant space, no HTML escapes,
// no trailing newline.
func EncodeCanonical(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// EncodeLines is EncodeCanonical with one key or element a line and a final
// newline, for the files that people open in an editor.
func EncodeLines(value any) ([]byte, error) {
	compact, err := EncodeCanonical(value)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compact, "", " "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// strictWalker reads a value token by token beside the type it will be
// decoded into.
type strictWalker struct {
	decoder *json.Decoder
	data    []byte
}

var (
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
)

func (w strictWalker) value(t reflect.Type, path string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: nested deeper than %d", at(path), maxDepth)
	}
	nullable := t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || t == reflect.TypeFor[json.RawMessage]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	start := w.decoder.InputOffset()
	token, err := w.decoder.Token()
	if err != nil {
		return err
	}
	if got := kindOf(token); token != nil && !takes(t, token) {
		return wrongKind(path, wantedKind(t), got)
	}
	switch token := token.(type) {
	case nil:
		if !nullable {
			return fmt.Errorf("%s: null, where %s must stand", at(path), wantedKind(t))
		}
	case string:
		return w.text(token, start, path)
	case json.Delim:
		if token == '[' {
			return w.array(t, path, depth)
		}
		return w.object(t, path, depth)
	}
	return nil
}

// text refuses a string in which the decoder replaced a lone surrogate: the
// replacement character stands in the result but not in the source.
func (w strictWalker) text(decoded string, start int64, path string) error {
	if !strings.ContainsRune(decoded, utf8.RuneError) {
		return nil
	}
	source := strings.ToLower(string(w.data[start:w.decoder.InputOffset()]))
	written := strings.Count(source, "\uFFFD") + strings.Count(source, `\ufffd`)
	if strings.Count(decoded, "\uFFFD") != written {
		return fmt.Errorf("%s: lone surrogate in a string", at(path))
	}
	return nil
}

func (w strictWalker) array(t reflect.Type, path string, depth int) error {
	element := reflect.TypeFor[any]()
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		if t != reflect.TypeFor[json.RawMessage]() {
			element = t.Elem()
		}
	}
	for i := 0; w.decoder.More(); i++ {
		if err := w.value(element, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
			return err
		}
	}
	_, err := w.decoder.Token()
	return err
}

func (w strictWalker) object(t reflect.Type, path string, depth int) error {
	fields, closed := declaredKeys(t)
	seen := map[string]bool{}
	for w.decoder.More() {
		start := w.decoder.InputOffset()
		token, err := w.decoder.Token()
		if err != nil {
			return err
		}
		key := token.(string) // the decoder accepts nothing else as a key
		if err := w.text(key, start, path); err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("%s: key %q given twice", at(path), Clip(key))
		}
		seen[key] = true
		field, known := fields[key]
		switch {
		case known:
		case closed:
			return unknownKey(path, key, fields)
		case t.Kind() == reflect.Map:
			field = t.Elem()
		default:
			field = reflect.TypeFor[any]()
		}
		if err := w.value(field, strings.TrimPrefix(path+"."+Clip(key), "."), depth+1); err != nil {
			return err
		}
	}
	_, err := w.decoder.Token()
	return err
}

// declaredKeys returns the json keys of a struct type; closed is false for
// types that take any key.
func declaredKeys(t reflect.Type) (fields map[string]reflect.Type, closed bool) {
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(textUnmarshaler) {
		return nil, false
	}
	fields = map[string]reflect.Type{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = t.Field(i).Type
		}
	}
	return fields, true
}

func unknownKey(path, key string, fields map[string]reflect.Type) error {
	for name := range fields {
		if strings.EqualFold(name, key) {
			return fmt.Errorf("%s: key %q must be written %q", at(path), Clip(key), name)
		}
	}
	return fmt.Errorf("%s: unknown key %q", at(path), Clip(key))
}

func at(path string) string {
	if path == "" {
		return "top level"
	}
	return path
}
