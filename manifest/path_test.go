package manifest

import (
	"strings"
	"testing"
)

func TestCheckPath(t *testing.T) {
	for _, tc := range []struct{ path, fault string }{
		{"a", ""}, {"weights/model-00001-of-00002.safetensors", ""}, {"é/日本", ""}, {".hidden", ""}, {"a..b/c", ""},
		{"", "is empty"},
		{"/etc/passwd", "is absolute"},
		{"../x", "contains '..'"}, {"a/../b", "contains '..'"}, {"a/..", "contains '..'"},
		{"./a", "shortest form"}, {"a//b", "shortest form"}, {"a/", "shortest form"}, {".", "shortest form"},
		{`a\b`, "backslash"}, {"C:x", "colon"}, {"a\nb", "control character"}, {"a\x7fb", "control character"}, {"a\x00", "control character"},
		{"a. /b", "ends in a dot or a space"}, {"a./b", "ends in a dot or a space"}, {"b ", "ends in a dot or a space"},
		{"e\u0301", "Unicode form NFC"}, {"a\xff", "not valid UTF-8"},
		{strings.Repeat("n", 256), "name longer than 255"}, {strings.Repeat("n/", 600) + "x", "longer than 1024"},
	} {
		err := CheckPath(tc.path)
		if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
			t.Errorf("%q: error %v, want %q", tc.path, err, tc.fault)
		}
	}
}

func TestCheckPaths(t *testing.T) {
	for _, tc := range []struct {
		name  string
		paths []string
		fault string
	}{
		{"clean", []string{"b", "a/b", "a/c", "A2"}, ""},
		{"twice", []string{"a", "a"}, "given twice"},
		{"case twins", []string{"weights/A", "weights/a"}, "differ only in case"},
		{"folder case twins", []string{"Weights/a", "weights/b"}, "differ only in case"},
		{"sharp s", []string{"STRASSE", "straße"}, ""}, // no file system we know folds these
		{"sigma", []string{"σ", "ς"}, "differ only in case"},
		{"normal form twins", []string{"\u00e9", "e\u0301"}, "differ only in case or Unicode form"},
		{"file and folder", []string{"a", "a/b"}, `needs a folder where "a" is a file`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var all []string
			for _, err := range CheckPaths(tc.paths) {
				all = append(all, err.Error())
			}
			text := strings.Join(all, "\n")
			if tc.fault == "" && text != "" || !strings.Contains(text, tc.fault) {
				t.Fatalf("faults %q, want %q", text, tc.fault)
			}
		})
	}
}

func FuzzCheckPath(f *testing.F) {
	f.Add("weights/a.safetensors")
	f.Add("../x")
	f.Add("a\x00b")
	f.Fuzz(func(t *testing.T, p string) {
		if CheckPath(p) != nil {
			return
		}
		for _, bad := range []string{"..", ".", ""} {
			for _, segment := range strings.Split(p, "/") {
				if segment == bad {
					t.Fatalf("accepted %q", p)
				}
			}
		}
		if strings.ContainsAny(p, "\\:\x00\n") || p[0] == '/' {
			t.Fatalf("accepted %q", p)
		}
	})
}
