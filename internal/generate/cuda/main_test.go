package main

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// compiler skips a test where the shim cannot be compiled.
func compiler(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the trampolines are for linux/amd64")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip(err)
	}
}

func TestRunPassesTheEnvironmentOn(t *testing.T) {
	compiler(t)
	folder := filepath.Join(t.TempDir(), "made here")
	var printed bytes.Buffer
	if err := run(context.Background(), []string{"-folder", folder}, &printed); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(printed.String(), folder+"\nexport CGO_ENABLED='1'\n") {
		t.Errorf("printed %q", printed.String())
	}
	// The command sees the variables and its exit code comes back.
	err := run(context.Background(), []string{"-folder", folder, "sh", "-c", `test "$CGO_LDFLAGS" = "'-L` + folder + `'" && test -f '` + folder + `/include/cuda.h' && exit 7`}, &printed)
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != 7 {
		t.Errorf("the command ended with %v", err)
	}
}
