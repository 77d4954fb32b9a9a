package config

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"slipway/manifest"
)

func TestFieldNamesOfAProfile(t *testing.T) {
	folder := fstest.MapFS{
		"grader.image.json":      {Data: []byte(`{"schema":1,"submission":"/submission","absent":["accelerate"]}`)},
		"abacus.questions.jsonl": {Data: []byte("{}\n")},
	}
	for _, tc := range []struct {
		names, fault string
		want         manifest.FieldNames
	}{
		{"", "", nil},
		{"names {\n base_model = \"base\"\n packed_2bit = \"two_bit\"\n}", "", manifest.FieldNames{"base_model": "base", "packed_2bit": "two_bit"}},
		{"names {\n basemodel = \"base\"\n}", `unknown argument "basemodel" in names`, nil},
		{"names {\n codes = \"scales\"\n}", `codes and scales are both spelt "scales"`, nil},
	} {
		source := strings.Replace(shippedSource(t, "practice"), "ternary {", "ternary {\n"+tc.names, 1)
		p, err := ParseProfile([]byte(source), "practice.hcl", folder)
		switch {
		case tc.fault != "":
			if err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("%q: error %v, want %q", tc.names, err, tc.fault)
			}
		case err != nil:
			t.Errorf("%q: %v", tc.names, err)
		case !reflect.DeepEqual(p.Ternary.Names, tc.want):
			t.Errorf("%q: names %v, want %v", tc.names, p.Ternary.Names, tc.want)
		}
	}
}
