package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"slipway/bundle/config"
	"slipway/bundle/goruntime"
	"slipway/manifest"
	"slipway/verify/ternary"
)

// The program decodes every format that a quantization manifest may name, and no
// other: here, unlike in the decoders' own tests, no test adds any.
func TestFormatsAreTheManifests(t *testing.T) {
	var ids []string
	for _, f := range ternary.Formats() {
		ids = append(ids, f.ID)
	}
	if want := manifest.PackedFormatIDs(); len(ids) == 0 || !slices.Equal(ids, want) {
		t.Errorf("decoders of %v, manifest has %v", ids, want)
	}
}

// The architectures that a bundle may have the runtime for are those that it binds.
func TestArchitecturesAreTheRuntimes(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "runtime/model/model.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var bound []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || spec.Names[0].Name != "families" {
			return true
		}
		for _, element := range spec.Values[0].(*ast.CompositeLit).Elts {
			name, err := strconv.Unquote(element.(*ast.KeyValueExpr).Key.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			bound = append(bound, name)
		}
		return false
	})
	slices.Sort(bound)
	if len(bound) == 0 || !slices.Equal(bound, config.NativeArchitectures) {
		t.Errorf("the runtime binds %v, bundles have it for %v", bound, config.NativeArchitectures)
	}
}

// A change of the runtime's source is a change of the program in every bundle:
// it has to be built and locked on purpose.
func TestRuntimeLockIsCurrent(t *testing.T) {
	carried, err := goruntime.ReadSource(source)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := goruntime.DecodeLock(carried.Lock)
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range goruntime.Devices {
		if locked, ok := lock.Find(device); !ok || locked.Source != carried.Digest {
			t.Errorf("runtime/runtime.lock for %s is of source %s, the source is %s; run, where there is gcc: go run . rehearse --relock", device, locked.Source, carried.Digest)
		}
	}
}
