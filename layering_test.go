package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layers says which packages of this module each package may import. A trailing
// "/..." stands for a package and all below it; the longest entry wins. This is
// the design's set of arrows: change both together or neither.
var layers = map[string][]string{
	"":             {"internal/cli", "verify/boot/sandbox"}, // main.go; the sandbox starts this program again inside
	"internal/cli": {"bundle/...", "verify/...", "vendor-wheels/...", "manifest/..."},

	"bundle":           {"bundle/config", "bundle/pack", "verify/profiles", "vendor-wheels", "manifest/..."},
	"bundle/config":    {"verify/profiles", "verify/image", "verify/picture", "manifest"},
	"bundle/pack":      {"manifest", "manifest/content", "manifest/safetensors"},
	"bundle/pack/...":  {"manifest", "manifest/safetensors"},
	"bundle/goruntime": {"internal/cudastub", "manifest", "manifest/content"},

	"verify":                     {"verify/report", "verify/audit", "verify/modelconfig", "verify/texts", "verify/words", "verify/profiles", "verify/scan", "verify/ternary", "verify/wheel", "verify/script", "verify/script/shell", "vendor-wheels", "manifest", "manifest/content", "manifest/safetensors"},
	"verify/report":              {"verify/words", "verify/scan", "manifest", "manifest/content"},
	"verify/texts":               {"verify/report", "verify/words", "verify/script/python", "manifest"},
	"verify/words":               {},
	"verify/audit":               {"verify/report", "verify/words", "verify/profiles", "verify/scan", "verify/ternary", "manifest", "manifest/content", "manifest/safetensors"},
	"verify/modelconfig":         {"manifest"},
	"verify/profiles":            {"verify/image", "manifest"},
	"verify/image":               {"manifest"},
	"verify/picture":             {"manifest"},
	"verify/image/probe":         {"verify/image", "manifest"}, // looks at the machine it runs on
	"verify/script":              {"verify/image", "verify/script/shell", "verify/script/python", "manifest"},
	"verify/script/shell":        {"verify/image"},
	"verify/script/python":       {"manifest"},
	"verify/page":                {"verify", "verify/report", "verify/words", "manifest"},
	"verify/scan":                {"verify/scan/vector", "verify/ternary", "manifest", "manifest/content", "manifest/safetensors"},
	"verify/scan/vector":         {},
	"verify/ternary":             {"manifest", "manifest/safetensors"},
	"verify/ternary/ternarytest": {"verify/ternary", "manifest", "manifest/safetensors"},
	"verify/wheel":               {"manifest"},
	"verify/contract":            {"manifest", "manifest/content", "manifest/safetensors"},
	"verify/compare":             {"manifest", "manifest/content", "manifest/safetensors"},
	"verify/boot":                {"verify/report", "verify/words", "verify/profiles", "verify/image", "verify/picture", "verify/boot/...", "manifest", "manifest/safetensors"}, // runs the submission; the static gates must not. Reads headers to put zeros in the weights' place
	"verify/boot/ask":            {"verify/picture", "manifest"},
	"verify/boot/local":          {"verify/boot/ask", "verify/boot/sandbox", "manifest"},
	"verify/boot/sandbox":        {"manifest"},
	"verify/boot/installed":      {"verify/image"},
	"verify/boot/python":         {"verify/boot/sandbox", "verify/script/shell"}, // of a trace, the programs; and one reading of python3's command line for both sides
	"verify/boot/shrink":         {"verify/ternary", "manifest", "manifest/safetensors"},

	"runtime":                   {"runtime/api", "runtime/engine", "runtime/model", "runtime/kernels", "runtime/weights", "runtime/tokenizer/...", "runtime/plainfile", "manifest"},
	"runtime/api":               {"runtime/engine", "runtime/model", "runtime/tokenizer/..."},
	"runtime/engine":            {"runtime/model"},
	"runtime/engine/enginetest": {"runtime/engine", "runtime/model"},
	"runtime/model":             {"runtime/kernels", "runtime/weights"},
	"runtime/kernels":           {"runtime/gpu", "runtime/kernels/cuda"},
	"runtime/kernels/cuda":      {}, // compiled kernels, as data
	"runtime/gpu":               {},
	"runtime/weights":           {"runtime/plainfile", "manifest", "manifest/safetensors"},
	"runtime/plainfile":         {},
	"runtime/tokenizer/...":     {"runtime/tokenizer", "runtime/plainfile", "manifest"},

	"manifest":                   {},
	"manifest/safetensors":       {},
	"manifest/content":           {"manifest"},
	"manifest/content/...":       {"manifest", "manifest/content"},
	"manifest/layout":            {"manifest", "manifest/content"},
	"manifest/registry":          {"manifest", "manifest/content"},
	"manifest/registry/embedded": {"manifest"},

	"internal/realshapes":     {"manifest", "manifest/safetensors"},
	"internal/cudastub":       {},
	"internal/generate/cuda":  {"internal/cudastub"},
	"internal/generate/...":   {"internal/realshapes", "internal/generate/...", "verify/ternary", "verify/picture", "manifest", "manifest/content", "manifest/safetensors"},
	"examples/broken":         {"internal/generate/...", "manifest"},
	"internal/benchmarks/...": {"internal/...", "bundle/...", "verify/...", "manifest/..."},
}

// forTests are packages that tests alone may import, whatever layers allows: they
// build what tests need, and importing ternarytest makes formats known that no
// submission may have.
var forTests = []string{"bundle/pack/packtest", "manifest/content/contenttest", "runtime/engine/enginetest", "verify/ternary/ternarytest"}

// doors says which packages alone may import a module from outside.
var doors = map[string][]string{
	"github.com/hashicorp/hcl/v2":            {"bundle/config"},
	"github.com/zclconf/go-cty":              {"bundle/config"},
	"github.com/google/go-containerregistry": {"manifest/registry"},
	"github.com/opencontainers/go-digest":    {"manifest"},
	"github.com/ardanlabs/jinja":             {"runtime/tokenizer/template", "runtime/tokenizer"},
	"github.com/nlpodyssey/safetensors":      {"manifest/safetensors"},
	"golang.org/x/text":                      {"manifest", "runtime/tokenizer"},
	"golang.org/x/sync":                      {"bundle", "bundle/pack", "internal/generate", "manifest/content", "manifest/registry", "verify/boot/ask", "verify/compare", "verify/scan"},
	"gorgonia.org/cu":                        {"runtime/gpu"},
	"golang.org/x/sys":                       {"manifest/content", "manifest/safetensors", "runtime/kernels", "verify/boot/sandbox", "verify/image/probe", "verify/scan/vector"},
	"mvdan.cc/sh/v3":                         {"verify/script", "verify/script/shell"},
	"github.com/landlock-lsm/go-landlock":    {"verify/boot/sandbox"},
	"github.com/elastic/go-seccomp-bpf":      {"verify/boot/sandbox"},
	"github.com/spf13/cobra":                 {"internal/cli"},
	"github.com/vbauerster/mpb/v8":           {"internal/cli"},
}

// offline packages reach nothing and run nothing: the verifier and all that it
// stands on.
var offline = []string{"verify", "verify/report", "verify/audit", "verify/modelconfig", "verify/texts", "verify/words", "verify/profiles", "verify/image", "verify/picture", "verify/scan", "verify/scan/vector", "verify/ternary", "verify/wheel", "verify/contract", "verify/script", "verify/script/shell", "verify/script/python", "verify/page", "verify/compare", "manifest", "manifest/content", "manifest/safetensors", "manifest/layout", "bundle", "bundle/config", "bundle/pack"}

var reaching = []string{"net", "net/http", "net/rpc", "net/smtp", "os/exec", "plugin"}

// goPackage is one package's imports, tests left out, and whether it says what it
// is for.
type goPackage struct {
	imports   map[string]bool
	commented bool
}

func TestLayering(t *testing.T) {
	packages := parsePackages(t)
	if len(packages) < 10 {
		t.Fatalf("found %d packages: the walk is broken", len(packages))
	}
	for name, pkg := range packages {
		allowed, listed := rule(name)
		if !listed {
			t.Errorf("package %q has no entry in layers: say what it may import", name)
		}
		for imported := range pkg.imports {
			if inner, ours := strings.CutPrefix(imported, "slipway/"); ours {
				if !allows(allowed, inner) {
					t.Errorf("package %q imports %q, which its layer does not allow", name, inner)
				}
				continue
			}
			checkDoor(t, name, imported)
			if slices.Contains(offline, name) && slices.Contains(reaching, imported) {
				t.Errorf("package %q imports %q and must work offline", name, imported)
			}
		}
		if !pkg.commented {
			t.Errorf("package %q has no package comment", name)
		}
	}
	for _, name := range forTests {
		if packages[name] == nil {
			t.Errorf("forTests names %q, which is no package", name)
		}
	}
}

func checkDoor(t *testing.T, name, imported string) {
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		return // the standard library
	}
	for module, packages := range doors {
		if imported == module || strings.HasPrefix(imported, module+"/") {
			if !slices.Contains(packages, name) {
				t.Errorf("package %q imports %q; only %v may", name, imported, packages)
			}
			return
		}
	}
	t.Errorf("package %q imports %q, a module without a door", name, imported)
}

// rule returns what a package may import, by its longest matching entry.
func rule(name string) (allowed []string, ok bool) {
	if allowed, ok = layers[name]; ok {
		return allowed, true
	}
	for folder := name; folder != "."; folder = path.Dir(folder) {
		if allowed, ok = layers[folder+"/..."]; ok {
			return allowed, true
		}
	}
	return nil, false
}

// allows reports whether a rule lets a package that is no test import another.
func allows(allowed []string, imported string) bool {
	return matches(allowed, imported) && !slices.Contains(forTests, imported)
}

func matches(allowed []string, imported string) bool {
	for _, entry := range allowed {
		folder, below := strings.CutSuffix(entry, "/...")
		if imported == folder || below && strings.HasPrefix(imported, folder+"/") {
			return true
		}
	}
	return false
}

// parsePackages reads every Go file that is no test. It runs in this process,
// so that the test cache knows which files the verdict rests on.
func parsePackages(t *testing.T) map[string]*goPackage {
	packages := map[string]*goPackage{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); base == "testdata" || name != "." && strings.HasPrefix(base, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		add(packages, strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "."), file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

func add(packages map[string]*goPackage, name string, file *ast.File) {
	pkg := packages[name]
	if pkg == nil {
		pkg = &goPackage{imports: map[string]bool{}}
		packages[name] = pkg
	}
	if file.Doc != nil {
		pkg.commented = true
	}
	for _, spec := range file.Imports {
		pkg.imports[strings.Trim(spec.Path.Value, `"`)] = true
	}
}

// The rules must be able to fail.
func TestLayeringRulesBite(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		want     bool
	}{
		{"internal/cli", "verify/compare", true},
		{"internal/cli", "runtime", false},
		{"verify", "bundle", false},
		{"manifest/content", "manifest/layout", false},
		{"bundle", "manifest/layout", true},
		{"manifest/content/contenttest", "manifest/content", true},
		{"internal/cli", "verify/ternary", true},
		{"internal/cli", "verify/ternary/ternarytest", false},
		{"internal/cli", "manifest/content/contenttest", false},
	} {
		allowed, ok := rule(tc.from)
		if !ok {
			t.Errorf("no rule for %q", tc.from)
		}
		if got := allows(allowed, tc.to); got != tc.want {
			t.Errorf("%q -> %q allowed: %v, want %v", tc.from, tc.to, got, tc.want)
		}
	}
}
