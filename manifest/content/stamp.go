package content

import "time"

// Stamp tells two states of a file apart without reading it: device, inode,
// size in bytes, modification and change time in nanoseconds. The change time
// cannot be set back by a user, unlike the modification time.
type Stamp struct {
	Device, Inode     uint64
	Size              int64
	Modified, Changed int64
}

// latest is when the file was last touched.
func (s Stamp) latest() time.Time { return time.Unix(0, max(s.Modified, s.Changed)) }
