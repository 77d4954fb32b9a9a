package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/internal/generate/kernels/stamp"
)

// compiler stands in for nvcc: an output is the flags and the source, and a
// source that says so does not compile.
const compiler = `#!/bin/sh
[ "$1" = --version ] && { echo "copyright"; echo "Build cuda_12.4.r12.4"; exit; }
for source; do :; done
grep -q wrong "$source" && { echo "$source: wrong"; exit 1; }
while [ "$1" != -o ]; do flags="$flags $1"; shift; done
{ echo "$flags"; cat "$source"; } >"$2"
`

func TestRun(t *testing.T) {
	nvcc, folder := filepath.Join(t.TempDir(), "nvcc"), t.TempDir()
	write(t, nvcc, compiler, 0o755)
	write(t, filepath.Join(folder, "a.cu"), "#include \"b.cuh\"\n", 0o644)
	write(t, filepath.Join(folder, "b.cuh"), "\n", 0o644)
	generate := func() error {
		return run(context.Background(), []string{"--nvcc", nvcc, "--folder", folder})
	}
	if err := generate(); err != nil {
		t.Fatal(err)
	}
	if err := stamp.Check(os.DirFS(folder)); err != nil {
		t.Error(err)
	}
	first := read(t, filepath.Join(folder, stamp.File))
	if !strings.HasPrefix(first, "compiler Build cuda_12.4.r12.4\n") || !strings.Contains(first, "  b.cuh\n") {
		t.Errorf("description:\n%s", first)
	}

	// What does not compile leaves the outputs before it.
	write(t, filepath.Join(folder, "a.cu"), "wrong", 0o644)
	if err := generate(); err == nil || !strings.Contains(err.Error(), "a.cu: wrong") {
		t.Errorf("error %v of a source that does not compile", err)
	}
	if read(t, filepath.Join(folder, stamp.File)) != first {
		t.Error("a failed compilation has changed the outputs")
	}

	// What has lost its source goes.
	if err := os.Rename(filepath.Join(folder, "a.cu"), filepath.Join(folder, "c.cu")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "c.cu"), "\n", 0o644)
	if err := generate(); err != nil {
		t.Fatal(err)
	}
	if err := stamp.Check(os.DirFS(folder)); err != nil {
		t.Error(err)
	}
}

func TestAnotherCompiler(t *testing.T) {
	nvcc, folder := filepath.Join(t.TempDir(), "nvcc"), t.TempDir()
	write(t, nvcc, strings.ReplaceAll(compiler, "12.4", "13.0"), 0o755)
	write(t, filepath.Join(folder, "a.cu"), "\n", 0o644)
	err := run(context.Background(), []string{"--nvcc", nvcc, "--folder", folder})
	if err == nil || !strings.Contains(err.Error(), `"Build cuda_13.0.r13.0", not of CUDA 12.4`) {
		t.Errorf("error %v of another release's compiler", err)
	}
	if _, err := os.Stat(filepath.Join(folder, stamp.Folder)); !os.IsNotExist(err) {
		t.Errorf("it left outputs: %v", err)
	}
}

func TestNoCompiler(t *testing.T) {
	err := run(context.Background(), []string{"--nvcc", filepath.Join(t.TempDir(), "nvcc"), "--folder", t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("error %v without a compiler", err)
	}
}

func write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
