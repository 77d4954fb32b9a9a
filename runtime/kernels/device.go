package kernels

// DeviceOptions say which device to open.
type DeviceOptions struct {
	Index int
	// PTX has the driver compile the kernels from PTX even where there is code for
	// the device's own architecture.
	PTX bool

	// For tests. Mirrored programs keep activations and states on the host too:
	// a run takes them from there and puts them back. Uncaptured ones launch each
	// kernel by itself instead of a graph.
	Mirrored, Uncaptured bool
}
