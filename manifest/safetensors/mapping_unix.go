//go:build linux || darwin

package safetensors

import (
	"math"

	"golang.org/x/sys/unix"
)

// mapAnonymous returns size bytes of zeros that take memory only where they
// are touched, and the function that gives them back.
func mapAnonymous(size int64) (region []byte, release func(), err error) {
	if size > math.MaxInt {
		return nil, nil, unix.ENOMEM
	}
	region, err = unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, nil, err
	}
	return region, func() { _ = unix.Munmap(region) }, nil
}
