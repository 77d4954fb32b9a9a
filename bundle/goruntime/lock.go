package goruntime

import (
	"fmt"
	"slices"

	"slipway/manifest"
)

// Lock is runtime.lock: for each way of building the runtime, what it was built
// from, with what, and what came out.
type Lock struct {
	Schema int      `json:"schema"`
	Builds []Locked `json:"builds"`
}

// Locked is one locked build. Source is the set digest of the source; Go, the
// toolchain; GCC, "" where no C compiler takes part.
type Locked struct {
	Device  string          `json:"device"`
	Target  string          `json:"target"` // GOOS/GOARCH/level
	Go      string          `json:"go"`
	GCC     string          `json:"gcc"`
	Flags   []string        `json:"flags"`
	Source  manifest.Digest `json:"source"`
	Runtime manifest.Digest `json:"runtime"`
	Size    int64           `json:"size"`
}

// DecodeLock reads runtime.lock, strictly.
func DecodeLock(data []byte) (*Lock, error) {
	var lock Lock
	if err := manifest.DecodeStrict(data, &lock); err != nil {
		return nil, fmt.Errorf("read runtime.lock: %w", err)
	}
	if lock.Schema != 1 {
		return nil, fmt.Errorf("read runtime.lock: schema %d is not 1", lock.Schema)
	}
	return &lock, nil
}

// Encode writes the lock's canonical bytes.
func (l *Lock) Encode() ([]byte, error) { return manifest.EncodeLines(l) }

// Find returns the locked build of a device.
func (l *Lock) Find(device string) (Locked, bool) {
	if l == nil {
		return Locked{}, false
	}
	i := slices.IndexFunc(l.Builds, func(b Locked) bool { return b.Device == device })
	if i < 0 {
		return Locked{}, false
	}
	return l.Builds[i], true
}

// Set replaces the locked build of a device.
func (l *Lock) Set(build Locked) {
	l.Schema = 1
	l.Builds = slices.DeleteFunc(l.Builds, func(b Locked) bool { return b.Device == build.Device })
	l.Builds = append(l.Builds, build)
	slices.SortFunc(l.Builds, func(a, b Locked) int {
		if a.Device < b.Device {
			return -1
		}
		return 1
	})
}
