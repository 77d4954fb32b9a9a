package content

import (
	"errors"
	"os"
	"syscall"
)

func changeTime(sys *syscall.Stat_t) int64 { return sys.Ctimespec.Nano() }

// cloneFile is for linux; here files are copied.
func cloneFile(_, _ *os.File) bool { return false }

// exchange is for linux; here two renames do its work.
func exchange(_, _ string) error { return errors.ErrUnsupported }
