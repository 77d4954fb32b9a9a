package scan

import (
	"strings"
	"testing"
)

func TestEncodedText(t *testing.T) {
	hex, words := strings.Repeat("0a", 4096), strings.Repeat("words and more words\n", 1000)
	lines := strings.Repeat(strings.Repeat("0f", 32)+"\n", 128)
	for _, c := range []struct {
		name, text string
		want       int64
	}{
		{"nothing", "", 0},
		{"words", words, 0},
		{"a vocabulary", strings.Repeat("word\n", 10_000), 0},
		{"digests and names", strings.Repeat(strings.Repeat("0f", 32)+"  name\n", 1000), 0},
		{"a run one short", hex[:4095], 0},
		{"a run", hex[:4096], 4096},
		{"hexadecimal in a string", words + `"` + hex + `"`, 8192},
		{"two runs", hex + " " + hex, 16384},
		{"hexadecimal in lines", lines, 8192},
		{"base64", `"` + strings.Repeat("Zz+/", 1024) + `=="`, 4098},
	} {
		for _, piece := range []int{1, 7, len(c.text) + 1} {
			var e encodedText
			for rest := []byte(c.text); len(rest) > 0; rest = rest[min(piece, len(rest)):] {
				e.write(rest[:min(piece, len(rest))])
			}
			if got := e.size(); got != c.want {
				t.Errorf("%s in pieces of %d: %d, want %d", c.name, piece, got, c.want)
			}
		}
	}
}
