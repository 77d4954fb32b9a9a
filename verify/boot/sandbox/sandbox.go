// Package sandbox runs a submission on the grader's machine in miniature: in
// namespaces of its own, with loopback for a network, a read-only submission,
// small and noexec temporary folders, another user, limits of memory and
// processors, and no way to change the machine. It promises that nothing of a
// sandbox outlives it, however the program that opened it ends, and that it says
// of each condition whether it held. It is a rehearsal, not a prison: a
// submission that attacks the kernel is not what it is for.
//
// The program starts itself again for the parts of a sandbox, so that its first
// statement, and that of the tests of its packages, is Main.
package sandbox

import (
	"errors"
	"io"
	"time"
)

// ErrUnsupported is of a system that lets this user have no sandbox. The error
// that wraps it names the first thing that was refused.
var ErrUnsupported = errors.New("this system gives no sandbox")

// ErrNotStarted is of a sandbox that could not start a command, whatever that was.
var ErrNotStarted = errors.New("the sandbox could not start it")

// Options of Open.
type Options struct {
	Submission   string                           // folder on this machine
	At           string                           // where it is inside; "": /submission
	NoExec       bool                             // the submission is mounted noexec too; it is always read-only, nosuid and nodev
	Root         string                           // root file system; "": this machine's. Neither is ever written
	Hide         []string                         // folders of this machine that are empty inside: homes, caches
	LeaveOut     []string                         // files and folders of this machine that are not there inside
	SharedMemory Volume                           // /dev/shm
	Temp         Volume                           // /tmp, and as much again for /var/tmp
	User         int                              // uid and gid inside; 0: root, without what a container's root lacks
	Memory       int64                            // bytes; 0: no limit
	CPUs         float64                          // 0: no limit
	GPU          bool                             // NVIDIA's devices and, in another root, driver files appear inside
	Log          func(format string, args ...any) // what happens, for the curious; may be nil
}

// Volume is a folder in memory.
type Volume struct {
	Bytes    int64 // 0: 64 MiB for /dev/shm; 1 GiB for /tmp, or half of the memory where that is less
	NoExec   bool
	ReadOnly bool
}

// The names of conditions.
const (
	OwnNetwork         = "own network, loopback only"
	ReadOnlySubmission = "read-only submission"
	NoExecSubmission   = "noexec submission"
	SmallShared        = "small /dev/shm"
	SmallTemp          = "small /tmp"
	CleanEnvironment   = "clean environment"
	AnotherUser        = "another user"
	MemoryLimit        = "memory limit"
	CPULimit           = "CPU limit"
	NoPrivilege        = "no privileged system calls"
	ConfinedWrites     = "writes confined"
	GPUDevices         = "GPU devices"
	Traced             = "traced"
)

// Condition is one property of the grader's machine that was asked for.
type Condition struct {
	Name   string
	Held   bool
	Detail string // its value where held, else why it could not be had
}

// Command is what to run. Its environment is Env and nothing else; the folders
// that HOME and TMPDIR name are made where they lie in memory.
type Command struct {
	Argv   []string // Argv[0] is a path inside, or a name to find in Env's PATH
	Env    []string
	Dir    string    // inside; "": /
	Output io.Writer // gets standard output and error; may be nil. Writes to it come one at a time
}

// ProcessInfo is a process inside.
type ProcessInfo struct {
	PID     int
	Command string // its arguments, cut to a readable length
}

// Trace is what the processes inside did since Start, each distinct thing once,
// in the order of first sight. At is the time since Start. What goes around the
// traced system calls (open, openat, openat2, creat, execve, execveat, connect,
// and sendto, sendmsg and sendmmsg with an address) is not in it.
type Trace struct {
	Opened      []Opened
	Programs    []Program
	Connections []Connection
	Dropped     int // distinct things left out because there were too many
}

// Opened is a file that was opened, or that something tried to open; folders are
// left out. One that was opened by another name, as through a link, is there
// under both.
type Opened struct {
	Path    string
	Written bool // opened for writing at least once
	Exists  bool // it was there at one of the attempts
	At      time.Duration
}

// Program is a file that was executed.
type Program struct {
	Path string
	Argv []string // cut to a readable length
	PID  int      // of who became it
	At   time.Duration

	Python *Invocation // of the first that are Python; nil for others
}

// Invocation is all that starts a program again.
type Invocation struct {
	Interpreter string // of a script, what follows "#!" in its first line; "" for a program
	Argv, Env   []string
	Dir         string
}

// Connection is an Internet address that something tried to reach, loopback
// included.
type Connection struct {
	Address string // host:port
	At      time.Duration
}
