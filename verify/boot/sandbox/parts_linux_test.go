package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway/verify/boot/sandbox"
)

// partVariable makes the test program one of its parts.
const partVariable = "SLIPWAY_TEST_PART"

var parts = map[string]func() int{"opener": openerPart, "keeper": keeperPart, "nested": nestedPart, "opens": opensPart, "list": listPart, "calls": callsPart, "sends": sendsPart, "messages": messagesPart, "limited": limitedPart, "executes": executesPart}

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

// sendsPart sends datagrams in the ways that need no connected socket, the last
// two by one call; none of them arrives anywhere.
func sendsPart() int {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_ = unix.Sendto(socket, nil, 0, &unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}, Port: 53}) // all are refused: there is no such network
	_ = unix.Sendmsg(socket, []byte("x"), nil, &unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 2}, Port: 53}, 0)
	var messages [2]message
	for i := range messages {
		address := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: 53 << 8, Addr: [4]byte{192, 0, 2, byte(3 + i)}}
		messages[i].head = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&address)), Namelen: unix.SizeofSockaddrInet4}
	}
	_, _, _ = unix.Syscall6(unix.SYS_SENDMMSG, uintptr(socket), uintptr(unsafe.Pointer(&messages)), uintptr(len(messages)), 0, 0, 0)
	runtime.KeepAlive(&messages)
	return 0
}

// How executesPart executes: so many variables are one text, of as many bytes as a
// variable of its own says, at most longText.
const (
	variablesCount = 1023
	longText       = 65_000
	lengthVariable = "SLIPWAY_TEST_LENGTH"
)

// executesPart tries to become a Python that is there and cannot run.
func executesPart() int {
	length, err := strconv.Atoi(os.Getenv(lengthVariable))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	text := append(bytes.Repeat([]byte("x"), length), 0)
	var variables [variablesCount + 1]*byte
	for i := range variablesCount {
		variables[i] = &text[0]
	}
	path := []byte("/submission/python\x00")
	argv := [2]*byte{&path[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&argv)), uintptr(unsafe.Pointer(&variables)))
	runtime.KeepAlive(&variables)
	if errno != unix.ENOEXEC && errno != unix.E2BIG {
		fmt.Println(errno)
		return 1
	}
	return 0
}

// message is struct mmsghdr.
type message struct {
	head unix.Msghdr
	_    uint32 // how much was sent
}

// messagesPart sends to a pair of connected sockets and prints how long a call
// takes, in nanoseconds: of write, which is not traced, and of sendmsg.
func messagesPart() int {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	buffer := make([]byte, 1)
	for _, send := range []func() error{
		func() error { _, err := unix.Write(pair[0], buffer); return err },
		func() error { return unix.Sendmsg(pair[0], buffer, nil, nil, 0) },
	} {
		began := time.Now()
		for range opensCount {
			if err := send(); err != nil {
				fmt.Println(err)
				return 1
			}
			if _, err := unix.Read(pair[1], buffer); err != nil {
				fmt.Println(err)
				return 1
			}
		}
		fmt.Println(int(time.Since(began)) / opensCount)
	}
	return 0
}
