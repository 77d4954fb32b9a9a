package content

// Stamp tells two states of a file apart without reading it: device, inode,
// size in bytes, modification and change time in nanoseconds. The change time
// cannot be set back by a user, unlike the modification time.
type Stamp struct {
	Device, Inode     uint64
	Size              int64
	Modified, Changed int64
}
