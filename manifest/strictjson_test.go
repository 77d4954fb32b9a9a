package manifest

import (
	"encoding/json"
	"strings"
	"testing"
)

type strictInner struct {
	Name  string   `json:"name"`
	Count *int     `json:"count,omitempty"`
	Tags  []string `json:"tags,omitempty"`
}

type strictOuter struct {
	Inner strictInner            `json:"inner"`
	Many  map[string]strictInner `json:"many,omitempty"`
	Free  json.RawMessage        `json:"free,omitempty"`
	Any   any                    `json:"any,omitempty"`
}

func TestDecodeStrict(t *testing.T) {
	for _, tc := range []struct{ name, in, fault string }{
		{"clean", `{"inner":{"name":"a","count":1,"tags":["x"]},"many":{"b":{"name":"c"}},"free":{"any":[1,{"q":null}]},"any":{"X":1,"x":2}}`, ""},
		{"null pointer", `{"inner":{"name":"a","count":null}}`, ""},
		{"space around", " \n{\"inner\":{\"name\":\"a\"}}\n", ""},
		{"escaped pair", `{"inner":{"name":"\ud83d\ude00"}}`, ""},
		{"written replacement", `{"inner":{"name":"\ufffd"}}`, ""},
		{"wrong case", `{"Inner":{"name":"a"}}`, `top level: key "Inner" must be written "inner"`},
		{"wrong case below", `{"inner":{"NAME":"a"}}`, `inner: key "NAME" must be written "name"`},
		{"duplicate", `{"inner":{"name":"a","name":"b"}}`, `inner: key "name" given twice`},
		{"duplicate by escape", `{"inner":{"name":"a","n\u0061me":"b"}}`, `given twice`},
		{"duplicate in map", `{"inner":{"name":"a"},"many":{"b":{"name":"1"},"b":{"name":"2"}}}`, `many: key "b" given twice`},
		{"duplicate in free", `{"inner":{"name":"a"},"free":{"x":{"y":1,"y":2}}}`, `free.x: key "y" given twice`},
		{"duplicate in any", `{"inner":{"name":"a"},"any":[{"y":1,"y":2}]}`, `any[0]: key "y" given twice`},
		{"unknown", `{"inner":{"name":"a"},"extra":1}`, `top level: unknown key "extra"`},
		{"null value", `{"inner":null}`, `inner: null`},
		{"null element", `{"inner":{"name":"a","tags":[null]}}`, `inner.tags[0]: null`},
		{"trailing", `{"inner":{"name":"a"}} {}`, `more after the value`},
		{"cut", `{"inner":{"name":"a"`, `ends in the middle`},
		{"empty", ``, `ends in the middle`},
		{"not UTF-8", "{\"inner\":{\"name\":\"\xff\"}}", `not valid UTF-8`},
		{"lone surrogate", `{"inner":{"name":"\ud83d"}}`, `inner.name: lone surrogate`},
		{"lone surrogate key", `{"inner":{"name":"a"},"many":{"\udc00":{"name":"x"}}}`, `lone surrogate`},
		{"wrong type", `{"inner":{"name":7}}`, `inner.name: want a string, got 7`},
		{"fraction", `{"inner":{"name":"a","count":1.5}}`, `inner.count: want a whole number, got 1.5`},
		{"array for an object", `{"inner":[1]}`, `inner: want an object, got an array`},
		{"array at the top", `[1]`, `want an object, got an array`},
		{"string in a list of a map's", `{"inner":{"name":"a"},"many":{"b":{"name":"c","tags":"x"}}}`, `many.b.tags: want an array, got a string`},
		{"number too large", `{"inner":{"name":"a","count":99999999999999999999}}`, `want a whole number, got 9999`},
		{"syntax", "{\"inner\":\n {\"name\": nope}}", `line 2, column 12: invalid character 'o'`},
		{"missing comma", "{\n\"inner\":{\"name\":\"a\"}\n\"any\":1}", `line 3, column 1: invalid character '"'`},
		{"cut, with its place", "{\"inner\":{\"name\":\n\"a", `ends in the middle of a value, at line 2, column 3`},
		{"byte order mark", "\ufeff{}", `byte order mark`},
		{"not UTF-8, with its place", "{\n\"\xff", `not valid UTF-8 at line 2, column 2`},
		{"deep", `{"inner":{"name":"a"},"any":` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + `}`, `nested deeper`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strictOuter
			err := DecodeStrict([]byte(tc.in), &out)
			if tc.fault == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Fatalf("error %v, want one with %q", err, tc.fault)
			}
		})
	}
}

func TestDecodeLooseNamesNoGoType(t *testing.T) {
	var out struct {
		IDs []int64 `json:"ids"`
	}
	if err := DecodeLoose([]byte(`{"IDS":[1],"other":2}`), &out); err != nil || len(out.IDs) != 1 {
		t.Errorf("%v, %v", out, err)
	}
	for in, want := range map[string]string{
		`{"ids":"x"}`:   "ids: want an array, got a string",
		`{"ids":[1.5]}`: "ids: want a whole number, got a number",
		`{"ids":`:       "ends in the middle of a value, at line 1, column 8",
		"{\n\"ids\" 1}": "line 2, column 7",
	} {
		if err := DecodeLoose([]byte(in), &out); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}
