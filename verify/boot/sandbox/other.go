//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"syscall"
)

// Main returns at once: this system has no parts of a sandbox.
func Main() {}

// Sandbox is never had on this system.
type Sandbox struct{}

// Process is never had on this system.
type Process struct{}

func unsupported() error {
	return fmt.Errorf("%w: it needs Linux, not %s", ErrUnsupported, runtime.GOOS)
}

// Open returns an error that wraps ErrUnsupported.
func Open(context.Context, Options) (*Sandbox, error) { return nil, unsupported() }

// Janitor returns an error that wraps ErrUnsupported.
func Janitor(...string) (stop func(), err error) { return nil, unsupported() }

// Keeper is never had on this system.
type Keeper struct{}

// Keep returns an error that wraps ErrUnsupported.
func Keep(string) (*Keeper, error) { return nil, unsupported() }

// Group does nothing.
func (k *Keeper) Group(int) error { return nil }

// Stop does nothing.
func (k *Keeper) Stop() {}

// Conditions returns none.
func (s *Sandbox) Conditions() []Condition { return nil }

// Address returns "".
func (s *Sandbox) Address() string { return "" }

// Dial returns an error that wraps ErrUnsupported.
func (s *Sandbox) Dial(context.Context, string, string) (net.Conn, error) { return nil, unsupported() }

// Start returns an error that wraps ErrUnsupported.
func (s *Sandbox) Start(Command) (*Process, error) { return nil, unsupported() }

// Processes returns an error that wraps ErrUnsupported.
func (s *Sandbox) Processes() ([]ProcessInfo, error) { return nil, unsupported() }

// Listening returns an error that wraps ErrUnsupported.
func (s *Sandbox) Listening() ([]int, error) { return nil, unsupported() }

// Signal is refused.
func (s *Sandbox) Signal(int, syscall.Signal) error { return unsupported() }

// KillAll returns an error that wraps ErrUnsupported.
func (s *Sandbox) KillAll() error { return unsupported() }

// Trace returns an error that wraps ErrUnsupported.
func (s *Sandbox) Trace() (Trace, error) { return Trace{}, unsupported() }

// Close does nothing.
func (s *Sandbox) Close() error { return nil }

// Signal returns an error that wraps ErrUnsupported.
func (p *Process) Signal(syscall.Signal) error { return unsupported() }

// Exited returns nil.
func (p *Process) Exited() <-chan struct{} { return nil }

// Err returns an error that wraps ErrUnsupported.
func (p *Process) Err() error { return unsupported() }

// PID returns 0.
func (p *Process) PID() int { return 0 }
