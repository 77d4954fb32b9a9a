package config

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"slipway/verify/profiles"
)

// TestProfileDocumentation holds docs/profile.md against what a profile takes:
// each block's heading is followed by all of its arguments, and by no others.
func TestProfileDocumentation(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "profile.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(page), "\n## ") {
		kind, _, _ := strings.Cut(section, " ")
		sections[strings.TrimSuffix(kind, ",")] = section
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")
	for _, kind := range []string{"profile", "base", "required", "ternary", "load", "device", "quality"} {
		documented := map[string]bool{}
		for _, match := range row.FindAllStringSubmatch(sections[kind], -1) {
			documented[match[1]] = true
		}
		taken := argumentsOf(t, kind)
		for _, name := range taken {
			if !documented[name] {
				t.Errorf("argument %s of %s has no row", name, kind)
			}
			delete(documented, name)
		}
		for name := range documented {
			t.Errorf("argument %s of %s has a row, and is not taken", name, kind)
		}
	}
	for _, name := range argumentsOf(t, "names") {
		if !strings.Contains(sections["ternary"], "`"+name+"`") {
			t.Errorf("name %s is not listed", name)
		}
	}
	for _, name := range profiles.Names() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("profile %s is not named", name)
		}
	}
}

// argumentsOf are the names that the problem with an unknown argument lists.
func argumentsOf(t *testing.T, kind string) []string {
	t.Helper()
	const unknown = "  unknown_argument_of_this_block = 1\n"
	text := "schema = 1\n" + kind + ` "x"` + " {\n" + unknown + "}\n"
	switch kind {
	case "ternary", "load", "quality":
		text = strings.Replace(text, ` "x"`, "", 1)
	case "names":
		text = "schema = 1\nternary {\nnames {\n" + unknown + "}\n}\n"
	}
	_, err := ParseProfile([]byte(text), "x.hcl", fstest.MapFS{})
	var diagnostics *Diagnostics
	if !errors.As(err, &diagnostics) {
		t.Fatalf("%s: an unknown argument is taken: %v", kind, err)
	}
	for _, problem := range diagnostics.Problems {
		if _, names, listed := strings.Cut(problem.Detail, "expected here: "); listed && strings.Contains(problem.Summary, "unknown_argument") {
			return strings.Split(names, ", ")
		}
	}
	t.Fatalf("%s: no argument is listed:\n%v", kind, err)
	return nil
}
