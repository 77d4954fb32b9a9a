package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"slipway/manifest"
)

// whole is a bundle with every argument that is built.
const whole = `slipway = 1
bundle "qwen-ternary" {
  profile = "ternary-chat"
}
base "language" {
  repository = "Qwen/Qwen3.5-4B"
  revision   = "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a"
  contract   = "contract.json"
}
weights "language" {
  base           = "language"
  from           = "weights"
  manifest       = "quantization_manifest.json"
  pack           = "keep"
  drop_tied_head = true
  max_shard      = "4GiB"
}
files "code" {
  from    = "code"
  include = ["**/*.py"]
  exclude = ["old/**"]
}
files "" {
  from = "."
}
runtime "native" {
  device = "cpu"
}
serve {
  port           = 9000
  model          = "qwen"
  thinking       = "on"
  answer_reserve = 256
}
provenance {
  data = "DATA.md"
  logs = ["provenance/*.log"]
}
`

func at(line, column int) Position { return Position{"bundle.hcl", line, column} }

func TestParseWhole(t *testing.T) {
	got, err := ParseBundle([]byte(whole), "bundle.hcl")
	if err != nil {
		t.Fatal(err)
	}
	want := &Bundle{
		Folder:  ".",
		Name:    Argument[string]{"qwen-ternary", at(2, 8)},
		Profile: Argument[string]{"ternary-chat", at(3, 3)},
		Bases: []Base{{
			Label: "language", At: at(5, 1),
			Repository: Argument[string]{"Qwen/Qwen3.5-4B", at(6, 3)},
			Revision:   Argument[string]{"851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a", at(7, 3)},
			Contract:   Argument[string]{"contract.json", at(8, 3)},
		}},
		Weights: []Weights{{
			Label: "language", At: at(10, 1),
			Base: Argument[string]{"language", at(11, 3)}, From: Argument[string]{"weights", at(12, 3)},
			Manifest: Argument[string]{"weights/quantization_manifest.json", at(13, 3)},
			Pack:     Argument[string]{"keep", at(14, 3)}, DropTiedHead: Argument[bool]{true, at(15, 3)},
			MaxShard: Argument[int64]{4 << 30, at(16, 3)},
		}},
		Files: []Files{{
			Target: "code", At: at(18, 1), From: Argument[string]{"code", at(19, 3)},
			Include: Argument[[]string]{[]string{"**/*.py"}, at(20, 3)}, Exclude: Argument[[]string]{[]string{"old/**"}, at(21, 3)},
		}, {
			Target: ".", At: at(23, 1), From: Argument[string]{".", at(24, 3)},
			Include: Argument[[]string]{[]string{"**"}, at(23, 1)}, Exclude: Argument[[]string]{nil, at(23, 1)},
		}},
		Runtime: &Runtime{Kind: "native", At: at(26, 1), Device: Argument[string]{"cpu", at(27, 3)}, Devices: Argument[[]int64]{nil, at(26, 1)}, Selftest: Argument[*bool]{nil, at(26, 1)}},
		Serve: Serve{
			At: at(29, 1), Port: Argument[int64]{9000, at(30, 3)}, Model: Argument[string]{"qwen", at(31, 3)},
			Thinking: Argument[string]{"on", at(32, 3)}, AnswerReserve: Argument[int64]{256, at(33, 3)},
		},
		Provenance: Provenance{
			At: at(35, 1), Data: Argument[string]{"DATA.md", at(36, 3)}, Logs: Argument[[]string]{[]string{"provenance/*.log"}, at(37, 3)},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestParseDefaults(t *testing.T) {
	b, err := ParseBundle([]byte("slipway = 1\nbundle \"a\" {\n profile = \"practice\"\n}\nweights \"w\" {\n from = \".\"\n}\n"), "x/bundle.hcl")
	if err != nil {
		t.Fatal(err)
	}
	w := b.Weights[0]
	switch {
	case b.Folder != "x", w.Pack.Value != "keep", w.DropTiedHead.Value, w.MaxShard.Value != 0, w.Manifest.Value != "", w.Base.Value != "":
		t.Errorf("weights %+v in %q", w, b.Folder)
	case b.Serve.Port.Value != 8000, b.Serve.Model.Value != "a", b.Serve.Thinking.Value != "off", b.Serve.AnswerReserve.Value != 512:
		t.Errorf("serve %+v", b.Serve)
	case b.Runtime != nil, b.Provenance.Data.Value != "":
		t.Errorf("runtime %+v, provenance %+v", b.Runtime, b.Provenance)
	case b.ProfileSource() != "practice":
		t.Errorf("profile %q", b.ProfileSource())
	}
}

func TestLoadBundleOfTheRepository(t *testing.T) {
	b, err := LoadBundle("../../bundle.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Weights[0].Manifest.Value; got != "examples/abacus/ternary/quantization_manifest.json" {
		t.Errorf("manifest %q", got)
	}
}

func TestLoadBundleAbsent(t *testing.T) {
	_, err := LoadBundle(filepath.Join(t.TempDir(), "bundle.hcl"))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(manifest.Hint(err), "slipway init") {
		t.Errorf("%v; hint %q", err, manifest.Hint(err))
	}
}

// A manifest and a profile file are the two paths that are looked up.
func TestFilesBeside(t *testing.T) {
	const text = "slipway = 1\nbundle \"a\" {\n profile = \"tasks/own.hcl\"\n}\nweights \"w\" {\n from = \"weights\"\n manifest = \"q.json\"\n}\n"
	for _, test := range []struct {
		name   string
		files  []string
		want   string
		failed string
	}{
		{"beside the shards", []string{"tasks/own.hcl", "weights/q.json"}, "weights/q.json", ""},
		{"at the root", []string{"tasks/own.hcl", "q.json"}, "q.json", ""},
		{"nowhere", []string{"tasks/own.hcl"}, "weights/q.json", ""},
		{"twice", []string{"tasks/own.hcl", "q.json", "weights/q.json"}, "", `"q.json" stands in "weights" and beside this file; remove one`},
		{"no profile", nil, "", `profile "tasks/own.hcl" is not a file beside this one; shipped profiles: drafter, practice`},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, test.files, "")
			b, err := ParseBundle([]byte(text), filepath.Join(dir, "bundle.hcl"))
			if test.failed != "" {
				if err == nil || !strings.Contains(err.Error(), test.failed) {
					t.Fatalf("got %v, want %q", err, test.failed)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if b.Weights[0].Manifest.Value != test.want || b.ProfileSource() != filepath.Join(dir, "tasks", "own.hcl") {
				t.Errorf("manifest %q, profile %q", b.Weights[0].Manifest.Value, b.ProfileSource())
			}
		})
	}
}

// writeFiles makes files of one content, with their folders.
func writeFiles(t *testing.T, dir string, names []string, content string) {
	t.Helper()
	for _, name := range names {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "7B": 7, "12 bytes": 12, "4GiB": 4 << 30, "3MiB": 3 << 20, "2KiB": 2048, "5GB": 5e9, "6 MB": 6e6, "9KB": 9000,
		"": 0, "0": 0, "GiB": 0, "-1": 0, "4gib": 0, "4 GiB ": 0, "1.5GiB": 0, "4  GiB": 0, "9223372036854775807KiB": 0, "99999999999999999999": 0,
	} {
		got, err := ParseSize(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestMatchGlob(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"**", "a/b/c", true}, {"*", "a", true}, {"*", "a/b", false}, {"**/*.py", "x.py", true}, {"**/*.py", "a/b/x.py", true},
		{"**/*.py", "a/x.pyc", false}, {"a/**", "a/b/c", true}, {"a/**", "b/a", false}, {"a/**/z", "a/z", true}, {"a/**/z", "a/b/c/z", true},
		{"a/**/z", "a/b/c", false}, {"provenance/*.log", "provenance/x.log", true}, {"provenance/*.log", "provenance/a/x.log", false},
		{"[ab]?", "bz", true}, {"**/**/q", "q", true},
	} {
		if got := MatchGlob(test.pattern, test.name); got != test.want {
			t.Errorf("%s on %s: %v", test.pattern, test.name, got)
		}
	}
	f := Files{Include: Argument[[]string]{Value: []string{"**"}}, Exclude: Argument[[]string]{Value: []string{"**/*.pyc"}}}
	if !f.Selects("a/b.py") || f.Selects("a/b.pyc") {
		t.Error("Selects does not exclude")
	}
}

func TestDevices(t *testing.T) {
	for written, want := range map[string]string{
		"":                                     "cuda [0] <nil>",
		"  device = \"cpu\"\n":                 "cpu [] <nil>",
		"  devices = [0, 0]\n":                 "cuda [0 0] <nil>",
		"  devices = [1]\n  selftest = true\n": "cuda [1] true",
		"  selftest = false\n":                 "cuda [0] false",
	} {
		b, err := ParseBundle([]byte(strings.Replace(whole, "  device = \"cpu\"\n", written, 1)), "bundle.hcl")
		if err != nil {
			t.Errorf("%q: %v", written, err)
			continue
		}
		selftest := "<nil>"
		if v := b.Runtime.Selftest.Value; v != nil {
			selftest = fmt.Sprint(*v)
		}
		if got := fmt.Sprintf("%s %v %s", b.Runtime.Device.Value, b.Runtime.Devices.Value, selftest); got != want {
			t.Errorf("%q gives %s, want %s", written, got, want)
		}
	}
}
