package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a command that was started inside.
type Process struct {
	sandbox *Sandbox
	request uint64 // that started it
	pid     int
	output  *output
	killed  int // processes that the memory limit had killed before
	exited  chan struct{}
	err     error // valid once exited is closed
}

// Start runs a command inside; one at a time. An error tells what kept it from
// running, as exec does; one that wraps ErrNotStarted is not the command's.
func (s *Sandbox) Start(c Command) (*Process, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("start in the sandbox: no command")
	}
	p, err := s.start(c)
	if err != nil && !errors.Is(err, errCommand) {
		err = fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	if err != nil {
		return nil, fmt.Errorf("start %s in the sandbox: %w", c.Argv[0], err)
	}
	s.options.Log("started %q as process %d of the sandbox", c.Argv, p.pid)
	return p, nil
}

func (s *Sandbox) start(c Command) (*Process, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	to := c.Output
	if to == nil {
		to = io.Discard
	}
	p := &Process{sandbox: s, output: &output{from: read, to: to}, exited: make(chan struct{}), killed: s.limits.killed()}
	if !s.claim(p) {
		_ = read.Close()
		return nil, errors.New("a command still runs")
	}
	env := c.Env
	if env == nil {
		env = []string{}
	}
	order := request{Act: "start", Argv: c.Argv, Env: env, Dir: c.Dir}
	if _, err := s.ask(context.Background(), order, p, int(write.Fd())); err != nil {
		s.mu.Lock()
		s.current = nil
		s.mu.Unlock()
		_ = read.Close()
		return nil, err
	}
	go p.output.copy()
	return p, nil
}

// claim makes p the command that runs, if there is none.
func (s *Sandbox) claim(p *Process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		return false
	}
	s.current = p
	return true
}

// PID returns the process's number inside.
func (p *Process) PID() int { return p.pid }

// Signal sends the process a signal; its children get none.
func (p *Process) Signal(signal syscall.Signal) error {
	select {
	case <-p.exited:
		return os.ErrProcessDone
	default:
	}
	return p.sandbox.Signal(p.pid, signal)
}

// Signal sends a signal to one of Processes.
func (s *Sandbox) Signal(pid int, signal syscall.Signal) error {
	if _, err := s.ask(context.Background(), request{Act: "signal", PID: pid, Signal: int(signal)}, nil); err != nil {
		return fmt.Errorf("signal process %d of the sandbox: %w", pid, err)
	}
	return nil
}

// Exited is closed when the process has ended and what it printed is with
// Command.Output. What it left behind may still run, and print.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err waits for the end and says how it was: nil for status 0, else "exit status
// 3", "signal: killed", or that memory ran out.
func (p *Process) Err() error {
	<-p.exited
	return p.err
}

func (p *Process) end(status syscall.WaitStatus, err error) {
	p.output.drain()
	switch {
	case err != nil:
	case status.Signaled():
		err = fmt.Errorf("signal: %s", status.Signal())
	case status.ExitStatus() != 0:
		err = fmt.Errorf("exit status %d", status.ExitStatus())
	}
	if limits := p.sandbox.limits; err != nil && limits.killed() > p.killed {
		limit := p.sandbox.options.Memory
		if status.Signaled() && status.Signal() == syscall.SIGKILL {
			err = fmt.Errorf("out of memory: killed at the limit of %d bytes", limit)
		} else {
			err = fmt.Errorf("out of memory: %w after a process of it was killed at the limit of %d bytes", err, limit)
		}
	}
	p.err = err
	close(p.exited)
}

// output copies what a command and its children print. It ends when the last of
// them is gone.
type output struct {
	from *os.File
	mu   sync.Mutex // held from reading to having written
	to   io.Writer
}

// copy reads for as long as somebody may print.
func (o *output) copy() {
	defer o.from.Close()
	raw, err := o.from.SyscallConn()
	if err != nil {
		return
	}
	open := true
	for open {
		err := raw.Read(func(descriptor uintptr) bool {
			var more bool
			more, open = o.take(int(descriptor))
			return more || !open
		})
		if err != nil {
			return
		}
	}
}

// drain copies what has been printed already.
func (o *output) drain() {
	raw, err := o.from.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(descriptor uintptr) {
		for more, open := true, true; more && open; {
			more, open = o.take(int(descriptor))
		}
	})
}

// take copies one portion. Nobody being there to write is the end; a writer that
// cannot write loses the rest, the command must not stop for it.
func (o *output) take(descriptor int) (more, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var buffer [32 << 10]byte
	for {
		n, err := unix.Read(descriptor, buffer[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return false, true
		case err != nil || n == 0:
			return false, false
		}
		_, _ = o.to.Write(buffer[:n])
		return true, true
	}
}
