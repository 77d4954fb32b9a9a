package image

import (
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
)

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		name, known, more, want string
		disagreements           []string
	}{
		{"nothing known", `{"schema":1}`, clean, clean, nil},
		{"nothing more", clean, `{"schema":1}`, clean, nil},
		{"the same", clean, clean, clean, nil},
		{"a longer version", `{"schema":1,"python":{"version":"3.12"}}`, `{"schema":1,"python":{"version":"3.12.3"}}`, `{"schema":1,"python":{"version":"3.12.3"}}`, nil},
		{"a shorter version", `{"schema":1,"python":{"version":"3.12.3"}}`, `{"schema":1,"python":{"version":"3.12"}}`, `{"schema":1,"python":{"version":"3.12.3"}}`, nil},
		{
			"another version", `{"schema":1,"python":{"version":"3.1"}}`, `{"schema":1,"python":{"version":"3.12"}}`, `{"schema":1,"python":{"version":"3.1"}}`,
			[]string{"python version: 3.1 is known, not 3.12"},
		},
		{
			"parts of a mount", `{"schema":1,"mounts":[{"path":"/tmp","noexec":false}]}`, `{"schema":1,"mounts":[{"path":"/dev/shm","noexec":true},{"path":"/tmp","noexec":true,"bytes":5}]}`,
			`{"schema":1,"mounts":[{"path":"/dev/shm","noexec":true},{"path":"/tmp","noexec":false,"bytes":5}]}`,
			[]string{"mount /tmp noexec: false is known, not true"},
		},
		{
			"distributions", `{"schema":1,"distributions":{"torch":"","numpy":"1.26"},"absent":["accelerate"]}`,
			`{"schema":1,"distributions":{"torch":"2.7","numpy":"2.0","accelerate":"1.0","pillow":""},"absent":["torchvision"]}`,
			`{"schema":1,"distributions":{"numpy":"1.26","pillow":"","torch":"2.7"},"absent":["accelerate","torchvision"]}`,
			[]string{"distribution accelerate: its absence is known, not that it is installed", "version of numpy: 1.26 is known, not 2.0"},
		},
		{
			"an installed one that is absent", `{"schema":1,"distributions":{"torch":""}}`, `{"schema":1,"absent":["torch"]}`, `{"schema":1,"distributions":{"torch":""}}`,
			[]string{"distribution torch: that it is installed is known, not its absence"},
		},
		{
			"more than all", `{"schema":1,"distributions":{"torch":""},"distributions_complete":true}`, `{"schema":1,"distributions":{"numpy":""},"absent":["flask"]}`,
			`{"schema":1,"distributions":{"torch":""},"distributions_complete":true}`,
			[]string{"distribution numpy: its absence is known, not that it is installed"},
		},
		{
			"all, which is less", `{"schema":1,"distributions":{"torch":""}}`, `{"schema":1,"distributions":{"numpy":""},"distributions_complete":true}`,
			`{"schema":1,"distributions":{"numpy":"","torch":""}}`,
			[]string{"distribution torch: that it is installed is known, not its absence"},
		},
		{
			"programs", `{"schema":1,"programs":{"gcc":true}}`, `{"schema":1,"programs":{"gcc":false,"git":true}}`, `{"schema":1,"programs":{"gcc":true,"git":true}}`,
			[]string{"program gcc: true is known, not false"},
		},
		{
			"user and GPU", `{"schema":1,"user":0,"gpu":{"name":"a"}}`, `{"schema":1,"user":5,"gpu":{"name":"b","driver":"550"}}`, `{"schema":1,"user":0,"gpu":{"name":"a","driver":"550"}}`,
			[]string{"user: 0 is known, not 5", "GPU name: a is known, not b"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			known, more := decode(t, c.known), decode(t, c.more)
			before := encode(t, known)
			got, disagreements := Merge(known, more)
			if text, want := encode(t, &got), encode(t, decode(t, c.want)); text != want {
				t.Errorf("got  %s\nwant %s", text, want)
			}
			if !slices.Equal(disagreements, c.disagreements) {
				t.Errorf("disagreements %q\nwant %q", disagreements, c.disagreements)
			}
			if encode(t, known) != before {
				t.Error("what was known was changed in place")
			}
		})
	}
}

func decode(t *testing.T, text string) *Image {
	t.Helper()
	i, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(i.Mounts, func(a, b Mount) int { return strings.Compare(a.Path, b.Path) })
	return i
}

func encode(t *testing.T, i *Image) string {
	t.Helper()
	data, err := manifest.EncodeCanonical(i)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
