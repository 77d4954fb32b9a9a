package report

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/report-json.md has a section for each object of a report's JSON, with a row
// for each of its keys, in their order, and none for another.
func TestJSONIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/report-json.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	surplus := map[string]bool{}
	for _, section := range strings.Split(string(data), "\n## ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		name := strings.Trim(strings.Split(heading, ",")[0], "`")
		if surplus[name] {
			t.Errorf("section %q is there twice", name)
		}
		sections[name], surplus[name] = body, true
	}
	row := regexp.MustCompile("(?m)^\\| (\\*?)`([a-z_]+)`\\*? \\|")
	seen := map[reflect.Type]bool{}
	var look func(of reflect.Type, path string)
	look = func(of reflect.Type, path string) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			if of.Kind() == reflect.Slice {
				path += "[]"
			}
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] || of.PkgPath() != reflect.TypeFor[Report]().PkgPath() {
			return
		}
		seen[of] = true
		delete(surplus, path)
		var want, got []string
		prefix := path + "."
		if path == "The report" {
			prefix = ""
		}
		for i := range of.NumField() {
			name, options, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			if options == "omitempty" {
				want = append(want, "*"+name)
			} else {
				want = append(want, name)
			}
			look(of.Field(i).Type, prefix+name)
		}
		for _, match := range row.FindAllStringSubmatch(sections[path], -1) {
			got = append(got, match[1]+match[2])
		}
		if !slices.Equal(got, want) {
			t.Errorf("section %q documents\n%q\nthe keys are\n%q", path, got, want)
		}
	}
	look(reflect.TypeFor[Report](), "The report")
	delete(surplus, "weights audit --json") // internal/cli looks at it
	for name := range surplus {
		t.Errorf("section %q documents no object", name)
	}
}
