package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"slipway/bundle/goruntime"
)

// A killed rebuild leaves no folder, and no go command at work.
func TestKilledRebuildLeavesNothing(t *testing.T) {
	submission, home, temporary := t.TempDir(), t.TempDir(), t.TempDir()
	source, err := goruntime.ReadSource(fstest.MapFS{
		"go.mod": {Data: []byte("module slipway\n\ngo 1.26.0\n\ntoolchain go1.26.8\n")}, "go.sum": {}, "runtime/main.go": {Data: []byte("package main\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	tar, err := source.Tar(goruntime.Locked{Device: "cpu", Flags: []string{}, Source: source.Digest, Runtime: source.Digest})
	if err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(home, "go")
	for name, data := range map[string][]byte{
		filepath.Join(submission, "runtime", "source.tar"): tar,
		filepath.Join(submission, "runtime", "serve"):      []byte("\x7fELF"),
		command: []byte("#!/bin/sh\nmkdir \"$GOTMPDIR/go-build1\"\necho $$ >\"$HOME/started\" && mv \"$HOME/started\" \"$HOME/pid\"\nexec tail -f /dev/null\n"),
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	slipway := exec.Command("/proc/self/exe", "verify", "--rebuild", "--profile", "practice", submission)
	slipway.Args[0] = "slipway"
	slipway.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + temporary, "SLIPWAY_CACHE=" + t.TempDir(), "GO_COMMAND=" + command}
	slipway.Stderr = os.Stderr
	if err := slipway.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	comes(t, "the go command is at work", func() bool {
		data, _ := os.ReadFile(filepath.Join(home, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return pid != 0
	})
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	if made, err := os.ReadDir(temporary); err != nil || len(made) == 0 {
		t.Fatalf("it works elsewhere: %v, %v", made, err)
	}
	if err := slipway.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = slipway.Wait()
	comes(t, "no folder is left", func() bool {
		left, err := os.ReadDir(temporary)
		return err == nil && len(left) == 0
	})
	comes(t, "the go command has ended", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// comes polls for what another process does.
func comes(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}
