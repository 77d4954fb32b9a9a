package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/internal/generate/patch"
	"slipway/manifest"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

const vectorFolder = "testdata/vectors"

// readFiles reads all files below a folder.
func readFiles(t *testing.T, folder string) patch.Files {
	t.Helper()
	files := patch.Files{Content: map[string][]byte{}}
	err := filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		files.Content[filepath.ToSlash(relative)], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// writeFiles writes a set below a new folder.
func writeFiles(t *testing.T, files patch.Files) string {
	t.Helper()
	root := t.TempDir()
	at := func(p string) string {
		full := filepath.Join(root, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		return full
	}
	for p, data := range files.Content {
		if err := os.WriteFile(at(p), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for p, target := range files.Links {
		if err := os.Symlink(target, at(p)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// vectorFile is a vector as it is committed: a header of "name: value" lines, a
// blank line, the edits that make the fault, and those that make the twin.
type vectorFile struct {
	header       map[string]string
	fault, clean string
}

func readVector(t *testing.T, name string) vectorFile {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, body, ok := strings.Cut(string(data), "\n\n")
	fault, twin, both := strings.Cut(body, "== twin ==\n")
	if !ok || !both {
		t.Fatalf("%s has no header, or no twin", name)
	}
	v := vectorFile{map[string]string{}, fault, twin}
	for line := range strings.Lines(head + "\n") {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		v.header[key] = strings.TrimSpace(value)
	}
	return v
}

// vectorOptions are those that a vector's header asks for.
func vectorOptions(t *testing.T, header map[string]string, contract *manifest.Contract) Options {
	t.Helper()
	p := profiles.Profile{
		Name: "vectors", VisionMTP: profiles.MayOmit,
		Bases:   []profiles.Base{{Label: "language", Repository: contract.Repository, Revision: contract.Revision, Contract: contract}},
		Gates:   []string{"paths", "digests", "files", "declared", "size", "safetensors", "index", "coverage", "ternary", "stored"},
		Ternary: &profiles.Ternary{Counting: report.CountObserved, GroupMinimum: 32, Unreferenced: profiles.CountUnreferenced},
	}
	if asked := header["asks"]; asked != "" {
		p.Gates = append(p.Gates, asked)
	}
	// One of the toy's tensors is a sixteenth of it: the bounds are wide, so that
	// its fault is not the fraction's too.
	p.Ternary.FractionAbove, p.Ternary.StoredAtMost = profiles.Ratio{Numerator: 50, Denominator: 100}, profiles.Ratio{Numerator: 15, Denominator: 10}
	switch header["rules"] {
	case "":
	case "any group":
		p.Ternary.GroupMinimum, p.Ternary.FractionAbove = 1, profiles.Ratio{Numerator: 96, Denominator: 100}
	case "no spare tensors":
		p.Ternary.Unreferenced = profiles.ForbidUnreferenced
	case "task bounds":
		p.Ternary.FractionAbove, p.Ternary.StoredAtMost = profiles.Ratio{Numerator: 95, Denominator: 100}, profiles.Ratio{Numerator: 11, Denominator: 10}
	default:
		t.Fatalf("unknown rules %q", header["rules"])
	}
	o := Options{Profile: p, Workers: 2}
	if header["base"] != "" {
		o.Base = openFolder(t, filepath.Join(vectorFolder, "base"))
	}
	return o
}

func vectorContract(t *testing.T) *manifest.Contract {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(vectorFolder, "contract.json"))
	if err != nil {
		t.Fatal(err)
	}
	contract, err := manifest.DecodeContract(data)
	if err != nil {
		t.Fatal(err)
	}
	return &contract
}

// Every committed vector fires exactly its gate, which names the fault's place,
// under all counting rules that it lists; its twin passes under each of them.
func TestVectorFiles(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(vectorFolder, "*.vector"))
	if err != nil || len(names) < 100 {
		t.Fatalf("%d vectors: %v", len(names), err)
	}
	clean, contract := readFiles(t, filepath.Join(vectorFolder, "clean")), vectorContract(t)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".vector"), func(t *testing.T) {
			v := readVector(t, name)
			options := vectorOptions(t, v.header, contract)
			write := func(edits string) string {
				files, err := patch.Apply(clean, edits)
				if err != nil {
					t.Fatal(err)
				}
				root := writeFiles(t, files)
				if entries, err := os.ReadDir(root); err == nil && len(files.Links) == 0 && len(entries) != topLevel(files) {
					t.Skip("this file system takes two of the names for one")
				}
				return root
			}
			fault, twin := write(v.fault), write(v.clean)
			for counting := range strings.SplitSeq(v.header["counts"], ", ") {
				rules := *options.Profile.Ternary
				rules.Counting = counting
				options.Profile.Ternary = &rules
				found := run(t, fault, options)
				v.judge(t, found)
				again := options
				again.Workers = 1
				if text := reportJSON(t, found); text != reportJSON(t, run(t, fault, again)) {
					t.Errorf("%s: verified again, the report differs from\n%s", counting, text)
				}
				if r := run(t, twin, options); r.Err() != nil {
					t.Errorf("%s: the twin, %s: %v\n%s", counting, v.header["twin"], r.Err(), text(t, r))
				} else if found := allFindings(r); v.clean == "" && len(found) > 0 {
					t.Errorf("%s: the clean submission: %+v", counting, found)
				}
			}
		})
	}
}

func reportJSON(t *testing.T, r *report.Report) string {
	t.Helper()
	data, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The header of every vector says what it is for: its case and fault, the gate
// that must fail or warn, what the finding must name and say, the counting rules
// under which it does, and the twin. The twin is another submission than the
// fault.
func TestVectorHeaders(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(vectorFolder, "*.vector"))
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"case", "fault", "fails", "warns", "names", "says", "rules", "asks", "base", "counts", "twin"}
	for _, name := range names {
		v := readVector(t, name)
		for _, key := range []string{"case", "fault", "names", "says", "counts", "twin"} {
			if v.header[key] == "" {
				t.Errorf("%s has no %s", name, key)
			}
		}
		for key := range v.header {
			if !slices.Contains(known, key) {
				t.Errorf("%s has the line %q, which nothing reads", name, key)
			}
		}
		gate := v.header["fails"] + v.header["warns"]
		if _, there := Lookup(gate); !there && (gate != "" || v.header["says"] != "nothing") {
			t.Errorf("%s: %q is no gate", name, gate)
		}
		if !slices.Contains([]string{"observed, strict", "observed", "strict"}, v.header["counts"]) {
			t.Errorf("%s counts %q", name, v.header["counts"])
		}
		if v.fault == v.clean || v.fault == "" {
			t.Errorf("%s: the fault is its own twin, or none", name)
		}
		if !strings.HasPrefix(filepath.Base(name), v.header["case"]+"-") {
			t.Errorf("%s is of case %q", name, v.header["case"])
		}
	}
}

// topLevel counts the names at the root of a set.
func topLevel(files patch.Files) int {
	names := map[string]bool{}
	for p := range files.Content {
		first, _, _ := strings.Cut(p, "/")
		names[first] = true
	}
	return len(names)
}

func allFindings(r *report.Report) (all []report.Finding) {
	for _, g := range r.Gates {
		all = append(all, g.Findings...)
	}
	return all
}

func (v vectorFile) judge(t *testing.T, r *report.Report) {
	t.Helper()
	var want []string
	if gate := v.header["fails"]; gate != "" {
		want = []string{gate}
	}
	if got := r.Failed(); !slices.Equal(got, want) {
		t.Fatalf("gates %v fail, want %v\n%s", got, want, text(t, r))
	}
	level, gate := report.Error, v.header["fails"]
	if gate == "" {
		level, gate = report.Warning, v.header["warns"]
		if r.Err() != nil {
			t.Fatalf("%v\n%s", r.Err(), text(t, r))
		}
	}
	if v.header["says"] == "nothing" {
		if found := allFindings(r); len(found) > 0 {
			t.Errorf("findings %+v, want none", found)
		}
		return
	}
	g, _ := r.Gate(gate)
	for _, f := range g.Findings {
		if f.Level == level && (f.Path == v.header["names"] || f.Tensor == v.header["names"]) && strings.Contains(fmt.Sprintf("%s %s %s", f.Problem, f.Want, f.Got), v.header["says"]) {
			return
		}
	}
	t.Errorf("gate %s has no %s that names %q and says %q\n%s", gate, level, v.header["names"], v.header["says"], text(t, r))
}
