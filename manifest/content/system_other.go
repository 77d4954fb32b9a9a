//go:build !linux && !darwin

package content

import (
	"errors"
	"io/fs"
	"os"
)

// slipway runs on linux and darwin and says so elsewhere; this file lets it be
// compiled there to say it.

const openNoFollow = 0

// StampOf returns the stamp of a file's information.
func StampOf(info fs.FileInfo) Stamp {
	return Stamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
}

func lockFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// Lock waits for the exclusive lock on a file and returns what ends it.
func Lock(string) (unlock func(), err error) { return nil, errors.ErrUnsupported }

func lockHandle(*os.File) error { return errors.ErrUnsupported }

func cloneFile(_, _ *os.File) bool { return false }

func exchange(_, _ string) error { return errors.ErrUnsupported }
