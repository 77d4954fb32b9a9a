package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/verify/boot/sandbox"
)

// partVariable makes the test program one of its parts.
const partVariable = "SLIPWAY_TEST_PART"

var parts = map[string]func() int{"opener": openerPart, "keeper": keeperPart, "nested": nestedPart, "opens": opensPart, "list": listPart, "calls": callsPart}

// testProgram copies this program to where any user may run it.
func testProgram(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "program")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// opened is what an opener tells of itself.
type opened struct {
	Error  string
	Marker string // in the environment of the processes that it started
	Folder string // that its janitor watches
	Held   map[string]bool
}

// openerPart opens a sandbox with all that can outlive it, tells, and waits to
// be killed.
func openerPart() int {
	tell := func(o opened) { _ = json.NewEncoder(os.Stdout).Encode(o) }
	folder, err := os.MkdirTemp("", "watched-")
	if err != nil {
		tell(opened{Error: err.Error()})
		return 1
	}
	if _, err := sandbox.Janitor(folder); err != nil {
		tell(opened{Error: err.Error()})
		return 1
	}
	started := make(said)
	s, err := sandbox.Open(context.Background(), sandbox.Options{Submission: folder, Memory: 256 << 20, CPUs: 1})
	if err != nil {
		tell(opened{Error: err.Error()})
		return 1
	}
	marker := "MARKER=" + strconv.FormatInt(time.Now().UnixNano(), 10)
	_, err = s.Start(sandbox.Command{Argv: []string{"/bin/sh", "-c", "setsid tail -f /dev/null & echo started; exec tail -f /dev/null"}, Env: []string{"PATH=/usr/bin:/bin", marker}, Output: started})
	if err != nil {
		tell(opened{Error: err.Error()})
		return 1
	}
	<-started
	held := map[string]bool{}
	for _, c := range s.Conditions() {
		held[c.Name] = c.Held
	}
	tell(opened{Marker: marker, Folder: folder, Held: held})
	select {}
}

// keeperPart starts, without a sandbox, a process for each way to get away, and
// waits to be killed. The folder that it tells of is the HOME of them.
func keeperPart() int {
	tell := func(o opened) { _ = json.NewEncoder(os.Stdout).Encode(o) }
	fail := func(err error) int { tell(opened{Error: err.Error()}); return 1 }
	home, err := os.MkdirTemp("", "kept-")
	if err != nil {
		return fail(err)
	}
	if _, err := sandbox.Janitor(home); err != nil {
		return fail(err)
	}
	keeper, err := sandbox.Keep(home)
	if err != nil {
		return fail(err)
	}
	marker := "marker-" + strconv.FormatInt(time.Now().UnixNano(), 10)
	stay := " sh -c 'tail -f /dev/null; : " + marker + "' "
	command := exec.Command("/bin/sh", "-c", "env -i"+stay+"& setsid"+stay+"& echo started; exec"+stay)
	command.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Stdout = io.Discard
	if err := command.Start(); err != nil {
		return fail(err)
	}
	if err := keeper.Group(command.Process.Pid); err != nil {
		return fail(err)
	}
	tell(opened{Marker: marker, Folder: home})
	select {}
}

// said tells of the first thing that is printed.
type said chan struct{}

func (s said) Write(p []byte) (int, error) {
	select {
	case s <- struct{}{}:
	case <-time.After(patience):
	}
	return len(p), nil
}

// sandboxGroup is how the names of the cgroups of a process's sandboxes begin.
func sandboxGroup(pid int) string { return "slipway-" + strconv.Itoa(pid) + "-" }

// nestedPart opens a sandbox where none can be had.
func nestedPart() int {
	_, err := sandbox.Open(context.Background(), sandbox.Options{Submission: "/usr"})
	fmt.Println(err)
	if !errors.Is(err, sandbox.ErrUnsupported) {
		return 1
	}
	return 0
}

// listPart prints the paths of all files inside.
func listPart() int {
	err := filepath.WalkDir("/", func(path string, entry os.DirEntry, err error) error {
		if path == "/proc" || path == "/sys" {
			return filepath.SkipDir
		}
		fmt.Println(path)
		return err
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// callsPart prints how system calls end that a filter of plain numbers misses.
func callsPart() int {
	_, _, clone3 := unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0) // without arguments, a kernel that knows it answers EINVAL
	_, vsock := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	_, local := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	fmt.Println(clone3, vsock, local)
	return 0
}

// opensCount is how many files opensPart opens.
const opensCount = 10_000

// opensPart opens files and prints how long each took, in nanoseconds: one file
// again and again, and distinct ones that are not there.
func opensPart() int {
	for _, name := range []func(int) string{
		func(int) string { return "/etc/passwd" },
		func(i int) string { return "/tmp/" + strconv.Itoa(i) },
	} {
		began := time.Now()
		for i := range opensCount {
			if descriptor, err := syscall.Open(name(i), syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err == nil {
				_ = syscall.Close(descriptor)
			}
		}
		fmt.Println(int(time.Since(began)) / opensCount)
	}
	return 0
}

// asUser returns a command that runs the test program as an ordinary user.
func asUser(t *testing.T, program string, arguments ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the tests themselves run as an ordinary user")
	}
	const nobody = 65534
	folder, err := os.MkdirTemp("", "sandbox-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chown(folder, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, arguments...)
	c.Dir = folder
	c.Env = []string{"TMPDIR=" + folder, "PATH=/usr/bin:/bin", "HOME=" + folder}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return c
}
