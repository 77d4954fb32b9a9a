package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"slipway/manifest"
)

// errMalformed marks replies that were 200 and are not what the endpoint answers.
var errMalformed = errors.New("malformed reply")

// malformed says in plain words why data, the body of a reply, could not be
// decoded.
func malformed(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case len(strings.TrimSpace(string(data))) == 0:
		return fmt.Errorf("%w: the body is empty", errMalformed)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%w: %s is %s, and must be %s", errMalformed, kind.Field, kindText(kind.Value), typeText(kind.Type))
	case errors.As(err, &kind):
		return fmt.Errorf("%w: the body is %s, and must be %s", errMalformed, kindText(kind.Value), typeText(kind.Type))
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) && strings.Contains(err.Error(), "unexpected end"):
		return fmt.Errorf("%w: its JSON is cut off after %d bytes", errMalformed, len(data))
	case errors.As(err, &syntax):
		at := max(0, min(syntax.Offset-1, int64(len(data))))
		return fmt.Errorf("%w: it is no JSON from byte %d on: %q", errMalformed, at, manifest.Clip(string(data[at:min(at+40, int64(len(data)))])))
	}
	return fmt.Errorf("%w: it cannot be read as JSON", errMalformed)
}

// kindText names what a JSON value is: "number", "number 1e9", "string", "array",
// "object" or "bool", as encoding/json calls it.
func kindText(value string) string {
	word, number, _ := strings.Cut(value, " ")
	switch word {
	case "string":
		return "a text"
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	}
	if number == "" {
		return "a number"
	}
	return "the number " + number
}

// typeText names what a Go type stands for in a reply.
func typeText(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeText(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list"
	case reflect.Struct:
		return "an object"
	case reflect.Int32:
		return "a whole number of 32 bits"
	case reflect.Int:
		return "a whole number"
	}
	return "a number"
}
