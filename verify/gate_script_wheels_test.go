package verify

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/report"
)

// The options of a program that a wheel brings are read from the wheel.
func TestScriptReadsWheels(t *testing.T) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, member := range [][2]string{
		{"tinyserver/__main__.py", "from .cli import main\nmain()\n"},
		{"tinyserver/cli.py", strings.ReplaceAll(argparseServer, "parser.parse_args()", "def main():\n    parser.parse_args()")},
		{"tinyserver-1.0.dist-info/entry_points.txt", "[console_scripts]\ntinyserve = tinyserver.cli:main\n"},
	} {
		f, err := w.Create(member[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(member[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"exec python3 -u -m tinyserver --port 8000": "",
		"exec python3 -u -m tinyserver --prot 8000": "wheels/tinyserver-1.0-py3-none-any.whl: tinyserver/cli.py: unrecognized arguments: --prot",
		"exec tinyserve --port 8000 --bogus":        "unrecognized arguments: --bogus",
	} {
		f := newFixture()
		f.files["serve.sh"] = []byte("#!/bin/sh\ncd \"$(dirname \"$0\")\" || exit 1\npip install --no-index --find-links wheels --target /tmp/p tinyserver\nexport PYTHONPATH=/tmp/p\n" + line + "\n")
		f.files["wheels/tinyserver-1.0-py3-none-any.whl"] = archive.Bytes()
		g, _ := run(t, f.write(t), Options{Profile: toyProfile()}).Gate("script")
		found := ""
		for _, finding := range g.Findings {
			found += finding.Problem + "\n"
		}
		if (g.Status == report.Fail) != (want != "") || !strings.Contains(found, want) {
			t.Errorf("%s: %s %q", line, g.Status, found)
		}
	}
	// In an artifact a wheel can only be read from start to end.
	file := content.TreeFile{File: manifest.File{Path: "w.whl", Size: int64(archive.Len())}}
	for name, source := range map[string]io.Reader{"anywhere": bytes.NewReader(archive.Bytes()), "in order": iotest.HalfReader(bytes.NewReader(archive.Bytes()))} {
		if read, err := readStartedOf(source, file, map[string]bool{"tinyserve": true}); err != nil || len(read.Sources) != 1 || len(read.Scripts) != 1 {
			t.Errorf("%s: %v: %v", name, err, read.Scripts)
		}
	}
}
