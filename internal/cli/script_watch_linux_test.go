package cli

import (
	"os"
	"syscall"
)

// watch tells when a file is read, or when something appears in a folder.
func watch(path string, reads bool) (moment, error) {
	mask := uint32(syscall.IN_CREATE | syscall.IN_MOVED_TO)
	if reads {
		mask = syscall.IN_ACCESS
	}
	handle, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		return moment{}, err
	}
	if _, err := syscall.InotifyAddWatch(handle, path, mask); err != nil {
		_ = syscall.Close(handle)
		return moment{}, err
	}
	events := os.NewFile(uintptr(handle), "inotify")
	come := make(chan struct{})
	go func() {
		buffer := make([]byte, syscall.SizeofInotifyEvent+syscall.NAME_MAX+1)
		if n, err := events.Read(buffer); err == nil && n > 0 {
			close(come)
		}
	}()
	return moment{come: come, close: func() { _ = events.Close() }}, nil
}
