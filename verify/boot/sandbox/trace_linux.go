package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds of a trace, so that a submission that opens for ever costs a known
// amount of memory: distinct things, and the length of a program's arguments.
const (
	mostTraced    = 100_000
	mostArguments = 64
	mostArgument  = 1 << 10 // bytes
)

// recorder keeps a trace. The processes wait while it looks at one of their
// system calls, so that it does no more than it must.
type recorder struct {
	began time.Time

	mu          sync.Mutex
	opened      map[string]int // position in trace.Opened, or inFolder
	programs    map[string]bool
	connections map[string]bool
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
		r.recordExec(caller, unix.AT_FDCWD, args[0], args[1], at)
	case unix.SYS_EXECVEAT:
		r.recordExec(caller, int32(args[0]), args[1], args[2], at)
	case unix.SYS_CONNECT:
		r.recordConnect(caller, args[1], args[2], at)
	case unix.SYS_SENDTO:
		r.recordConnect(caller, args[4], args[5], at)
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
	case seen || !r.room(len(r.opened)):
	case isFolder:
		r.opened[path] = inFolder
	default:
		r.opened[path] = len(r.trace.Opened)
		o.Path = path
		r.trace.Opened = append(r.trace.Opened, o)
	}
}

// room reports whether one more distinct thing may be kept.
func (r *recorder) room(kept int) bool {
	if kept >= mostTraced {
		r.trace.Dropped++
		return false
	}
	return true
}

// recordExec leaves out what a search through PATH did not find.
func (r *recorder) recordExec(caller process, folder int32, name, argv uint64, at time.Duration) {
	path, ok := caller.path(folder, name)
	if !ok || unix.Access(caller.fromHere(path), unix.X_OK) != nil {
		return
	}
	arguments := caller.arguments(argv)
	key := path + "\x00" + strings.Join(arguments, "\x00")
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.programs[key] && r.room(len(r.programs)) {
		r.programs[key] = true
		r.trace.Programs = append(r.trace.Programs, Program{Path: path, Argv: arguments, At: at})
	}
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
	if !r.connections[text] && r.room(len(r.connections)) {
		r.connections[text] = true
		r.trace.Connections = append(r.trace.Connections, Connection{Address: text, At: at})
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

// process is one whose memory and folders are looked at.
type process uint32

// read reads memory until the end of b or of what is mapped, and returns how
// much. A transfer stops at the first part that it cannot make whole, so that
// the parts are pages.
func (p process) read(from uint64, b []byte) int {
	if len(b) == 0 || from == 0 {
		return 0
	}
	page := uint64(os.Getpagesize())
	var parts []unix.RemoteIovec
	for at, end := from, from+uint64(len(b)); at < end; {
		next := min(end, (at/page+1)*page)
		parts = append(parts, unix.RemoteIovec{Base: uintptr(at), Len: int(next - at)})
		at = next
	}
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	n, err := unix.ProcessVMReadv(int(p), local, parts, 0)
	if err != nil {
		return 0
	}
	return n
}

// text reads a string that ends with NUL, at most limit bytes of it.
func (p process) text(from uint64, limit int) (string, bool) {
	// Most paths are short: a second read is rarer than a long copy.
	for _, size := range []int{min(256, limit), limit} {
		b := make([]byte, size)
		b = b[:p.read(from, b)]
		if end := bytes.IndexByte(b, 0); end >= 0 {
			return string(b[:end]), true
		}
		if size == limit && len(b) > 0 && limit < unix.PathMax {
			return string(b), true // an argument, cut
		}
	}
	return "", false
}

// path reads a path and makes it absolute, against an open folder or, for
// AT_FDCWD, the current one. An empty path is the open file itself.
func (p process) path(folder int32, from uint64) (string, bool) {
	name, ok := p.text(from, unix.PathMax)
	if !ok {
		return "", false
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name), true
	}
	link := "/proc/" + strconv.Itoa(int(p)) + "/cwd"
	if folder != unix.AT_FDCWD {
		link = fmt.Sprintf("/proc/%d/fd/%d", p, folder)
	} else if name == "" {
		return "", false
	}
	base, err := os.Readlink(link)
	if err != nil {
		return "", false
	}
	return filepath.Join(base, name), true
}

// fromHere is where this process finds what the other means by a path: they
// share a root, not an identity.
func (p process) fromHere(path string) string {
	for _, self := range []string{"/proc/self/", "/proc/thread-self/"} {
		if rest, ok := strings.CutPrefix(path, self); ok {
			return "/proc/" + strconv.Itoa(int(p)) + "/" + rest
		}
	}
	return path
}

// look finds what a path leads to, and its own name: links, and folders of
// /proc that stand for others, give things many names. The name is "" where it
// is no file's.
func (p process) look(path string) (exists, isFolder bool, real string) {
	descriptor, err := unix.Open(p.fromHere(path), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR), false, ""
	}
	defer unix.Close(descriptor)
	var stat unix.Stat_t
	if err := unix.Fstat(descriptor, &stat); err != nil {
		return true, false, ""
	}
	real, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(descriptor))
	if err != nil || !filepath.IsAbs(real) || stat.Nlink == 0 {
		real = "" // a pipe, a socket, a file that was removed
	}
	return true, stat.Mode&unix.S_IFMT == unix.S_IFDIR, real
}

// arguments reads an argv.
func (p process) arguments(from uint64) []string {
	const width = 8 // of a pointer; every processor that is traced has 64 bits
	var arguments []string
	pointers := make([]byte, mostArguments*width)
	pointers = pointers[:p.read(from, pointers)]
	for ; len(pointers) >= width; pointers = pointers[width:] {
		pointer := binary.NativeEndian.Uint64(pointers)
		text, ok := p.text(pointer, mostArgument)
		if pointer == 0 || !ok {
			break
		}
		arguments = append(arguments, text)
	}
	return arguments
}
