package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"slipway/bundle/goruntime"
	"slipway/manifest"
)

// --relock locks what this machine can build. Without gcc, the entry of the build
// that needs it stays, and a note names it; the bundle's own source says how its
// own runtime was built and nothing of the other.
func TestRelockWithoutGCC(t *testing.T) {
	command, err := exec.LookPath("go")
	if err != nil {
		t.Skip(err)
	}
	digest := manifest.DigestBytes([]byte("before"))
	before := goruntime.Lock{}
	for _, device := range goruntime.Devices {
		before.Set(goruntime.Locked{Device: device, Flags: []string{}, Source: digest, Runtime: digest, GCC: device})
	}
	lock, err := before.Encode()
	if err != nil {
		t.Fatal(err)
	}
	clone := t.TempDir()
	t.Chdir(clone)
	if err := os.Mkdir("runtime", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goruntime.LockPath, lock, 0o644); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	a := &app{relock: true, Environment: Environment{
		Stderr: &stderr, CacheDir: t.TempDir(), TempDir: t.TempDir(), GoCommand: command, Variables: os.Environ(),
		Source: fstest.MapFS{
			"go.mod": {Data: []byte("module slipway\n\ngo 1.26.0\n\ntoolchain go1.26.8\n")}, "go.sum": {},
			"runtime/main.go": {Data: []byte("package main\n\nfunc main() {}\n")}, goruntime.LockPath: {Data: lock},
		},
	}}
	built, err := a.builtRuntime(t.Context(), "cpu", false)
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(clone, goruntime.LockPath))
	if err != nil {
		t.Fatal(err)
	}
	after, err := goruntime.DecodeLock(written)
	if err != nil {
		t.Fatal(err)
	}
	cpu, _ := after.Find("cpu")
	cuda, _ := after.Find("cuda")
	if cpu.Runtime != built.Digest || cpu.Source == digest || cuda.Runtime != digest || cuda.GCC != "cuda" {
		t.Errorf("locked %+v", after.Builds)
	}
	if !strings.Contains(stderr.String(), "the build for cuda stays as it was locked") || !strings.Contains(stderr.String(), "there is no gcc") {
		t.Errorf("said %q", &stderr)
	}
	source, err := goruntime.ReadSourceTar(bytes.NewReader(built.SourceTar), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if shipped, err := goruntime.DecodeLock(source.Lock); err != nil || len(shipped.Builds) != 1 || shipped.Builds[0].Runtime != built.Digest {
		t.Errorf("shipped %s: %v", source.Lock, err)
	}
	if _, err := a.builtRuntime(t.Context(), "cuda", false); err == nil || !strings.Contains(manifest.Hint(err), "install gcc") {
		t.Errorf("the runtime that this machine cannot build: %v", err)
	}
}
