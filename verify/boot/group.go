package boot

import (
	"errors"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// group is a command with all that it started and that did not leave its
// process group.
type group struct {
	command *exec.Cmd
	exited  chan struct{}
	err     error // of the process; valid once exited is closed
}

// outputDelay is how long the output of a server that has ended may stay open:
// a process that left the group can hold it for ever.
const outputDelay = time.Second

// startGroup starts a command as the leader of a group of its own.
func startGroup(command *exec.Cmd, output io.Writer) (*group, error) {
	command.Stdout, command.Stderr = output, output
	command.WaitDelay = outputDelay
	ownGroup(command)
	g := &group{command: command, exited: make(chan struct{})}
	started := make(chan error)
	go g.run(started)
	return g, <-started
}

// run starts the process and waits for it on one thread: the system ends the
// process when the thread that started it ends, so that a killed slipway leaves
// no server behind.
func (g *group) run(started chan<- error) {
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

// Exited is closed when the process has ended by itself or was stopped.
func (g *group) Exited() <-chan struct{} { return g.exited }

// Err says how the process ended; nil for a clean exit. It waits for the end.
func (g *group) Err() error {
	<-g.exited
	return g.err
}

// Signal sends a signal to the leader alone, as a container's end does.
func (g *group) Signal(signal syscall.Signal) error { return g.command.Process.Signal(signal) }

// lives reports whether a process of the group still runs.
func (g *group) lives() bool { return groupLives(g.command) }

// end ends the whole group, politely and after a while not, and waits for that.
func (g *group) end(grace time.Duration) {
	endGroup(g.command, false)
	select {
	case <-g.exited:
	case <-time.After(grace):
	}
	endGroup(g.command, true) // also what outlived its parent
	<-g.exited
	for deadline := time.Now().Add(reapTime); g.lives() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// reapTime is how long the system may take to end killed processes; what is
// listed longer is dead and waits for its parent to notice.
const reapTime = time.Second
