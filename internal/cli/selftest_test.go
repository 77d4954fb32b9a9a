package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"slipway/bundle"
	"slipway/bundle/config"
	"slipway/bundle/goruntime"
	"slipway/manifest"
)

// The runtime gets the checkpoint as the bundle will have it. What it says when it
// cannot run the model is the error, and nothing is left in the temporary folder.
func TestSelftestIsTheRuntimes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it needs a shell")
	}
	wanted, err := config.LoadBundle("../../examples/abacus/ternary/bundle.hcl")
	if err != nil {
		t.Fatal(err)
	}
	profile, _, err := config.LoadProfile(wanted.ProfileSource())
	if err != nil {
		t.Fatal(err)
	}
	found, err := bundle.Inspect(t.Context(), wanted, bundle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := bundle.MakePlan(wanted, profile, found)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, script, data, fault string }{
		{"writes", `test "$1" = --weights && test -f "$2/config.json" && test -f "$2/../quantization_manifest.json" && test "$3" = --write-selftest && echo '[]' >"$4"`, "[]\n", ""},
		{"fails", "echo 'runtime: unknown architecture' >&2; exit 1", "", "the runtime cannot run the model on this CPU: unknown architecture"},
		{"says nothing", "exit 9", "", "exit status 9"},
		{"writes nothing", "exit 0", "", "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "serve")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+tc.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			temporary := t.TempDir()
			a := &app{Environment: Environment{Stdout: io.Discard, Stderr: io.Discard, TempDir: temporary}}
			data, err := a.runSelftest(t.Context(), program, plan.Checkpoint(), nil)
			switch {
			case tc.fault == "" && (err != nil || string(data) != tc.data):
				t.Errorf("%q, %v", data, err)
			case tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)):
				t.Errorf("%v, want %q", err, tc.fault)
			case strings.Contains(tc.fault, "CPU") && manifest.Hint(err) != skipSelftest:
				t.Errorf("the remedy is %q", manifest.Hint(err))
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// A machine that does not run the runtime builds a bundle for a rehearsal without
// its answers, and says that it is another bundle; for anything else it builds
// none.
func TestSelftestOnAForeignMachine(t *testing.T) {
	program := filepath.Join(t.TempDir(), "serve")
	if err := os.WriteFile(program, []byte("a program for linux/amd64"), 0o755); err != nil {
		t.Fatal(err)
	}
	digest := manifest.DigestBytes([]byte("a program for linux/amd64"))
	built := &goruntime.Built{Path: program, Locked: goruntime.Locked{Device: "cpu", Flags: []string{}, Source: digest, Runtime: digest, Size: 25}}
	lock := goruntime.Lock{}
	lock.Set(built.Locked)
	locked, err := lock.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	a := &app{relock: true, relocked: map[string]*goruntime.Built{"cpu": built}, Environment: Environment{
		Stdout: io.Discard, Stderr: &stderr, TempDir: t.TempDir(), Platform: "darwin/arm64",
		Source: fstest.MapFS{"go.mod": {Data: []byte("module slipway\n")}, "go.sum": {}, "runtime/main.go": {Data: []byte("package main\n")}, goruntime.LockPath: {Data: locked}},
	}}
	const file = "../../examples/abacus/ternary/bundle.hcl"
	if _, err := a.plan(t.Context(), file, false); err == nil || !strings.Contains(err.Error(), "the runtime that computes it is for linux/amd64") || manifest.Hint(err) != skipSelftest {
		t.Errorf("build: %v, remedy %q", err, manifest.Hint(err))
	}
	a.rehearsing = true
	p, err := a.plan(t.Context(), file, false)
	if err != nil {
		t.Fatal(err)
	}
	if p.plan.NeedsSelftest() || slices.ContainsFunc(p.plan.Files, func(f bundle.PlannedFile) bool { return strings.Contains(f.Path, "selftest") }) {
		t.Errorf("it plans %+v", p.plan.Files)
	}
	if !strings.HasPrefix(stderr.String(), "note: built without selftest.json") {
		t.Errorf("it says %q", &stderr)
	}
}
