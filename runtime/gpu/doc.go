// Package gpu is the door to the CUDA driver: devices, memory, modules, streams,
// launches and graphs, and nothing of what is computed. Without the build tag
// cuda it is empty.
//
// A Device is one goroutine locked to one thread, which holds the device's primary
// context. Device.Do runs a function there; whatever is documented as called
// inside Do takes that thread for granted and takes no locks.
//
// It promises that a program built with it starts without a driver and says
// why it has none when it asks for a device; that every error names the driver's
// function and its result; and that no Go memory is in the driver's hands after
// a call has returned.
package gpu
