package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/verify/boot/sandbox"
)

func TestCloseTakesAllAlong(t *testing.T) {
	before := mounts(t)
	s := open(t, sandbox.Options{Memory: 256 << 20, CPUs: 1})
	p, output := begin(t, s, "setsid tail -f /dev/null & echo started; exec tail -f /dev/null")
	if line, err := output.ReadString('\n'); line != "started\n" {
		t.Fatalf("%q, %v", line, err)
	}
	groups := cgroups(t, os.Getpid())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, p); got != "killed with its sandbox" {
		t.Errorf("ended with %q", got)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	for _, group := range groups {
		if _, err := os.Stat(group); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", group, err)
		}
	}
	if after := mounts(t); after != before {
		t.Errorf("mounts before\n%s\nafter\n%s", before, after)
	}
	if _, err := s.Start(sandbox.Command{Argv: []string{"true"}}); err == nil {
		t.Error("a start after Close")
	}
	if _, err := s.Processes(); err == nil {
		t.Error("a list after Close")
	}
}

// However the program that opened a sandbox is killed, nothing is left.
func TestKilledOpenerLeavesNothing(t *testing.T) {
	killed := func(t *testing.T, command *exec.Cmd) {
		before := mounts(t)
		o, stdout := startOpener(t, command, "opener")
		groups := cgroups(t, command.Process.Pid)
		if o.Held[sandbox.MemoryLimit] && len(groups) == 0 {
			t.Error("a memory limit without a cgroup")
		}
		until(t, "the command and its orphan run", func() bool { return len(namedProcesses(t, o.Marker)) == 2 })
		if err := syscall.Kill(-command.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = command.Wait()
		until(t, "no process is left", func() bool { return len(namedProcesses(t, o.Marker)) == 0 })
		for _, path := range append(groups, o.Folder) {
			until(t, path+" is gone", func() bool { _, err := os.Stat(path); return errors.Is(err, os.ErrNotExist) })
		}
		if rest, err := io.ReadAll(stdout); err != nil || len(rest) != 0 {
			t.Errorf("its output did not end: %q, %v", rest, err)
		}
		if after := mounts(t); after != before {
			t.Errorf("mounts before\n%s\nafter\n%s", before, after)
		}
	}
	t.Run("as this user", func(t *testing.T) { killed(t, exec.Command("/proc/self/exe")) })
	t.Run("as an ordinary user", func(t *testing.T) { killed(t, asUser(t, testProgram(t))) })
}

// Without a sandbox neither: not one that forgot its HOME, nor one that left its
// group.
func TestKilledKeeperLeavesNothing(t *testing.T) {
	killed := func(t *testing.T, command *exec.Cmd) {
		o, _ := startOpener(t, command, "keeper")
		until(t, "all three run", func() bool { return len(namedProcesses(t, o.Marker)) >= 3 })
		bystander := exec.Command("tail", "-f", "/dev/null")
		bystander.Env = []string{"HOME=" + o.Folder + "-of-another"}
		if err := bystander.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = bystander.Process.Kill() }) // an error means that it has ended
		if err := syscall.Kill(-command.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = command.Wait()
		until(t, "no process is left", func() bool { return len(namedProcesses(t, o.Marker)) == 0 })
		until(t, "its HOME is gone", func() bool { _, err := os.Stat(o.Folder); return errors.Is(err, os.ErrNotExist) })
		if err := bystander.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := bystander.Wait(); err == nil || err.Error() != "signal: terminated" {
			t.Errorf("somebody else's process ended with %v", err)
		}
	}
	t.Run("as this user", func(t *testing.T) { killed(t, exec.Command("/proc/self/exe")) })
	t.Run("as an ordinary user", func(t *testing.T) { killed(t, asUser(t, testProgram(t))) })
}

func TestKeeperStops(t *testing.T) {
	home := t.TempDir()
	keeper, err := sandbox.Keep(home)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("tail", "-f", "/dev/null")
	command.Env, command.SysProcAttr = []string{"HOME=" + home}, &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if err := keeper.Group(command.Process.Pid); err != nil {
		t.Fatal(err)
	}
	keeper.Stop()
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("ended with %v", err)
	}
}

// Not even at the moment at which the first thing of a sandbox is there.
func TestKilledWhileOpening(t *testing.T) {
	s := open(t, sandbox.Options{Memory: 256 << 20})
	needs(t, s, sandbox.MemoryLimit)
	for range 5 {
		command := exec.Command("/proc/self/exe")
		command.Env = append(command.Environ(), partVariable+"=opener", "TMPDIR="+t.TempDir())
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		var groups []string
		until(t, "a cgroup is made", func() bool { groups = cgroups(t, command.Process.Pid); return len(groups) > 0 })
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = command.Wait()
		for _, path := range groups {
			until(t, path+" is gone", func() bool { _, err := os.Stat(path); return errors.Is(err, os.ErrNotExist) })
		}
	}
}

// startOpener starts the part that opens in a process group of its own and
// returns what it told and what else it prints.
func startOpener(t *testing.T, command *exec.Cmd, part string) (opened, io.Reader) {
	t.Helper()
	command.Env = append(command.Environ(), partVariable+"="+part)
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true
	stdout, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdout.Close() })
	if err := stdout.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = write, os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(stdout)
	var o opened
	if err := decoder.Decode(&o); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(o.Error, sandbox.ErrUnsupported.Error()) {
		skip(t, o.Error)
	}
	if o.Error != "" {
		t.Fatal(o.Error)
	}
	rest, err := io.ReadAll(decoder.Buffered())
	if err != nil {
		t.Fatal(err)
	}
	return o, io.MultiReader(bytes.NewReader(bytes.TrimSpace(rest)), stdout)
}

// mounts lists the mounts of this process's namespace.
func mounts(t *testing.T) string { return string(mustRead(t, "/proc/self/mountinfo")) }

// cgroups lists the cgroups of sandboxes that a process opened.
func cgroups(t *testing.T, pid int) []string {
	t.Helper()
	var found []string
	prefix := sandboxGroup(pid)
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), prefix) {
			found = append(found, path)
		}
		return nil // one that has just gone
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// namedProcesses lists the processes of this machine that have a word among
// their arguments or environment.
func namedProcesses(t *testing.T, word string) []string {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, folder := range folders {
		environment, err := os.ReadFile(folder + "/environ")
		line, _ := os.ReadFile(folder + "/cmdline") // gone, or a zombie's
		if err == nil && bytes.Contains(append(environment, line...), []byte(word)) {
			found = append(found, filepath.Base(folder)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func TestJanitorStops(t *testing.T) {
	folder := t.TempDir()
	stop, err := sandbox.Janitor(folder)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("the folder is gone: %v", err)
	}
}

// Inside a sandbox there is no other.
func TestNoSandboxToBeHad(t *testing.T) {
	program := testProgram(t)
	for _, user := range []int{0, 12345} {
		s := open(t, sandbox.Options{Submission: filepath.Dir(program), User: user})
		needs(t, s, sandbox.NoPrivilege)
		var output strings.Builder
		p, err := s.Start(sandbox.Command{Argv: []string{"/submission/program"}, Env: []string{partVariable + "=nested"}, Output: &output})
		if err != nil {
			t.Fatal(err)
		}
		if got := ended(t, p); got != "" || !strings.Contains(output.String(), "new namespaces") || !strings.Contains(output.String(), "operation not permitted") {
			t.Errorf("%s %s", got, output.String())
		}
		_ = s.Close()
	}
}

func TestCancelledOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := sandbox.Open(ctx, sandbox.Options{Submission: submission(t, nil)}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// All of this as an ordinary user.
func TestAsOrdinaryUser(t *testing.T) {
	output, err := asUser(t, testProgram(t), "-test.v", "-test.skip=^TestKilled").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	if !bytes.Contains(output, []byte("--- PASS: TestConditions/another_user")) {
		t.Errorf("the conditions were not tried:\n%s", output)
	}
}
