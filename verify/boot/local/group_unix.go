//go:build unix

package local

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a command and all that it starts into a process group, and
// where the system can lets it end with us.
func ownGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(command.SysProcAttr)
}

// groupLives reports whether a process of the group is still listed.
func groupLives(command *exec.Cmd) bool { return syscall.Kill(-command.Process.Pid, 0) == nil }

// endGroup signals the group: to end, or at once. A group that is gone is fine.
func endGroup(command *exec.Cmd, atOnce bool) {
	signal := syscall.SIGTERM
	if atOnce {
		signal = syscall.SIGKILL
	}
	_ = syscall.Kill(-command.Process.Pid, signal)
}
