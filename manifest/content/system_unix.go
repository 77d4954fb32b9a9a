//go:build linux || darwin

package content

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openNoFollow keeps an open from following a link at the last path element
// and from waiting for the other end of a named pipe.
const openNoFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// StampOf returns the stamp of a file's information.
func StampOf(info fs.FileInfo) Stamp {
	stamp := Stamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		stamp.Device, stamp.Inode, stamp.Changed = uint64(sys.Dev), sys.Ino, changeTime(sys)
	}
	return stamp
}

// lockFile takes an exclusive lock on a file or folder without waiting. The
// lock ends when the returned file is closed or the process ends.
func lockFile(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := lockHandle(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// lockHandle is lockFile for a file that is open.
func lockHandle(file *os.File) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// Lock waits for the exclusive lock on a file and returns what ends it.
func Lock(name string) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}
