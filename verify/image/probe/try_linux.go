package probe

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// sizeOf returns the size in bytes of the file system that a folder lies on, 0
// where unknown.
func sizeOf(folder string) int64 {
	var stat unix.Statfs_t
	if unix.Statfs(folder, &stat) != nil || stat.Frsize <= 0 || stat.Blocks >= 1<<62/uint64(stat.Frsize) {
		return 0
	}
	return int64(stat.Blocks) * stat.Frsize
}

// try finds out by a temporary file whether a folder is read-only (nil where it
// takes no file for another reason), and whether what lies in it cannot be
// mapped as code (nil where that cannot be tried). Options tell less: some
// sandboxes do not list them.
func try(folder string) (readOnly, noexec *bool) {
	file, err := os.CreateTemp(folder, ".slipway-probe-*")
	if errors.Is(err, unix.EROFS) {
		return new(true), nil
	}
	if err != nil {
		return nil, nil
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if file.Truncate(1) != nil {
		return new(false), nil
	}
	code, err := unix.Mmap(int(file.Fd()), 0, 1, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err == nil {
		_ = unix.Munmap(code)
		return new(false), new(false)
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return new(false), new(true)
	}
	return new(false), nil
}

// processors returns how many processors this process may run on.
func processors() (int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, err
	}
	return set.Count(), nil
}
