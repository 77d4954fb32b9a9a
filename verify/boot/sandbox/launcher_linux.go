package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// A launch is what the launcher becomes, and under what. Descriptors of
// cgroup.procs files come with it.
type launch struct {
	Argv    []string
	Env     []string
	Dir     string
	User    int
	SetUser bool // the user has to be taken on; else the launcher is it already
	Cores   int  // how many processors it may run on; 0: all
	Filter  bool
	Trace   bool
	Confine bool // by Landlock
	Dry     bool // tries it all, and becomes nothing
}

// A launched is the launcher's answer; a listener's descriptor may come with it.
type launched struct {
	Error   string
	Errno   int               // of Error, 0 if none
	Command bool              // Error is of the command itself
	Refused map[string]string // of a dry run: by condition, why it was not to be had
}

// writable are the folders that a submission may write to, as far as their mounts
// and modes let it.
var writable = []string{"/tmp", "/var/tmp", "/run", "/dev", "/proc"}

// launcherMain is the process that turns into the submission. Each restriction
// is its own, so that it takes them on before the submission's first
// instruction.
func launcherMain() int {
	runtime.LockOSThread() // system call filters and capabilities are a thread's
	w, err := wireOf(wireDescriptor)
	if err != nil {
		return 1
	}
	var order launch
	limits, err := w.receive(&order)
	if err != nil {
		return 1
	}
	l := launcher{launch: order, wire: w, refused: map[string]string{}}
	err = l.run(limits)
	answer := launched{Refused: l.refused}
	if err != nil {
		var errno syscall.Errno
		if errors.As(err, &errno) {
			answer.Errno = int(errno)
		}
		answer.Error, answer.Command = err.Error(), errors.Is(err, errCommand)
	}
	if w.send(answer) != nil || err != nil {
		return 1
	}
	return 0
}

type launcher struct {
	launch
	wire    *wire
	refused map[string]string
}

// run returns only when the launcher became nothing.
func (l *launcher) run(limits []int) error {
	if err := l.try(MemoryLimit, join(limits)); err != nil {
		return err
	}
	closeAll(limits)
	if err := l.yield(); err != nil {
		return err
	}
	if l.Cores > 0 {
		if err := l.try(CPULimit, useCores(l.Cores)); err != nil {
			return err
		}
	}
	for _, descriptor := range openDescriptors() {
		if descriptor > 2 {
			unix.CloseOnExec(descriptor)
		}
	}
	// What was ignored stays ignored in another program, what was caught does
	// not: the submission starts with every signal at its default.
	signal.Notify(make(chan os.Signal, 1))
	if err := l.try(AnotherUser, l.takeUser()); err != nil {
		return err
	}
	program, err := l.find()
	if err != nil {
		return commandError{err}
	}
	listener, err := l.restrict()
	if err != nil || l.Dry {
		return err
	}
	if listener >= 0 {
		if err := l.wire.send(launched{}, listener); err != nil {
			return err
		}
		_ = unix.Close(listener)
	} else if err := l.wire.send(launched{}); err != nil {
		return err
	}
	return commandError{&os.PathError{Op: "start", Path: program, Err: syscall.Exec(program, l.Argv, l.Env)}}
}

// try notes what a dry run was refused; in earnest a refusal is an error.
func (l *launcher) try(condition string, err error) error {
	if err == nil || !l.Dry {
		return err
	}
	l.refused[condition] = err.Error()
	return nil
}

// join puts this process under the limits whose cgroup.procs are given.
func join(limits []int) error {
	for _, limit := range limits {
		if _, err := unix.Write(limit, []byte("0")); err != nil { // 0 is the writer
			return fmt.Errorf("join a cgroup: %w", err)
		}
	}
	return nil
}

// mostProcesses is how many processes and threads a submission may have: more
// than a server with all its workers, and few enough to leave the machine
// usable, and to be ended in a moment.
const mostProcesses = 16 << 10

// yield makes this process the first that the system ends where memory is short,
// and bounds the number of its descendants: what goes wrong inside must not take
// along what is outside. Root's processes are not counted.
func (l *launcher) yield() error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return fmt.Errorf("getrlimit: %w", err)
	}
	limit.Max = min(limit.Max, mostProcesses)
	limit.Cur = min(limit.Cur, limit.Max)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return fmt.Errorf("setrlimit: %w", err)
	}
	return nil
}

// useCores keeps this process to the first processors of those it may use.
func useCores(count int) error {
	var all, few unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	for core := 0; core < len(all)*64 && few.Count() < count; core++ {
		if all.IsSet(core) {
			few.Set(core)
		}
	}
	// Of every thread, since any may start the program's threads.
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		var id int
		if _, err := fmt.Sscan(thread.Name(), &id); err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &few); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("sched_setaffinity: %w", err)
		}
	}
	return nil
}

// takeUser becomes the user, or a root without what a container's root lacks.
func (l *launcher) takeUser() error {
	if l.User == 0 {
		return dropCapabilities()
	}
	if !l.SetUser {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := syscall.Setgid(l.User); err != nil {
		return fmt.Errorf("setgid: %w", err)
	}
	if err := syscall.Setuid(l.User); err != nil {
		return fmt.Errorf("setuid: %w", err)
	}
	return nil
}

// containerRoot are the capabilities that a container's root usually has, but
// for making devices, raw sockets and chroot.
const containerRoot uint32 = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_KILL |
	1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_NET_BIND_SERVICE

func dropCapabilities() error {
	for capability := 0; capability <= unix.CAP_LAST_CAP; capability++ {
		if capability < 32 && containerRoot&(1<<capability) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop a capability: %w", err) // EINVAL: this kernel has no such capability
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: containerRoot, Permitted: containerRoot}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}

// find goes to the command's folder and returns its program.
func (l *launcher) find() (string, error) {
	dir := l.Dir
	if dir == "" {
		dir = "/"
	}
	if err := os.Chdir(dir); err != nil {
		return "", err
	}
	if l.Dry || strings.Contains(l.Argv[0], "/") {
		return l.Argv[0], nil
	}
	for _, folder := range filepath.SplitList(variable(l.Env, "PATH")) {
		path := filepath.Join(folder, l.Argv[0])
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("start %s: not in the PATH of the sandbox", l.Argv[0])
}

// variable returns the last value of a variable in an environment.
func variable(environment []string, name string) string {
	value := ""
	for _, entry := range environment {
		if key, text, ok := strings.Cut(entry, "="); ok && key == name {
			value = text
		}
	}
	return value
}

// restrict takes on what cannot be shed again and returns the listener of traced
// system calls, or -1.
func (l *launcher) restrict() (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("no_new_privs: %w", err)
	}
	if l.Confine {
		if err := l.try(ConfinedWrites, confine()); err != nil {
			return -1, err
		}
	}
	if !l.Filter {
		return -1, nil
	}
	if l.Trace {
		listener, err := install(true)
		if err == nil || !l.Dry {
			return listener, err
		}
		l.refused[Traced] = err.Error()
	}
	listener, err = install(false)
	return listener, l.try(NoPrivilege, err)
}

// confine lets this process write in the writable folders only, as far as this
// kernel's Landlock can.
func confine() error {
	return landlock.V5.BestEffort().RestrictPaths(
		landlock.RODirs("/").WithIoctlDev(),
		landlock.RWDirs(writable...).WithRefer().WithIoctlDev().IgnoreIfMissing(),
	)
}
