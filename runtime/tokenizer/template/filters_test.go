package template

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

func TestWithPythonFilters(t *testing.T) {
	for source, want := range map[string]string{
		"a | tojson {{ x|tojson }}":            "a | tojson {{ x|python_tojson }}",
		"{%- set y = x |\n string %}":          "{%- set y = x |\n python_string %}",
		"{{ '| tojson' ~ \"\\\"|tojson\" }}":   "{{ '| tojson' ~ \"\\\"|tojson\" }}",
		"{# x|tojson #}{{ x|tojson }}":         "{# x|tojson #}{{ x|python_tojson }}",
		"{{ x|tojson(indent=4)|tojsonp|trim }": "{{ x|python_tojson(indent=4)|tojsonp|trim }",
		"{{ x is string }}":                    "{{ x is string }}",
		"{ {":                                  "{ {",
		"{#":                                   "{#",
		"{{ '":                                 "{{ '",
	} {
		if got := withPythonFilters(source); got != want {
			t.Errorf("%q: got %q, want %q", source, got, want)
		}
	}
}

// Renaming changes nothing but the two names.
func FuzzWithPythonFilters(f *testing.F) {
	for _, seed := range []string{"{{ x|tojson }}", "{% if x | string %}", "{# | tojson #}", "{{ '\\' | tojson", "{{|{{|string"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if strings.Contains(source, "python_") {
			return
		}
		if got := strings.ReplaceAll(withPythonFilters(source), "python_", ""); got != source {
			t.Errorf("%q became %q", source, got)
		}
	})
}

// What Python's json.dumps and str make of numbers is in testdata/rendered.json
// for many; here are the borders.
func TestPythonFloat(t *testing.T) {
	for literal, want := range map[string]string{
		"0.0": "0.0", "-0.0": "-0.0", "1.0": "1.0", "1e15": "1000000000000000.0", "9999999999999998.0": "9999999999999998.0", "1e16": "1e+16",
		"0.0001": "0.0001", "0.00009": "9e-05", "1.5e300": "1.5e+300", "5e-324": "5e-324", "1e400": "inf", "-1e400": "-inf", "0.1": "0.1",
	} {
		if got := pythonFloat(number(literal).AsFloat()); got != want {
			t.Errorf("%s: got %s, want %s", literal, got, want)
		}
	}
}

func TestTojsonRefusesArguments(t *testing.T) {
	_, err := tojson([]jinja.Value{jinja.None()}, map[string]jinja.Value{"skipkeys": jinja.NewBool(true)})
	if err == nil || err.Error() != "tojson: argument skipkeys is not supported" {
		t.Errorf("got %v", err)
	}
}

// JSON that is read and written again says the same.
func FuzzTojson(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,-0.0,1e400,123456789012345678901],"b":"\u2028<é\ud83d\ude00\u007f"}`, `[]`, `"\u0000"`, `{"a":1,"b":2,"a":3}`, `[`} {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, ascii bool) {
		value, err := parseJSON(data)
		if err != nil {
			if json.Valid(data) {
				t.Errorf("%q: %v", data, err)
			}
			return
		}
		text, err := tojson([]jinja.Value{value}, map[string]jinja.Value{"ensure_ascii": jinja.NewBool(ascii)})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.AsString(), "Infinity") || !utf8.Valid(data) {
			return // no JSON, but Python's
		}
		var before, after any
		if err := json.Unmarshal(data, &before); err != nil {
			return // a number beyond float64
		}
		if err := json.Unmarshal([]byte(text.AsString()), &after); err != nil {
			t.Fatalf("%q became %q: %v", data, text.AsString(), err)
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%q became %q", data, text.AsString())
		}
	})
}

// Whatever a client sends, rendering ends, and the same way twice.
func FuzzRender(f *testing.F) {
	f.Add("user", "Hi", `{"a": 1.0}`, `{"type":"function"}`)
	f.Add("assistant", "<think>x</think>y", `[`, `{`)
	f.Add("tool", "<tool_response>", `{}`, `[]`)
	templates := []*Template{parsed(f, "qwen3"), parsed(f, "qwen3_5"), parsed(f, "abacus"), parsed(f, "blocks")}
	f.Fuzz(func(t *testing.T, role, content, arguments, tool string) {
		messages := []Message{{Role: role, Content: content}, {Role: "user", Parts: []Part{{Type: "text", Text: content}}},
			{Role: "assistant", ToolCalls: []ToolCall{{Name: role, Arguments: arguments}}}, {Role: role, Content: content}}
		options := Options{AddGenerationPrompt: true, Tools: []json.RawMessage{json.RawMessage(tool)}}
		for _, template := range templates {
			prompt, err := template.Render(messages, options)
			again, errAgain := template.Render(messages, options)
			if prompt != again || (err == nil) != (errAgain == nil) {
				t.Errorf("%q, %v and then %q, %v", prompt, err, again, errAgain)
			}
			if err != nil && strings.Contains(err.Error(), "broke off") {
				t.Error(err)
			}
		}
	})
}
