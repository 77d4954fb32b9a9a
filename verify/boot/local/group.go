package local

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Group is a command with all that it started and that did not leave its
// process group.
type Group struct {
	command *exec.Cmd
	exited  chan struct{}
	err     error // of the process; valid once exited is closed
}

// outputDelay is how long the output of a server that has ended may stay open:
// a process that left the group can hold it for ever.
const outputDelay = time.Second

// StartGroup starts a command as the leader of a group of its own.
func StartGroup(command *exec.Cmd, output io.Writer) (*Group, error) {
	command.Stdout, command.Stderr = output, output
	command.WaitDelay = outputDelay
	ownGroup(command)
	g := &Group{command: command, exited: make(chan struct{})}
	started := make(chan error)
	go g.run(started)
	return g, <-started
}

// run starts the process and waits for it on one thread: the system ends the
// process when the thread that started it ends, so that a killed slipway leaves
// no server behind.
func (g *Group) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := g.command.Start()
	started <- err
	if err != nil {
		return
	}
	g.err = g.command.Wait()
	if errors.Is(g.err, exec.ErrWaitDelay) {
		g.err = nil // it ended well, and something else holds its output
	}
	close(g.exited)
}

// PID is the number of the process, and of its group.
func (g *Group) PID() int { return g.command.Process.Pid }

// Exited is closed when the process has ended by itself or was stopped.
func (g *Group) Exited() <-chan struct{} { return g.exited }

// Err says how the process ended; nil for a clean exit. It waits for the end.
func (g *Group) Err() error {
	<-g.exited
	return g.err
}

// Signal sends a signal to the leader alone, as a container's end does.
func (g *Group) Signal(signal syscall.Signal) error { return g.command.Process.Signal(signal) }

// Lives reports whether a process of the group still runs.
func (g *Group) Lives() bool { return groupLives(g.command) }

// Members names the processes of the group that still run. Where the system
// does not list processes, one stands for all.
func (g *Group) Members() []string {
	statuses, _ := filepath.Glob("/proc/[0-9]*/stat")
	if len(statuses) == 0 {
		return []string{"a process of serve.sh's process group"}
	}
	var all []string
	for _, name := range statuses {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// PID (COMMAND) STATE PARENT GROUP ...; a zombie waits for its parent, and does nothing.
		head, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 2 && fields[2] == strconv.Itoa(g.PID()) && !strings.Contains("ZX", fields[0]) {
			all = append(all, "process "+strings.Replace(head, " (", ", ", 1))
		}
	}
	return all
}

// End ends the whole group, politely and after a while not, and waits for that.
func (g *Group) End(grace time.Duration) {
	endGroup(g.command, false)
	select {
	case <-g.exited:
	case <-time.After(grace):
	}
	endGroup(g.command, true) // also what outlived its parent
	<-g.exited
	for deadline := time.Now().Add(reapTime); g.Lives() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// reapTime is how long the system may take to end killed processes; what is
// listed longer is dead and waits for its parent to notice.
const reapTime = time.Second
