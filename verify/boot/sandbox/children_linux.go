package sandbox

import (
	"errors"
	"sync"
	"syscall"
)

// children knows how each process that the supervisor waits for has ended. A
// process is added after it was started, so that one may have been waited for
// before it is known.
type children struct {
	wait4 func() (pid int, status syscall.WaitStatus, err error) // waits for any

	mu      sync.Mutex
	changed *sync.Cond
	added   int  // counts what was started
	some    bool // there may be some
	ended   map[int]int
}

func newChildren(wait4 func() (int, syscall.WaitStatus, error)) *children {
	c := &children{wait4: wait4, ended: map[int]int{}}
	c.changed = sync.NewCond(&c.mu)
	return c
}

func waitForAny() (int, syscall.WaitStatus, error) {
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WALL, nil)
	return pid, status, err
}

// add says that a process was started.
func (c *children) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.added++
	c.some = true
	c.changed.Broadcast()
}

// reap waits for every process that has no other parent. That the system knew of
// none is old news when one was added while it was asked.
func (c *children) reap() {
	c.mu.Lock()
	for {
		before := c.added
		c.mu.Unlock()
		pid, status, err := c.wait4()
		c.mu.Lock()
		switch {
		case err == nil:
			c.ended[pid] = int(status)
			c.changed.Broadcast()
		case errors.Is(err, syscall.ECHILD) && c.added == before:
			c.some = false
			c.changed.Broadcast()
			for c.added == before {
				c.changed.Wait()
			}
		}
	}
}

// status returns how a process ended, as wait4 has it, once it has.
func (c *children) status(pid int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if status, ok := c.ended[pid]; ok {
			return status
		}
		c.changed.Wait()
	}
}

// none waits until there are none.
func (c *children) none() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.some {
		c.changed.Wait()
	}
}
