package sandbox

import (
	"encoding/binary"
	"net/netip"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds of a trace, so that a submission that opens for ever costs a known
// amount of memory: distinct things of each kind, the bytes of them all, and the
// length of a program's arguments.
const (
	mostTraced      = 100_000
	mostTracedBytes = 64 << 20
	mostArguments   = 64
	mostArgument    = 1 << 10 // bytes

	mostInvocations = 32        // programs of which all is kept that starts them again
	mostInvocation  = 256 << 10 // bytes of the arguments and environment of one
	mostTexts       = 1 << 10   // in each of these
	mostText        = 64 << 10  // bytes of one
)

// recorder keeps a trace. The processes wait while it looks at one of their
// system calls, so that it does no more than it must.
type recorder struct {
	began time.Time

	mu          sync.Mutex
	opened      map[string]int // position in trace.Opened, or inFolder
	programs    map[string]bool
	connections map[string]bool
	invocations int
	bytes       int // of what is kept, but for invocations
	trace       Trace
}

// inFolder marks a path that is a folder, which a trace leaves out.
const inFolder = -1

func newRecorder(began time.Time) *recorder {
	return &recorder{began: began, opened: map[string]int{}, programs: map[string]bool{}, connections: map[string]bool{}}
}

func (r *recorder) snapshot() Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	trace := r.trace
	trace.Opened = append([]Opened(nil), trace.Opened...)
	trace.Programs = append([]Program(nil), trace.Programs...)
	trace.Connections = append([]Connection(nil), trace.Connections...)
	return trace
}

// notification is the kernel's struct seccomp_notif, response its
// seccomp_notif_resp (seccomp_unotify(2)).
type notification struct {
	ID    uint64
	PID   uint32 // of the thread, as this process numbers it
	Flags uint32
	Call  int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

type response struct {
	ID    uint64
	Value int64
	Error int32
	Flags uint32
}

// continueCall is SECCOMP_USER_NOTIF_FLAG_CONTINUE: the call goes on as if
// nobody had looked.
const continueCall = 1

// setFlagsRequest is SECCOMP_IOCTL_NOTIF_SET_FLAGS, _IOW('!', 4, __u64).
const setFlagsRequest = 0x40082104

// listen records what the listener announces, until nobody is left under its
// filter. Every call goes on, whatever becomes of its record.
func (r *recorder) listen(listener int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer unix.Close(listener)
	// Waking each other on one processor spares both sides a wait; older kernels
	// than 6.6 do without.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), setFlagsRequest, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	for {
		var call notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&call)))
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.ENOENT: // the caller died meanwhile, or all did
			if deserted(listener) {
				return
			}
			continue
		case errno != 0:
			return
		}
		r.record(&call)
		answer := response{ID: call.ID, Flags: continueCall}
		// ENOENT: the caller died meanwhile.
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
	}
}

func deserted(listener int) bool {
	poll := []unix.PollFd{{Fd: int32(listener)}}
	_, err := unix.Poll(poll, 0)
	return err == nil && poll[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
}

// record reads a call's arguments from the caller's memory. What cannot be read
// the call itself will refuse as well.
func (r *recorder) record(call *notification) {
	at := time.Since(r.began)
	caller := process(call.PID)
	args := &call.Args
	switch int(call.Call) {
	case unix.SYS_OPENAT:
		r.recordOpen(caller, int32(args[0]), args[1], args[2], at)
	case unix.SYS_OPENAT2:
		var how [8]byte // flags come first in struct open_how
		if caller.read(args[2], how[:]) == len(how) {
			r.recordOpen(caller, int32(args[0]), args[1], binary.NativeEndian.Uint64(how[:]), at)
		}
	case unix.SYS_EXECVE:
		r.recordExec(caller, unix.AT_FDCWD, args[0], args[1], args[2], at)
	case unix.SYS_EXECVEAT:
		r.recordExec(caller, int32(args[0]), args[1], args[2], args[3], at)
	case unix.SYS_CONNECT:
		r.recordConnect(caller, args[1], args[2], at)
	case unix.SYS_SENDTO:
		r.recordConnect(caller, args[4], args[5], at)
	case unix.SYS_SENDMSG:
		r.recordMessages(caller, args[1], 1, at)
	case unix.SYS_SENDMMSG:
		r.recordMessages(caller, args[1], args[2], at)
	case openAMD64:
		r.recordOpen(caller, unix.AT_FDCWD, args[0], args[1], at)
	case creatAMD64:
		r.recordOpen(caller, unix.AT_FDCWD, args[0], unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, at)
	}
}

// The numbers of open and creat on x86-64. The system of arm64 has neither, and
// the filter announces neither there.
const (
	openAMD64  = 2
	creatAMD64 = 85
)

func (r *recorder) recordOpen(caller process, folder int32, name, flags uint64, at time.Duration) {
	path, ok := caller.path(folder, name)
	if !ok {
		return
	}
	written := flags&unix.O_ACCMODE != unix.O_RDONLY || flags&(unix.O_CREAT|unix.O_TRUNC) != 0
	r.mu.Lock()
	defer r.mu.Unlock()
	i, seen := r.opened[path]
	if seen && (i == inFolder || r.trace.Opened[i].Exists && (r.trace.Opened[i].Written || !written)) {
		return
	}
	exists, isFolder, real := caller.look(path)
	o := Opened{Written: written, Exists: exists, At: at}
	r.keepOpened(path, o, isFolder)
	if real != path && real != "" {
		r.keepOpened(real, o, isFolder)
	}
}

// keepOpened adds what was opened under a path to what is known of it.
func (r *recorder) keepOpened(path string, o Opened, isFolder bool) {
	i, seen := r.opened[path]
	switch {
	case seen && i != inFolder:
		r.trace.Opened[i].Exists = r.trace.Opened[i].Exists || o.Exists
		r.trace.Opened[i].Written = r.trace.Opened[i].Written || o.Written
	case seen || !r.room(len(r.opened), len(path)):
	case isFolder:
		r.opened[path] = inFolder
	default:
		r.opened[path] = len(r.trace.Opened)
		o.Path = path
		r.trace.Opened = append(r.trace.Opened, o)
	}
}

// room reports whether one more distinct thing of so many bytes may be kept.
func (r *recorder) room(kept, bytes int) bool {
	if kept >= mostTraced || r.bytes+bytes > mostTracedBytes {
		r.trace.Dropped++
		return false
	}
	r.bytes += bytes
	return true
}

// recordExec leaves out what a search through PATH did not find.
func (r *recorder) recordExec(caller process, folder int32, name, argv, environment uint64, at time.Duration) {
	path, ok := caller.path(folder, name)
	if !ok || unix.Access(caller.fromHere(path), unix.X_OK) != nil {
		return
	}
	budget := mostArguments * mostArgument
	arguments, _ := caller.texts(argv, mostArguments, mostArgument, &budget)
	key := path + "\x00" + strings.Join(arguments, "\x00")
	r.mu.Lock()
	seen, wanted := r.programs[key], r.invocations < mostInvocations
	r.mu.Unlock()
	if seen {
		return
	}
	p := Program{Path: path, Argv: arguments, PID: int(caller), At: at}
	python := false
	if wanted { // looked at without the lock: whoever wants the trace need not wait for this
		line := caller.firstLine(path)
		if python = isPython(path) || isPython(line); python {
			p.Python = caller.invocation(line, argv, environment)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.programs[key] || !r.room(len(r.programs), len(key)) {
		return
	}
	r.programs[key] = true
	if python {
		r.invocations++
	}
	r.trace.Programs = append(r.trace.Programs, p)
}

// isPython reports whether a path, or the first line of a script, names Python.
func isPython(command string) bool {
	program, _, _ := strings.Cut(command, " ")
	return strings.HasPrefix(filepath.Base(program), "python")
}

// recordConnect keeps addresses of the Internet; sockets of other families stay
// on this machine.
func (r *recorder) recordConnect(caller process, where, length uint64, at time.Duration) {
	raw := make([]byte, min(length, unix.SizeofSockaddrAny))
	text := internetAddress(raw[:caller.read(where, raw)])
	if text == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.connections[text] && r.room(len(r.connections), len(text)) {
		r.connections[text] = true
		r.trace.Connections = append(r.trace.Connections, Connection{Address: text, At: at})
	}
}

// messageBytes is the size of a struct mmsghdr, which begins with a struct
// msghdr, which begins with the address and its length.
const messageBytes = 64

// mostMessages is how many messages of one call are looked at.
const mostMessages = 64

// recordMessages keeps the addresses of messages that have one.
func (r *recorder) recordMessages(caller process, from, count uint64, at time.Duration) {
	var head [pointerBytes + 4]byte
	for i := range min(count, mostMessages) {
		if caller.read(from+i*messageBytes, head[:]) < len(head) {
			return
		}
		where, length := binary.NativeEndian.Uint64(head[:]), binary.NativeEndian.Uint32(head[pointerBytes:])
		if where != 0 {
			r.recordConnect(caller, where, uint64(length), at)
		}
	}
}

// internetAddress reads a sockaddr_in or sockaddr_in6; "" for another.
func internetAddress(raw []byte) string {
	if len(raw) < 8 {
		return ""
	}
	port := binary.BigEndian.Uint16(raw[2:])
	switch binary.NativeEndian.Uint16(raw) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), port).String()
	case unix.AF_INET6:
		if len(raw) < 24 {
			return ""
		}
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])).Unmap(), port).String()
	}
	return ""
}
