package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// filesBelow reads the files below a folder, by path.
func filesBelow(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(p string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[p], err = os.ReadFile(filepath.Join(folder, p))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// faultySubmission is the example with a fault for each of several gates, so that
// there are findings to be put in order.
func faultySubmission(t *testing.T) map[string][]byte {
	t.Helper()
	files := filesBelow(t, "../../examples/abacus/ternary")
	delete(files, "bundle.hcl")
	for _, at := range []int{1 << 19, 1 << 20, 5 << 18, 1403639} { // codes of several tensors
		files["ternary-00001.safetensors"][at] = 0xff
	}
	for _, p := range []string{"b.gguf", "a.npz", "code/z.pt", "code/a.pt", "wheels/x.whl", "Z.log", "z.log"} {
		files[p] = []byte("PK\x03\x04" + p)
	}
	files["code/fetch.py"] = []byte("token = \"hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH\"\nload_dataset(\"Idavidrein/gpqa\")\n")
	files["serve.sh"] = []byte("#!/bin/sh\nexec python3 code/absent.py --port 8000\n")
	return files
}

// writeInOrder writes files one after the other: a folder lists them as they came.
func writeInOrder(t *testing.T, root string, files map[string][]byte, paths []string) {
	t.Helper()
	for _, p := range paths {
		full := filepath.Join(root, p)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, files[p], 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// What --json prints of a submission is the same, byte for byte, however often it is
// asked, in what order its files were written, on how many cores, and from where.
func TestJSONIsTheSameByteForByte(t *testing.T) {
	files := faultySubmission(t)
	var paths []string
	for p := range files {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	one, other := filepath.Join(t.TempDir(), "submission"), filepath.Join(t.TempDir(), "elsewhere", "another name")
	writeInOrder(t, one, files, paths)
	slices.Reverse(paths)
	writeInOrder(t, other, files, paths)
	asked := func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := Run(t.Context(), Environment{Args: args, Stdout: &stdout, Stderr: &stderr}); code != ExitFindings {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, &stdout, &stderr)
		}
		return stdout.String()
	}
	cores := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(cores) })
	for _, command := range [][]string{{"verify", "--profile", "practice", "--json"}, {"weights", "audit", "--profile", "practice", "--json"}} {
		t.Chdir(t.TempDir())
		runtime.GOMAXPROCS(1)
		first := asked(append(slices.Clone(command), one)...)
		for _, run := range []struct {
			what  string
			cores int
			from  string
			name  string
		}{
			{"again", 1, ".", one},
			{"on four cores", 4, ".", one},
			{"of files that were written in another order, in another place", 2, ".", other},
			{"from within it", 4, other, "."},
			{"from beside it, by a path with a step back", 4, filepath.Dir(other), "../elsewhere/another name/"},
		} {
			t.Chdir(run.from)
			runtime.GOMAXPROCS(run.cores)
			if got := asked(append(slices.Clone(command), run.name)...); got != first {
				t.Errorf("%s %s:\n%s\nat first\n%s", command[0], run.what, got, first)
			}
		}
	}
}

// docs/report-json.md has the keys that rehearse has beside a report, in their order.
func TestRehearsedJSONIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/report-json.md")
	if err != nil {
		t.Fatal(err)
	}
	section, _, _ := strings.Cut(string(data), "\n## The report\n")
	var want, got []string
	for i := range reflect.TypeFor[rehearsed]().NumField() {
		key, _, _ := strings.Cut(reflect.TypeFor[rehearsed]().Field(i).Tag.Get("json"), ",")
		want = append(want, key)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(section, -1) {
		got = append(got, row[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("documented: %q, the keys are %q", got, want)
	}
}

// docs/report-json.md has the keys that audit adds to those of a report.
func TestAuditJSONIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/report-json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## `weights audit --json`\n")
	for _, of := range []reflect.Type{reflect.TypeFor[audit](), reflect.TypeFor[layerAudit]()} {
		for i := range of.NumField() {
			key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(section, "`"+key+"`") {
				t.Errorf("%s of %s is not there", key, of.Name())
			}
		}
	}
}
