package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with testdata/NAME, or rewrites it under -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		writeFiles(t, "testdata", []string{name}, got)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run go test -update and read the diff):\n%s", file, got)
	}
}

// faults holds one change of the whole bundle for each fault.
var faults = []struct{ name, old, new string }{
	{"misspelt-argument", "  manifest ", "  manifets "},
	{"unknown-argument", "  contract  ", "  checksum  "},
	{"misspelt-block", "\nserve {", "\nsevre {"},
	{"unknown-block-inside", "port           = 9000", "limits {\n  }"},
	{"block-as-argument", "\nserve {\n", "\nserve = {\n"},
	{"argument-as-block", `profile = "ternary-chat"`, "profile {\n  }"},
	{"several", `thinking       = "on"`, "thinkin        = \"on\"\n  port_number = 3"},
	{"one-line-block", "\nruntime \"native\" {\n  device = \"cpu\"\n}", "\nserve { port = 8000  model = \"qwen\" }"},
	{"no-version", "slipway = 1\n", ""},
	{"other-version", "slipway = 1\n", "slipway = 2\n"},
	{"text-version", "slipway = 1\n", "slipway = \"1\"\n"},
	{"no-bundle", "bundle \"qwen-ternary\" {\n  profile = \"ternary-chat\"\n}\n", ""},
	{"two-bundles", "base \"language\" {", "bundle \"b\" {\n  profile = \"practice\"\n}\nbase \"language\" {"},
	{"bundle-name", `"qwen-ternary"`, `"qwen ternary"`},
	{"bundle-no-label", `bundle "qwen-ternary"`, "bundle"},
	{"serve-label", "serve {", `serve "x" {`},
	{"misspelt-profile", `"ternary-chat"`, `"ternery-chat"`},
	{"no-profile", "  profile = \"ternary-chat\"\n", ""},
	{"unknown-base", `base           = "language"`, `base           = "langauge"`},
	{"duplicate-base", "weights \"language\"", "base \"language\" {\n  repository = \"a/b\"\n  revision = \"851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a\"\n}\nweights \"language\""},
	{"repository", `"Qwen/Qwen3.5-4B"`, `"https://huggingface.co/Qwen/Qwen3.5-4B"`},
	{"short-revision", `"851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a"`, `"main"`},
	{"path-up", `from           = "weights"`, `from           = "../weights"`},
	{"path-absolute", `data = "DATA.md"`, `data = "/etc/passwd"`},
	{"path-backslash", `from    = "code"`, `from    = "code\\src"`},
	{"path-not-shortest", `from    = "code"`, `from    = "./code/"`},
	{"target-up", `files "code"`, `files "../code"`},
	{"glob", `["old/**"]`, `["old/[a-"]`},
	{"glob-up", `["old/**"]`, `["../**"]`},
	{"no-from", "  from           = \"weights\"\n", ""},
	{"empty-from", `from           = "weights"`, `from           = ""`},
	{"pack-word", `"keep"`, `"kept"`},
	{"shard-size", `"4GiB"`, `"4gigs"`},
	{"shard-number", `"4GiB"`, `4294967296`},
	{"flag", `drop_tied_head = true`, `drop_tied_head = "true"`},
	{"port", `9000`, `65536`},
	{"port-fraction", `9000`, `80.5`},
	{"thinking", `"on"`, `"maybe"`},
	{"reference", `model          = "qwen"`, `model          = "${name}"`},
	{"expression", `port           = 9000`, `port           = 8000 + 1000`},
	{"null", `model          = "qwen"`, `model          = null`},
	{"logs-text", `["provenance/*.log"]`, `"provenance/*.log"`},
	{"proof", `contract   = "contract.json"`, `proof      = "provenance/base.json"`},
	{"wheels", "serve {", "wheels {\n  lock = \"pylock.toml\"\n  pyhton = \"3.12\"\n}\nserve {"},
	{"python", "runtime \"native\" {\n  device = \"cpu\"", "runtime \"python\" {\n  command = [\"python3\", \"--weights\", \"${submission}/weights\"]"},
	{"runtime-kind", `runtime "native"`, `runtime "nativ"`},
	{"devices-of-cpu", "  device = \"cpu\"\n", "  device = \"cpu\"\n  devices = [0]\n"},
	{"devices-no-list", "  device = \"cpu\"\n", "  devices = 0\n"},
	{"devices-range", "  device = \"cpu\"\n", "  devices = [0, 64]\n"},
	{"selftest-text", "  device = \"cpu\"\n", "  selftest = \"no\"\n"},
	{"twice", `port           = 9000`, "port = 1\n  port = 2"},
	{"not-hcl", "weights \"language\" {", "weights \"language\" ["},
	{"control-in-line", `model          = "qwen"`, "modle = \"\x1b[31m\""},
}

// Every fault has a golden text and a clean twin: the bundle without it.
func TestFaults(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			if strings.Count(whole, fault.old) == 0 {
				t.Fatalf("%q is not part of the bundle", fault.old)
			}
			_, err := ParseBundle([]byte(strings.Replace(whole, fault.old, fault.new, 1)), "bundle.hcl")
			var problems *Diagnostics
			if !errors.As(err, &problems) || len(problems.Problems) == 0 {
				t.Fatalf("got %v", err)
			}
			golden(t, "faults/"+fault.name+".txt", err.Error()+"\n")
			if strings.ContainsRune(err.Error(), '\x1b') {
				t.Error("an escape sequence reached the message")
			}
		})
	}
}

func TestManyProblemsAreCut(t *testing.T) {
	_, err := ParseBundle([]byte(whole+strings.Repeat("oops {\n}\n", maxShown+5)), "bundle.hcl")
	var problems *Diagnostics
	if !errors.As(err, &problems) || len(problems.Problems) != maxShown+5 || !strings.HasSuffix(err.Error(), "\n\nand 5 more") {
		t.Errorf("got %v", err)
	}
}

func TestEditDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"manifets", "manifest", 1}, {"From", "from", 0}, {"port", "ports", 1}, {"kitten", "sitting", 3}} {
		if got := editDistance(test.a, test.b); got != test.want {
			t.Errorf("%q, %q: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

// A bracket a byte is the deepest nesting that a file can ask of the parser.
func TestDeepNesting(t *testing.T) {
	for _, open := range []string{"[", "{", "(", "!", "-", "a {\n", "\"${", "a ? ", "a ? a : ", "f(", "for a in ", "\"%{if a}", "a+", "a.", "a[*]", "!]", "${}"} {
		text := "x = " + strings.Repeat(open, (maxSourceBytes-4)/len(open))
		if _, err := ParseBundle([]byte(text), "bundle.hcl"); err == nil {
			t.Errorf("%q: no error", open)
		}
	}
	_, err := ParseBundle(make([]byte, maxSourceBytes+1), "bundle.hcl")
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("large file: %v", err)
	}
}

func FuzzParseBundle(f *testing.F) {
	f.Add([]byte(whole))
	for _, fault := range faults {
		f.Add([]byte(strings.Replace(whole, fault.old, fault.new, 1)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ParseBundle(data, "bundle.hcl")
		if (b == nil) == (err == nil) {
			t.Fatalf("bundle %v, error %v", b, err)
		}
		if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r != '\n' && r != '\t' && isControl(r) }) {
			t.Fatalf("control character in %q", err)
		}
	})
}
