//go:build unix && !linux

package local

import "syscall"

// endWithParent is for linux.
func endWithParent(*syscall.SysProcAttr) {}
