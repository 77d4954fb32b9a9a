package sandbox

import (
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
)

// A process that is started while the system is being asked, and answers that
// there is none, is waited for all the same.
func TestChildrenStartedWhileAsked(t *testing.T) {
	type answer struct {
		pid int
		err error
	}
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan answer)
		c := newChildren(func() (int, syscall.WaitStatus, error) {
			a, ok := <-answers
			if !ok {
				runtime.Goexit()
			}
			return a.pid, syscall.WaitStatus(a.pid << 8), a.err
		})
		go c.reap()
		synctest.Wait() // it asks
		c.add()
		answers <- answer{err: syscall.ECHILD} // of before
		answers <- answer{pid: 7}
		if status := c.status(7); status != 7<<8 {
			t.Errorf("status %d", status)
		}
		answers <- answer{err: syscall.ECHILD}
		c.none()
		c.add() // it asks again, and ends
		close(answers)
	})
}
