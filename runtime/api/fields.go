package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// fields reads the fields of one JSON object. encoding/json alone would take
// "Messages" for messages; a map does not. null is the same as absent. The first
// error stays and later reads return their defaults.
type fields struct {
	path   string // of the object, with a dot at its end: `messages[0].`
	values map[string]json.RawMessage
	err    *Error
}

// readBody reads a request's object.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) (*fields, *Error) {
	tooLarge := &Error{Status: http.StatusRequestEntityTooLarge, Type: typeInvalid, Code: "request_too_large",
		Message: fmt.Sprintf("the request has more than %d bytes", limit)}
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Now().Add(readTimeout)) // not all writers can
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	// A deadline that passed later would look like a client that went away.
	control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, tooLarge
	}
	if err != nil {
		return nil, invalid("", "read the request: %v", err)
	}
	f := parseFields("", data)
	return f, f.err
}

func parseFields(path string, data []byte) *fields {
	f := &fields{path: path}
	if err := json.Unmarshal(data, &f.values); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			f.fail("", "has to be a JSON object")
			return f
		}
		f.err = invalid("", "the request is not valid JSON: %v", err)
		return f
	}
	if f.values == nil {
		f.fail("", "has to be a JSON object")
	}
	return f
}

// fail records what is wrong with a field ("" for the object itself).
func (f *fields) fail(name, format string, args ...any) {
	if f.err != nil {
		return
	}
	param := strings.TrimSuffix(f.path+name, ".")
	subject := param
	if subject == "" {
		subject = "the request"
	}
	f.err = invalid(param, "%s %s", subject, fmt.Sprintf(format, args...))
}

func (f *fields) has(name string) bool { return f.raw(name) != nil }

// raw returns a field's JSON, or nil if it is absent or null.
func (f *fields) raw(name string) json.RawMessage {
	value := f.values[name]
	if string(value) == "null" {
		return nil
	}
	return value
}

// read decodes a field and says whether it was there and right.
func (f *fields) read(name, kind string, target any) bool {
	value := f.raw(name)
	if value == nil || f.err != nil {
		return false
	}
	if err := json.Unmarshal(value, target); err != nil {
		f.fail(name, "has to be %s", kind)
		return false
	}
	return true
}

func (f *fields) boolean(name string) (value bool) {
	f.read(name, "true or false", &value)
	return value
}

func (f *fields) text(name string) (value string) {
	f.read(name, "a string", &value)
	return value
}

// number reads a number between least and most, or leaves target as it is.
func (f *fields) number(name string, target *float32, least, most float64) {
	var value float64
	if !f.read(name, "a number", &value) {
		return
	}
	if value < least || value > most {
		f.fail(name, "has to be between %g and %g, not %g", least, most, value)
		return
	}
	*target = float32(value)
}

// integer reads a whole number, or returns fallback. 16.0 is one too: there are
// clients whose numbers are all floating point.
func (f *fields) integer(name string, fallback, least, most int) int {
	var value float64
	if !f.read(name, "an integer", &value) {
		return fallback
	}
	if value != math.Trunc(value) {
		f.fail(name, "has to be an integer, not %g", value)
		return fallback
	}
	if value < float64(least) || value > float64(most) {
		switch {
		case most == math.MaxInt32 && value < float64(least):
			f.fail(name, "has to be at least %d, not %.10g", least, value)
		case most == math.MaxInt32:
			f.fail(name, "has to be at most %d, not %.10g", most, value)
		default:
			f.fail(name, "has to be between %d and %d, not %.10g", least, most, value)
		}
		return fallback
	}
	return int(value)
}

// seed reads any 64-bit integer, exactly: as a float64 neighbours would be one.
func (f *fields) seed(name string) uint64 {
	raw := string(f.raw(name))
	if raw == "" || f.err != nil {
		return 0
	}
	if value, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return uint64(value)
	}
	value, err := strconv.ParseUint(raw, 10, 64)
	if err != nil {
		f.fail(name, "has to be a 64-bit integer")
	}
	return value
}

// ids reads a list of token ids.
func (f *fields) ids(name string) []int32 {
	ids, ok := parseIDs(f.raw(name))
	if !ok {
		f.fail(name, "has to be a list of token ids")
	}
	return ids
}

// known refuses ids that a vocabulary of that size does not have.
func (f *fields) known(name string, ids []int32, vocabulary int) {
	for i, id := range ids {
		if id < 0 || int(id) >= vocabulary {
			f.fail(name, "has id %d at place %d; ids are 0 to %d", id, i, vocabulary-1)
			return
		}
	}
}

// parseIDs reads a JSON list of token ids. encoding/json would read null in it as 0.
func parseIDs(raw json.RawMessage) (ids []int32, ok bool) {
	err := json.Unmarshal(raw, &ids)
	return ids, err == nil && ids != nil && !bytes.Contains(raw, []byte("null"))
}

// list reads an array and leaves its elements to the caller.
func (f *fields) list(name string) (elements []json.RawMessage) {
	f.read(name, "a list", &elements)
	return elements
}

// object reads a nested object; absent, it has no fields. Its errors are to be
// taken back with adopt.
func (f *fields) object(name string) *fields {
	value := f.raw(name)
	if value == nil || f.err != nil {
		return &fields{path: f.path + name + "."}
	}
	return parseFields(f.path+name+".", value)
}

// adopt takes over a nested object's error.
func (f *fields) adopt(nested *fields) {
	if f.err == nil {
		f.err = nested.err
	}
}
