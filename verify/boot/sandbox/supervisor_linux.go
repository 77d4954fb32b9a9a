package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A setup is what the supervisor is told first; descriptors of cgroup.procs
// files come with it.
type setup struct {
	Root   rootPlan
	User   int
	Mapped bool    // in a user namespace that knows one user
	Cores  int     // where no cgroup limits the processors; 0: all
	CPUs   float64 // of the limit; 0: none
}

// A ready is the supervisor's first answer.
type ready struct {
	Error    string            // the first act that was refused
	Missing  map[string]string // by condition, why it is not to be had
	Landlock int               // the kernel's version of it, 0 if none
}

// A request is a later message to the supervisor; each is answered under its
// number.
type request struct {
	ID       uint64
	Act      string // start, signal, processes, listening, kill, trace, dial
	Argv     []string
	Env      []string
	Dir      string
	PID      int
	Signal   int
	Network  string
	Address  string
	Duration time.Duration
}

// An answer of number 0 tells of the end of a process.
type answer struct {
	ID        uint64
	Error     string
	Errno     int  // of Error, 0 if none
	Command   bool // Error is of the command itself
	PID       int
	Status    int // as wait4 has it
	Processes []ProcessInfo
	Ports     []int
	Trace     Trace
}

// supervisor is the first process of the sandbox. All that is inside descends
// from it and ends with it.
type supervisor struct {
	wire   *wire
	setup  setup
	limits []int // descriptors of cgroup.procs
	ready  ready

	sending sync.Mutex

	children *children

	mu       sync.Mutex
	recorder *recorder
}

// supervisorMain runs until the other end of the wire is gone. The system ends
// everything else in the namespace with it.
func supervisorMain() int {
	// Signals from inside must not end it. They are caught, not ignored: what is
	// ignored would stay so in what it starts.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals)
	go func() {
		for range signals {
		}
	}()
	w, err := wireOf(wireDescriptor)
	if err != nil {
		return 1
	}
	s := &supervisor{wire: w, children: newChildren(waitForAny)}
	if s.limits, err = w.receive(&s.setup); err != nil {
		return 1
	}
	if err := s.prepare(); err != nil {
		_ = w.send(ready{Error: err.Error()})
		return 1
	}
	if err := w.send(s.ready); err != nil {
		return 1
	}
	for {
		var order request
		descriptors, err := w.receive(&order)
		if err != nil {
			return 0
		}
		go s.serve(order, descriptors)
	}
}

// prepare builds the sandbox, and finds out with a launch that becomes nothing
// what it can take on.
func (s *supervisor) prepare() error {
	missing, err := s.setup.Root.build()
	if err != nil {
		return err
	}
	if err := raiseNetwork(); err != nil {
		return err
	}
	go s.children.reap()
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	s.ready.Missing = missing
	pid, refused, err := s.launch(launch{Dry: true, Argv: []string{"/"}, Filter: true, Trace: true, Confine: true}, null.Fd())
	for condition, why := range refused {
		s.ready.Missing[condition] = why
	}
	if err == nil {
		_ = unix.Kill(pid, unix.SIGKILL) // an error means that it has ended
		s.children.status(pid)
	}
	if refused[MemoryLimit] != "" {
		s.setup.Cores = cores(s.setup.CPUs)
	}
	if version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno == 0 {
		s.ready.Landlock = int(version)
	}
	return err
}

// serve answers one request.
func (s *supervisor) serve(order request, descriptors []int) {
	defer closeAll(descriptors)
	reply, passed, err := answer{}, -1, error(nil)
	switch order.Act {
	case "start":
		reply.PID, err = s.start(order, descriptors)
	case "signal":
		err = unix.Kill(order.PID, unix.Signal(order.Signal))
	case "processes":
		reply.Processes, err = processes()
	case "listening":
		reply.Ports, err = listening()
	case "kill":
		err = s.killAll()
	case "trace":
		reply.Trace = s.currentTrace()
	case "dial":
		var file *os.File
		if file, err = dial(order); err == nil {
			defer file.Close()
			passed = int(file.Fd())
		}
	default:
		err = fmt.Errorf("no act %q", order.Act)
	}
	reply.ID = order.ID
	if err != nil {
		var errno syscall.Errno
		if errors.As(err, &errno) {
			reply.Errno = int(errno)
		}
		reply.Error, reply.Command = err.Error(), errors.Is(err, errCommand)
	}
	if passed >= 0 {
		s.send(reply, passed)
	} else {
		s.send(reply)
	}
	if order.Act == "start" && err == nil {
		s.send(answer{PID: reply.PID, Status: s.children.status(reply.PID)})
	}
}

// send ends the sandbox if nobody hears it.
func (s *supervisor) send(message answer, descriptors ...int) {
	s.sending.Lock()
	defer s.sending.Unlock()
	if err := s.wire.send(message, descriptors...); err != nil {
		os.Exit(1)
	}
}

// start runs a command. Its output is the only descriptor.
func (s *supervisor) start(order request, descriptors []int) (int, error) {
	if len(descriptors) != 1 || len(order.Argv) == 0 {
		return 0, errors.New("a command without arguments or output")
	}
	for _, name := range []string{"HOME", "TMPDIR"} {
		if folder := variable(order.Env, name); filepath.IsAbs(folder) {
			s.makeFolder(filepath.Clean(folder))
		}
	}
	trace := newRecorder(time.Now())
	s.mu.Lock()
	s.recorder = trace
	s.mu.Unlock()
	has := func(condition string) bool { return s.ready.Missing[condition] == "" }
	pid, _, err := s.launch(launch{
		Argv: order.Argv, Env: order.Env, Dir: order.Dir,
		Filter: has(NoPrivilege), Trace: has(Traced), Confine: has(ConfinedWrites),
	}, uintptr(descriptors[0]))
	return pid, err
}

// makeFolder makes a folder and those above it for the user. Where the root is
// read-only it makes none: a HOME that is not there is a thing to rehearse too.
func (s *supervisor) makeFolder(folder string) {
	if _, err := os.Stat(folder); err == nil || folder == "/" {
		return
	}
	s.makeFolder(filepath.Dir(folder))
	if os.Mkdir(folder, 0o755) == nil && !s.setup.Mapped {
		_ = os.Chown(folder, s.setup.User, s.setup.User)
	}
}

// launch starts a launcher and returns when it has become the command, or, dry,
// what it was refused.
func (s *supervisor) launch(order launch, output uintptr) (pid int, refused map[string]string, err error) {
	near, far, err := newWires()
	if err != nil {
		return 0, nil, err
	}
	defer near.close()
	has := func(condition string) bool { return order.Dry || s.ready.Missing[condition] == "" }
	if has(AnotherUser) { // else it stays root, without what a container's root lacks
		order.User, order.SetUser = s.setup.User, s.setup.User != 0 && !s.setup.Mapped
	}
	if has(CPULimit) {
		order.Cores = s.setup.Cores
	}
	pid, err = s.fork(output, far)
	_ = far.Close()
	if errors.Is(err, syscall.ENOENT) && s.setup.Root.Source != "/" {
		return 0, nil, errors.New("start the launcher: this program needs a C library that the other root lacks; one that is built with CGO_ENABLED=0 needs none")
	}
	if err != nil {
		return 0, nil, fmt.Errorf("start the launcher: %w", err)
	}
	limits := s.limits
	if s.ready.Missing[MemoryLimit] != "" {
		limits = nil
	}
	if err := near.send(order, limits...); err != nil {
		return 0, nil, fmt.Errorf("instruct the launcher: %w", err)
	}
	refused, err = s.follow(near, order.Dry)
	return pid, refused, err
}

// fork starts the launcher, in a user namespace of its own where only that gives
// it another user.
func (s *supervisor) fork(output uintptr, far *os.File) (int, error) {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if user := s.setup.User; s.setup.Mapped && user != 0 {
		attributes.Cloneflags = syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: 0, Size: 1}}
		attributes.GidMappings = attributes.UidMappings
	}
	null, err := os.Open("/dev/null")
	if err != nil {
		return 0, err
	}
	defer null.Close()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{launcherName}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: []uintptr{null.Fd(), output, output, far.Fd()}, Sys: attributes,
	})
	if err != nil {
		return 0, err
	}
	s.children.add()
	return pid, nil
}

// follow hears a launcher out, until it is another program: then its wire
// closes.
func (s *supervisor) follow(near *wire, dry bool) (map[string]string, error) {
	for first := true; ; first = false {
		var said launched
		descriptors, err := near.receive(&said)
		if errors.Is(err, io.EOF) && !first {
			return nil, nil
		}
		if errors.Is(err, io.EOF) {
			return nil, errors.New("start the launcher: it ended before it was one")
		}
		if err != nil {
			return nil, err
		}
		if said.Error != "" {
			closeAll(descriptors)
			return nil, remoteError(said.Error, said.Errno, said.Command)
		}
		if dry {
			closeAll(descriptors)
			return said.Refused, nil
		}
		for _, listener := range descriptors {
			go s.recorder.listen(listener)
		}
	}
}

// killAll ends all that is inside. Who loses its parent becomes the supervisor's
// child, so that no child means nobody.
func (s *supervisor) killAll() error {
	if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill what is inside: %w", err)
	}
	s.children.none()
	return nil
}

func (s *supervisor) currentTrace() Trace {
	s.mu.Lock()
	current := s.recorder
	s.mu.Unlock()
	if current == nil {
		return Trace{}
	}
	return current.snapshot()
}

// dial connects from inside and returns the socket. The address is a number: the
// sandbox has no names to ask for.
func dial(order request) (*os.File, error) {
	ctx, cancel := context.WithTimeout(context.Background(), order.Duration)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, order.Network, order.Address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	socket, ok := conn.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("dial %s: no socket", order.Network)
	}
	return socket.File()
}

// errCommand is of errors for which a command itself is to blame: its program,
// or its folder.
var errCommand = errors.New("the command cannot be executed")

// A commandError is one of them; it reads as the error that it wraps.
type commandError struct{ error }

func (e commandError) Unwrap() []error { return []error{errCommand, e.error} }

// remoteError is an error that another part told, with its number where it had
// one.
func remoteError(text string, errno int, command bool) error {
	err := errors.New(text)
	if errno != 0 {
		err = &toldError{text, syscall.Errno(errno)}
	}
	if command {
		err = commandError{err}
	}
	return err
}

type toldError struct {
	text  string
	errno syscall.Errno
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.errno }
