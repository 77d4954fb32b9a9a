package verify

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"slipway/internal/generate/patch"
	"slipway/manifest"
	"slipway/manifest/safetensors"
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
		Ternary: &profiles.Ternary{Counting: report.CountObserved, GroupMinimum: 32},
	}
	if asked := header["asks"]; asked != "" {
		p.Gates = append(p.Gates, asked)
	}
	// One of the toy's tensors is a sixteenth of it: the bounds are wide, so that
	// its fault is not the fraction's too.
	p.Ternary.FractionAbove, p.Ternary.StoredAtMost = profiles.Ratio{Numerator: 50, Denominator: 100}, profiles.Ratio{Numerator: 15, Denominator: 10}
	switch header["rules"] {
	case "":
	case "strict":
		p.Ternary.Counting = report.CountStrict
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

// Every committed vector fires exactly its gate, which names the fault's place;
// its twin passes.
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
			verifyVector := func(edits string) *report.Report {
				files, err := patch.Apply(clean, edits)
				if err != nil {
					t.Fatal(err)
				}
				root := writeFiles(t, files)
				if entries, err := os.ReadDir(root); err == nil && len(files.Links) == 0 && len(entries) != topLevel(files) {
					t.Skip("this file system takes two of the names for one")
				}
				return run(t, root, options)
			}
			v.judge(t, verifyVector(v.fault))
			if twin := verifyVector(v.clean); twin.Err() != nil {
				t.Errorf("the twin, %s: %v\n%s", v.header["twin"], twin.Err(), text(t, twin))
			} else if v.clean == "" {
				if found := allFindings(twin); len(found) > 0 {
					t.Errorf("the clean submission: %+v", found)
				}
			}
		})
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
	if gate == "" {
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

// Every case has a vector, or a gate that decides it otherwise.
func TestEveryCaseIsThere(t *testing.T) {
	have := map[string]bool{}
	names, _ := filepath.Glob(filepath.Join(vectorFolder, "*.vector"))
	for _, name := range names {
		have[readVector(t, name).header["case"]] = true
	}
	table, err := os.ReadFile(filepath.Join(vectorFolder, "elsewhere.txt"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^(A\d\d) +(\S+) +\S`)
	for _, match := range row.FindAllStringSubmatch(string(table), -1) {
		if _, known := Lookup(match[2]); !known || have[match[1]] {
			t.Errorf("%s: gate %q is unknown, or there is a vector too", match[1], match[2])
		}
		have[match[1]] = true
	}
	for n := 1; n <= 68; n++ {
		if id := fmt.Sprintf("A%02d", n); !have[id] {
			t.Errorf("case %s is nowhere", id)
		}
	}
}

// The clean submission holds every format, and its report is the same twice.
func TestCleanSubmissionOfAllFormats(t *testing.T) {
	options := vectorOptions(t, map[string]string{"base": "at hand", "asks": "config", "rules": "task bounds"}, vectorContract(t))
	for _, counting := range []string{report.CountObserved, report.CountStrict} {
		options.Profile.Ternary.Counting = counting
		r := run(t, filepath.Join(vectorFolder, "clean"), options)
		if err := r.Err(); err != nil || len(allFindings(r)) > 0 {
			t.Fatalf("%s: %v\n%s", counting, err, text(t, r))
		}
		again := run(t, filepath.Join(vectorFolder, "clean"), options)
		a, errA := r.JSON()
		b, errB := again.JSON()
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("two reports differ: %v, %v", errA, errB)
		}
		if a := r.Accounts; len(a.Missing)+len(a.Unreferenced)+len(a.Double)+len(a.Unchanged) > 0 || a.Contract == "" || a.Manifest == "" {
			t.Errorf("accounts %+v", a)
		}
		var kinds []string
		for _, tensor := range r.Tensors {
			kinds = append(kinds, fmt.Sprintf("%s %s %s %d", tensor.Kind+tensor.Format, tensor.SharedBy, tensor.ScaleDType, tensor.Unit))
		}
		slices.Sort(kinds)
		want := []string{
			"float   0", "literal group  128", "literal row  256", "literal row  256",
			"packed_2bitbitnet_u8 tensor F32 16384", "packed_2bitbitnet_u8 tensor F32 256", "packed_2bitmlx_affine_2bit group BF16 64",
			"packed_2bitmlx_row_alpha_2bit row BF16 256", "packed_2bitpacked_2bit group F16 64",
		}
		if got := slices.Compact(slices.Clone(kinds)); !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("kinds %q, want %q", got, want)
		}
	}
}

// The report lists by name what coverage came upon, and with Digests gives the
// digest of every stored tensor.
func TestAccounts(t *testing.T) {
	contract := vectorContract(t)
	clean := readFiles(t, filepath.Join(vectorFolder, "clean"))
	of := func(vector string) report.Accounts {
		t.Helper()
		v := readVector(t, filepath.Join(vectorFolder, vector+".vector"))
		files, err := patch.Apply(clean, v.fault)
		if err != nil {
			t.Fatal(err)
		}
		return *run(t, writeFiles(t, files), vectorOptions(t, v.header, contract)).Accounts
	}
	if got := of("A22-scales-of-the-scales").Unreferenced; len(got) != 1 || got[0].Tensor != "model.layers.1.self_attn.k_proj.weight.scales.scales" {
		t.Errorf("unreferenced %+v", got)
	}
	if got := of("A24-one-tensor-as-two-entries").Double; len(got) != 2 || len(got[0].Uses) != 2 {
		t.Errorf("double %+v", got)
	}
	if got := of("A26-the-embedding-under-a-layer-s-name").Missing; !slices.Equal(got, []string{"model.embed_tokens.weight"}) {
		t.Errorf("missing %q", got)
	}
	options := vectorOptions(t, map[string]string{}, contract)
	options.Digests = true
	known := *contract
	known.Tensors = maps.Clone(contract.Tensors)
	norm := known.Tensors["model.norm.weight"]
	norm.SHA256 = floatDigest(t, "model.norm.weight")
	known.Tensors["model.norm.weight"] = norm
	withDigest := options
	withDigest.Profile.Bases = []profiles.Base{{Label: "language", Repository: known.Repository, Revision: known.Revision, Contract: &known}}
	if got := run(t, filepath.Join(vectorFolder, "clean"), withDigest).Accounts.Unchanged; !slices.Equal(got, []string{"model.norm.weight"}) {
		t.Errorf("unchanged %q", got)
	}
	r := run(t, filepath.Join(vectorFolder, "clean"), options)
	hashed := 0
	for _, tensor := range r.Tensors {
		for _, part := range tensor.Stored {
			hashed++
			if part.Digest == "" {
				t.Errorf("%s %s has no digest", tensor.Name, part.As)
			}
			if part.File == "weights/float.safetensors" && part.Digest != "sha256:"+floatDigest(t, part.Tensor) {
				t.Errorf("%s: digest %s", tensor.Name, part.Digest)
			}
		}
	}
	if len(r.Tensors) != len(contract.Tensors)-countVisionAndMTP(contract) || hashed < len(r.Tensors) {
		t.Errorf("%d tensors, %d stored parts, %d in the contract", len(r.Tensors), hashed, len(contract.Tensors))
	}
}

// floatDigest hashes a tensor of the clean submission's shard of float entries.
func floatDigest(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(vectorFolder, "clean", "weights", "float.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	header, err := safetensors.ReadHeader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	stored, ok := header.Lookup(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return manifest.DigestBytes(data[header.DataStart+stored.Begin : header.DataStart+stored.End]).Hex()
}

func countVisionAndMTP(c *manifest.Contract) (n int) {
	for _, tensor := range c.Tensors {
		if tensor.Role == manifest.RoleVision || tensor.Role == manifest.RoleMTP {
			n++
		}
	}
	return n
}
