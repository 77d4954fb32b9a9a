package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// denied are the system calls that change the machine or look into other
// processes; they answer EPERM. io_uring is among them, as in containers: what is
// asked through it could not be traced.
var denied = []string{
	"mount", "umount2", "pivot_root", "fsopen", "fsmount", "fsconfig", "fspick", "move_mount", "open_tree", "mount_setattr", "setns",
	"ptrace", "process_vm_writev", "open_by_handle_at", "userfaultfd", "perf_event_open", "bpf",
	"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
	"add_key", "request_key", "keyctl", "reboot", "swapon", "swapoff", "acct", "quotactl",
	"settimeofday", "clock_settime", "sethostname", "setdomainname", "iopl", "ioperm", "syslog", "vhangup",
	"io_uring_setup", "io_uring_enter", "io_uring_register",
}

// newNamespaces are the flags with which clone and unshare make namespaces.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// traced are the system calls of a Trace. sendto joins them where it has an
// address, and sendmsg where it is not the launcher's own. Whether a message has
// an address lies in memory, where no filter looks, so that all of them are
// announced: BenchmarkTracedSend says what that costs, and servers answer by
// write and sendto.
var traced = []string{"open", "openat", "openat2", "creat", "execve", "execveat", "connect", "sendmmsg"}

// policy says what happens to system calls: some are denied, some are announced
// to the listener and then go on.
func policy(trace bool) (*seccomp.Policy, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	flags := seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: newNamespaces}}
	machine := seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.Equal, Value: unix.AF_VSOCK}}
	groups := []seccomp.SyscallGroup{{
		Action: seccomp.ActionErrno, Names: known(info, denied),
		NamesWithCondtions: []seccomp.NameWithConditions{
			{Name: "unshare", Conditions: flags}, {Name: "clone", Conditions: flags},
			{Name: "socket", Conditions: machine}, // reaches a virtual machine's host from any network namespace
		},
	}, {
		// Its flags lie in memory, where no filter looks. Callers that hear of no
		// such call use clone.
		Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: known(info, []string{"clone3"}),
	}}
	if trace {
		to := seccomp.ArgumentConditions{{Argument: 4, Operation: seccomp.NotEqual, Value: 0}}
		foreign := seccomp.ArgumentConditions{{Argument: 2, Operation: seccomp.NotEqual, Value: ownMessage}}
		groups = append(groups, seccomp.SyscallGroup{
			Action: seccomp.ActionUserNotify, Names: known(info, traced),
			NamesWithCondtions: []seccomp.NameWithConditions{{Name: "sendto", Conditions: to}, {Name: "sendmsg", Conditions: foreign}},
		})
	}
	return &seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: groups}, nil
}

// known leaves out what a processor's system does not have: open on arm64.
func known(info *arch.Info, names []string) []string {
	var there []string
	for _, name := range names {
		if _, ok := info.SyscallNames[name]; ok {
			there = append(there, name)
		}
	}
	return there
}

// install puts this thread, which must be locked, under the policy. With trace
// it returns the listener's descriptor, else -1. The program that the thread
// becomes and all that this starts stay under it.
func install(trace bool) (int, error) {
	rules, err := policy(trace)
	if err != nil {
		return -1, err
	}
	instructions, err := rules.Assemble()
	if err != nil {
		return -1, err
	}
	own, err := arch.GetInfo("")
	if err != nil {
		return -1, err
	}
	program := ownCallsOnly(uint32(own.ID))
	for _, instruction := range instructions {
		raw, err := instruction.Assemble()
		if err != nil {
			return -1, err
		}
		program = append(program, unix.SockFilter{Code: raw.Op, Jt: raw.Jt, Jf: raw.Jf, K: raw.K})
	}
	if !trace {
		_, err := load(program, 0)
		return -1, err
	}
	// Without the second flag, which Linux 5.19 brought, a signal restarts a
	// system call that is being looked at.
	descriptor, err := load(program, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) {
		descriptor, err = load(program, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	}
	return descriptor, err
}

// ownCallsOnly begins a filter: there is no system call of another processor's
// numbers, as an x86-64 system has those of i386, which the policy would let
// through unseen.
func ownCallsOnly(processor uint32) []unix.SockFilter {
	const ofArchitecture = 4 // in struct seccomp_data
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: ofArchitecture},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: processor},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
	}
}

func load(program []unix.SockFilter, flags uintptr) (int, error) {
	frame := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	result, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&frame)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(result), nil
}
