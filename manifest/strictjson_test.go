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
		{"wrong type", `{"inner":{"name":7}}`, `cannot unmarshal number`},
		{"fraction", `{"inner":{"name":"a","count":1.5}}`, `cannot unmarshal number 1.5`},
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
