package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"slipway/verify/boot/sandbox"
)

// limitedPart opens a sandbox with limits, and tells of them and of a program
// that goes beyond the memory.
func limitedPart() int {
	fail := func(err error) int { _ = json.NewEncoder(os.Stdout).Encode(limited{Error: err.Error()}); return 1 }
	folder, err := os.MkdirTemp("", "limited-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(folder)
	s, err := sandbox.Open(context.Background(), sandbox.Options{Submission: folder, Memory: 64 << 20, CPUs: 0.5})
	if err != nil {
		return fail(err)
	}
	p, err := s.Start(sandbox.Command{Argv: []string{"/bin/sh", "-c", "exec tail /dev/zero"}, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		return fail(err)
	}
	told := limited{Conditions: s.Conditions(), End: "exit status 0"}
	if err := p.Err(); err != nil {
		told.End = err.Error()
	}
	if err := s.Close(); err != nil {
		return fail(err)
	}
	_ = json.NewEncoder(os.Stdout).Encode(told)
	return 0
}

type limited struct {
	Error      string
	Conditions []sandbox.Condition
	End        string
}

// A user to whom a cgroup of version 2 is delegated, as systemd does it, gets both
// limits there, although the user's own cgroup has a process and can hand nothing
// down.
func TestDelegationToUser(t *testing.T) {
	const mount, nobody = "/sys/fs/cgroup", 65534
	handed, err := os.ReadFile(filepath.Join(mount, "cgroup.subtree_control"))
	if down := strings.Fields(string(handed)); err != nil || !slices.Contains(down, "memory") || !slices.Contains(down, "cpu") {
		t.Skip("this machine has no cgroups of version 2 with memory and cpu at ", mount)
	}
	slice := filepath.Join(mount, "slipway-test-"+strconv.Itoa(os.Getpid()))
	scope := filepath.Join(slice, "run.scope")
	for _, folder := range []string{slice, scope} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Skip("these tests make no cgroups: ", err)
		}
		t.Cleanup(func() {
			if err := os.Remove(folder); err != nil {
				t.Error(err)
			}
		})
		for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} { // cgroups(7), delegation
			if err := os.Chown(filepath.Join(folder, name), nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	group, err := os.Open(scope)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	c := asUser(t, testProgram(t))
	c.Env = append(c.Env, partVariable+"=limited")
	c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, int(group.Fd())
	output, err := c.Output()
	if errors.Is(err, syscall.ENOSYS) {
		t.Skip(err)
	}
	var told limited
	if json.Unmarshal(output, &told) != nil || told.Error != "" {
		if strings.Contains(told.Error, sandbox.ErrUnsupported.Error()) {
			skip(t, told.Error)
		}
		t.Fatalf("%s, %v", output, err)
	}
	for _, want := range []sandbox.Condition{
		{Name: sandbox.MemoryLimit, Held: true, Detail: "64 MiB, cgroup version 2"},
		{Name: sandbox.CPULimit, Held: true, Detail: "0.5 of them, cgroup version 2"},
	} {
		if !slices.Contains(told.Conditions, want) {
			t.Errorf("conditions %+v, want %+v", told.Conditions, want)
		}
	}
	if told.End != "out of memory: killed at the limit of 67108864 bytes" {
		t.Errorf("a hog: %s", told.End)
	}
}
