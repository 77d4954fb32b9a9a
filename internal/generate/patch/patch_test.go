package patch

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func files(content map[string]string, links map[string]string) Files {
	f := Files{Content: map[string][]byte{}, Links: links}
	for p, data := range content {
		f.Content[p] = []byte(data)
	}
	return f.Clone()
}

func TestApplyInvertsDiff(t *testing.T) {
	binary := "\x00" + strings.Repeat("abcdefgh", 400)
	long := strings.Repeat(" \"y\": 1,\n", 9)
	clean := files(map[string]string{"a.json": "{\n \"x\": 1,\n" + long + "}\n", "b": binary, "c.txt": "one\n"}, nil)
	for _, tc := range []struct {
		name    string
		content map[string]string
		links   map[string]string
		ways    string // in order
	}{
		{"nothing", map[string]string{}, nil, ""},
		{"a line", map[string]string{"a.json": "{\n \"x\": 2,\n" + long + "}\n"}, nil, "replace"},
		{"a line is gone", map[string]string{"a.json": "{\n" + long + "}\n"}, nil, "replace"},
		{"no last newline", map[string]string{"c.txt": "one"}, nil, "bytes"},
		{"a byte", map[string]string{"b": strings.Replace(binary, "a", "A", 1)}, nil, "write"},
		{"all bytes", map[string]string{"b": strings.ReplaceAll(binary, "abcdefgh", "abc12345")}, nil, "bytes"},
		{"another length", map[string]string{"b": binary + "x"}, nil, "bytes"},
		{"new text", map[string]string{"d.txt": "-- not an edit\n", "e.txt": "e\n"}, nil, "bytes text"},
		{"empty", map[string]string{"c.txt": ""}, nil, "replace"},
		{"links", map[string]string{}, map[string]string{"l": "c.txt", "m": "."}, "link link"},
		{"removed", map[string]string{"c.txt": "\x00gone"}, nil, "remove"},
	} {
		want := clean.Clone()
		for p, data := range tc.content {
			if want.Content[p] = []byte(data); data == "\x00gone" {
				delete(want.Content, p)
			}
		}
		maps.Copy(want.Links, tc.links)
		text := Diff(clean, want)
		got, err := Apply(clean, text)
		if err != nil || !reflect.DeepEqual(got.Links, want.Links) || !equal(got, want) {
			t.Errorf("%s: %v\n%s", tc.name, err, text)
		}
		var ways []string
		for line := range strings.Lines(text) {
			if inner, ok := strings.CutSuffix(line, " --\n"); ok && strings.HasPrefix(line, "-- ") {
				ways = append(ways, inner[strings.LastIndex(inner, " ")+1:])
			}
		}
		if got := strings.Join(ways, " "); got != tc.ways {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.ways)
		}
	}
}

func equal(a, b Files) bool {
	if len(a.Content) != len(b.Content) {
		return false
	}
	for p, data := range a.Content {
		if other, there := b.Content[p]; !there || string(other) != string(data) {
			return false
		}
	}
	return true
}

func TestRandomFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func() string {
		data := make([]byte, r.IntN(60))
		for i := range data {
			data[i] = "ab\n=>-\x00 "[r.IntN(8)]
		}
		return string(data)
	}
	for range 500 {
		clean := files(map[string]string{"a": some(), "b": some()}, nil)
		want := files(map[string]string{"a": some(), "c": some()}, nil)
		text := Diff(clean, want)
		got, err := Apply(clean, text)
		if err != nil || !equal(got, want) {
			t.Fatalf("%v: %q of %q:\n%s", err, want.Content, clean.Content, text)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	clean := files(map[string]string{"a": "one\none\n"}, nil)
	for _, edits := range []string{
		"text\n", "-- a --\n", "-- a: shout --\n", "-- b: remove --\n", "-- a: write --\nx 00\n", "-- a: write --\n0 0\n", "-- a: write --\n7 0000\n",
		"-- a: replace --\none\n=>\ntwo\n", "-- a: replace --\none\n", "-- a: bytes --\n!\n", "-- a: bytes --\nAAAA\n",
	} {
		if _, err := Apply(clean, edits); err == nil {
			t.Errorf("%q is applied", edits)
		}
	}
}
