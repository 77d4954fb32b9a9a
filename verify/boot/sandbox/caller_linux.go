package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

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

// pointerBytes is a pointer's width; every processor that is traced has 64 bits.
const pointerBytes = 8

// texts reads an argv or an environment: at most count texts of at most limit
// bytes, and no more than budget bytes together, of which it takes what it keeps.
// It reports whether that is all of it.
func (p process) texts(from uint64, count, limit int, budget *int) (texts []string, whole bool) {
	whole = true
	pointers := make([]byte, (count+1)*pointerBytes)
	for pointers = pointers[:p.read(from, pointers)]; len(pointers) >= pointerBytes; pointers = pointers[pointerBytes:] {
		pointer := binary.NativeEndian.Uint64(pointers)
		if pointer == 0 {
			return texts, whole
		}
		if len(texts) == count || *budget <= 0 {
			break
		}
		most := min(limit, *budget)
		text, ok := p.text(pointer, most)
		if !ok {
			break
		}
		whole = whole && len(text) < most
		*budget -= len(text) + 1 // its NUL
		texts = append(texts, text)
	}
	return texts, false
}

// firstLine reads the first line of a script without its "#!"; "" for a program,
// and for what is no regular file: that cannot be executed, and opening or reading
// it might wait for somebody.
func (p process) firstLine(path string) string {
	descriptor, err := unix.Open(p.fromHere(path), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(descriptor)
	var stat unix.Stat_t
	if err := unix.Fstat(descriptor, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return ""
	}
	head := make([]byte, 256)
	n, _ := unix.Read(descriptor, head) // a file that cannot be read has no line
	line, isScript := bytes.CutPrefix(head[:max(n, 0)], []byte("#!"))
	if !isScript {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return strings.TrimSpace(string(line))
}

// invocation reads what starts a program again; nil where it is too long to keep.
func (p process) invocation(line string, argv, environment uint64) *Invocation {
	i := &Invocation{Interpreter: line}
	var all, whole bool
	budget := mostInvocation
	i.Argv, all = p.texts(argv, mostTexts, mostText, &budget)
	i.Env, whole = p.texts(environment, mostTexts, mostText, &budget)
	var err error
	i.Dir, err = os.Readlink("/proc/" + strconv.Itoa(int(p)) + "/cwd")
	if !all || !whole || err != nil {
		return nil
	}
	return i
}
