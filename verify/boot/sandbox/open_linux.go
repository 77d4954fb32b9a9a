package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway/manifest"
)

// Sandbox is an open one. Its methods may be called at once.
type Sandbox struct {
	options    Options
	conditions []Condition
	wire       *wire
	limits     *limits
	supervisor *exec.Cmd
	crash      bytes.Buffer  // the supervisor's standard error; read once gone is closed
	gone       chan struct{} // the supervisor has ended, and with it all that was inside

	closing  sync.Once
	closeErr error

	mu      sync.Mutex
	number  uint64
	waiting map[uint64]chan<- reply
	current *Process // that runs or is being started; nil: none
}

// A reply is an answer with the descriptors that came beside it.
type reply struct {
	answer
	descriptors []int
}

// defaultShared is the size of a container's /dev/shm.
const defaultShared = 64 << 20

// mostTemp is the size of /tmp where nobody knows the grader's: enough for what
// servers leave there, and too little for a second copy of a model.
const mostTemp = 1 << 30

// defaultTemp is the size of /tmp on a machine with so many bytes of memory, of
// which a sandbox may use limit (0: all). It is whole MiB, and at least one.
func defaultTemp(machine, limit int64) int64 {
	size := int64(mostTemp)
	for _, memory := range []int64{machine, limit} {
		if memory > 0 {
			size = min(size, memory/2)
		}
	}
	return max(size>>20, 1) << 20
}

// machineMemory is this machine's, in bytes; 0 where the system does not say.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// gathered is where a machine keeps what its use brought: a grader's, being new,
// has nothing there. Programs start without it.
var gathered = []string{"/var/cache", "/var/log", "/var/spool", "/var/backups", "/srv", "/mnt", "/media"}

// leastMemory is enough to start a program and see it fail.
const leastMemory = 1 << 20

// Open makes a sandbox; it must be closed. An error that wraps ErrUnsupported
// says that this system or user may have none, any other that the options ask
// for what is not there.
func Open(ctx context.Context, o Options) (*Sandbox, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("open a sandbox: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open a sandbox: %w", context.Cause(ctx))
	}
	s := &Sandbox{options: o, waiting: map[uint64]chan<- reply{}}
	var err error
	if s.limits, err = makeLimits(o.Memory, o.CPUs); err != nil {
		return nil, fmt.Errorf("open a sandbox: %w", err)
	}
	if err := s.begin(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open a sandbox: %w", err)
	}
	go s.read()
	return s, nil
}

// complete checks the options and fills in what they leave open.
func (o *Options) complete() error {
	for _, folder := range []*string{&o.Submission, &o.Root} {
		if *folder == "" {
			*folder = "/"
		}
		if err := checkFolder(*folder); err != nil {
			return err
		}
		path, err := filepath.Abs(*folder)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return err
		}
		*folder = path
	}
	if o.Submission == "/" {
		return errors.New("no submission")
	}
	if o.At == "" {
		o.At = "/submission"
	}
	if !filepath.IsAbs(o.At) || filepath.Clean(o.At) != o.At || o.At == "/" || isOwn(o.At) || isBelow(o.At, "/proc") || isBelow(o.At, "/sys") || isBelow(o.At, "/dev") {
		return fmt.Errorf("the submission cannot be at %q", o.At)
	}
	if o.Memory > 0 && o.Memory < leastMemory {
		return fmt.Errorf("%d bytes of memory are too few for any program", o.Memory)
	}
	if o.SharedMemory.Bytes == 0 {
		o.SharedMemory.Bytes = defaultShared
	}
	if o.Temp.Bytes == 0 {
		o.Temp.Bytes = defaultTemp(machineMemory(), o.Memory)
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	hide := o.Hide
	if o.Root == "/" {
		hide = slices.Concat(hide, gathered)
	}
	o.Hide = nil
	for _, folder := range hide {
		if path, err := filepath.EvalSymlinks(folder); err == nil && path != "/" && filepath.IsAbs(path) {
			o.Hide = append(o.Hide, path)
		}
	}
	slices.Sort(o.Hide) // what is above comes first
	leaveOut := o.LeaveOut
	o.LeaveOut = nil
	for _, path := range leaveOut {
		if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil && folder != "/" && filepath.IsAbs(folder) {
			o.LeaveOut = append(o.LeaveOut, filepath.Join(folder, filepath.Base(path)))
		}
	}
	return nil
}

// begin starts the supervisor and hears whether it could build the sandbox.
func (s *Sandbox) begin(ctx context.Context) error {
	isRoot := os.Geteuid() == 0
	mapped := !isRoot || keepsItsUser()
	err := s.fork(mapped)
	if isRoot && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC)) {
		mapped = !mapped // a root without the capability: perhaps as an ordinary user; or no more user namespaces
		err = s.fork(mapped)
	}
	if err != nil {
		return unsupported(fmt.Errorf("new namespaces: %w", err))
	}
	stop := context.AfterFunc(ctx, func() { _ = s.supervisor.Process.Kill() })
	defer stop()
	host, _ := os.Hostname() // "" is left out
	o := &s.options
	order := setup{
		Root: rootPlan{Source: o.Root, Submission: o.Submission, At: o.At, NoExec: o.NoExec, Hide: o.Hide, LeaveOut: o.LeaveOut, Shared: o.SharedMemory, Temp: o.Temp, GPU: o.GPU, HostName: host, User: o.User},
		User: o.User, Mapped: mapped, Cores: s.limits.cores, CPUs: o.CPUs,
	}
	if err := s.wire.send(order, s.limits.descriptors()...); err != nil {
		return s.died(ctx, err)
	}
	var first ready
	if _, err := s.wire.receive(&first); err != nil {
		return s.died(ctx, err)
	}
	if first.Error != "" {
		return unsupported(errors.New(first.Error))
	}
	s.conditions = s.judge(first, mapped)
	return nil
}

// keepsItsUser reports whether this process is the root of a user namespace that
// lets nobody become another user, as unshare -Ur makes it (user_namespaces(7)).
func keepsItsUser() bool {
	setgroups, err := os.ReadFile("/proc/self/setgroups")
	return err == nil && string(bytes.TrimSpace(setgroups)) == "deny"
}

// unsupported is the error of what this system refuses.
func unsupported(refused error) error {
	err := fmt.Errorf("%w: %w", ErrUnsupported, refused)
	return manifest.WithHint(err, "root may have one, and so may a user where the settings user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns allow it; a container needs CAP_SYS_ADMIN")
}

// died says why the supervisor is gone.
func (s *Sandbox) died(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_ = s.supervisor.Process.Kill()
	<-s.gone
	if text := bytes.TrimSpace(s.crash.Bytes()); len(text) > 0 {
		return fmt.Errorf("its supervisor ended: %s", text)
	}
	return fmt.Errorf("its supervisor ended: %w", err)
}

// fork starts the supervisor. One thread starts it and waits for it: the system
// kills the process when the thread that started it ends, so that the sandbox
// goes when this program goes.
func (s *Sandbox) fork(mapped bool) error {
	near, far, err := newWires()
	if err != nil {
		return err
	}
	defer far.Close()
	s.supervisor = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{supervisorName}, Dir: "/", Env: []string{"GOTRACEBACK=single"},
		ExtraFiles: []*os.File{far}, Stderr: &s.crash, SysProcAttr: namespaces(mapped), WaitDelay: time.Second,
	}
	gone, started := make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.supervisor.Start()
		started <- err
		if err == nil {
			_ = s.supervisor.Wait() // how it ended does not matter
		}
		close(gone)
	}()
	if err := <-started; err != nil {
		_ = near.close()
		s.supervisor = nil
		return err
	}
	s.wire, s.gone = near, gone
	return nil
}

func namespaces(mapped bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
		Setsid:     true, // Ctrl-C at a terminal is for this program to handle
	}
	if mapped {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attributes
}

// Address returns the sandbox's own IPv4 address beyond loopback. A server that
// listens on 127.0.0.1 alone is not reached at it.
func (s *Sandbox) Address() string { return address }

// read hands each answer to who waits for it, until the supervisor is gone.
func (s *Sandbox) read() {
	for {
		var a answer
		descriptors, err := s.wire.receive(&a)
		if err != nil {
			break
		}
		s.mu.Lock()
		waiting, process := s.waiting[a.ID], s.current
		delete(s.waiting, a.ID)
		switch {
		case process == nil:
		case a.ID == process.request && a.Error == "":
			process.pid = a.PID
		case a.ID == 0 && a.PID == process.pid:
			s.current = nil
			go process.end(syscall.WaitStatus(a.Status), nil) // its output's writer may be slow
		}
		s.mu.Unlock()
		if waiting != nil {
			waiting <- reply{a, descriptors}
		} else {
			closeAll(descriptors) // who asked has given up
		}
	}
	<-s.gone
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, waiting := range s.waiting {
		close(waiting)
	}
	s.waiting = nil
	if s.current != nil && s.current.pid != 0 {
		go s.current.end(0, errors.New("killed with its sandbox"))
	}
}

// errClosed is of a sandbox that is closed, or whose supervisor was killed.
var errClosed = errors.New("the sandbox is closed")

// ask sends a request and waits for its answer. A descriptor in the answer is
// the caller's.
func (s *Sandbox) ask(ctx context.Context, order request, process *Process, descriptors ...int) (reply, error) {
	answered := make(chan reply, 1)
	s.mu.Lock()
	if s.waiting == nil {
		s.mu.Unlock()
		return reply{}, errClosed
	}
	s.number++
	order.ID = s.number
	s.waiting[order.ID] = answered
	if process != nil {
		process.request = order.ID
	}
	s.mu.Unlock()
	if err := s.wire.send(order, descriptors...); err != nil {
		return reply{}, errClosed
	}
	select {
	case got, ok := <-answered:
		if !ok {
			return reply{}, errClosed
		}
		if got.Error != "" {
			return got, remoteError(got.Error, got.Errno, got.Command)
		}
		return got, nil
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.waiting, order.ID)
		s.mu.Unlock()
		select {
		case got := <-answered: // it came at the same moment
			closeAll(got.descriptors)
		default:
		}
		return reply{}, context.Cause(ctx)
	}
}

// dialLimit is how long a dial may take that has no deadline of its own.
const dialLimit = 30 * time.Second

// Dial connects from inside to an address of numbers; it is made for
// http.Transport's DialContext. Errors wrap the system's, such as ECONNREFUSED.
func (s *Sandbox) Dial(ctx context.Context, network, to string) (net.Conn, error) {
	conn, err := s.dial(ctx, network, to)
	if err != nil {
		return nil, fmt.Errorf("dial %s in the sandbox: %w", to, err)
	}
	return conn, nil
}

func (s *Sandbox) dial(ctx context.Context, network, to string) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(to); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	limit := dialLimit
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	got, err := s.ask(ctx, request{Act: "dial", Network: network, Address: to, Duration: limit}, nil)
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return nil, errno // the address has been said
	}
	if err != nil {
		return nil, err
	}
	if len(got.descriptors) != 1 {
		closeAll(got.descriptors)
		return nil, io.ErrUnexpectedEOF
	}
	file := os.NewFile(uintptr(got.descriptors[0]), to)
	defer file.Close()
	return net.FileConn(file)
}

// Processes returns who is alive inside but for the supervisor.
func (s *Sandbox) Processes() ([]ProcessInfo, error) {
	got, err := s.ask(context.Background(), request{Act: "processes"}, nil)
	if err != nil {
		return nil, fmt.Errorf("list the processes of the sandbox: %w", err)
	}
	return got.Processes, nil
}

// Listening returns the TCP ports that something inside listens on, ascending.
func (s *Sandbox) Listening() ([]int, error) {
	got, err := s.ask(context.Background(), request{Act: "listening"}, nil)
	if err != nil {
		return nil, fmt.Errorf("list the ports of the sandbox: %w", err)
	}
	return got.Ports, nil
}

// KillAll ends all that is inside at once, and waits until it is gone.
func (s *Sandbox) KillAll() error {
	if _, err := s.ask(context.Background(), request{Act: "kill"}, nil); err != nil {
		return fmt.Errorf("end the processes of the sandbox: %w", err)
	}
	return nil
}

// traceLimit is how long a trace may take to be told, far beyond what the longest
// takes.
const traceLimit = time.Minute

// Trace returns what was done since the last Start, so far; nothing where the
// condition Traced does not hold.
func (s *Sandbox) Trace() (Trace, error) {
	ctx, cancel := context.WithTimeout(context.Background(), traceLimit)
	defer cancel()
	got, err := s.ask(ctx, request{Act: "trace"}, nil)
	if err != nil {
		return Trace{}, fmt.Errorf("read the trace of the sandbox: %w", err)
	}
	return got.Trace, nil
}

// Close ends all that is inside, waits for that, and removes what the sandbox
// had. It may be called again.
func (s *Sandbox) Close() error {
	s.closing.Do(func() {
		if s.supervisor != nil {
			_ = s.supervisor.Process.Kill() // an error means that it is gone
			<-s.gone
			_ = s.wire.close()
		}
		if s.limits != nil {
			if err := s.limits.remove(); err != nil {
				s.closeErr = fmt.Errorf("close the sandbox: %w", err)
			}
		}
	})
	return s.closeErr
}

// cores is a number of processors that is no less than the limit.
func cores(limit float64) int { return int(math.Ceil(limit)) }
