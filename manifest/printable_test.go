package manifest

import "testing"

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"weights/é 日本": "weights/é 日本", "a\x1b[2Jb": `a\x1b[2Jb`, "a\nb\tc": `a\nb\tc`, "\u202egpj": `\u202egpj`, "\xff": "\uFFFD",
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
