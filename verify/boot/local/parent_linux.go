package local

import "syscall"

// endWithParent has the system kill the process when the thread that started
// it ends.
func endWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
