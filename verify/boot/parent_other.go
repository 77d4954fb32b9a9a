//go:build unix && !linux

package boot

import "syscall"

// endWithParent is for linux.
func endWithParent(*syscall.SysProcAttr) {}
