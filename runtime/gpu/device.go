//go:build cuda

package gpu

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"gorgonia.org/cu"
)

// Device is a GPU and the thread that holds its primary context.
type Device struct {
	index  int
	handle cu.Device
	facts  facts

	thread  atomic.Int64 // id of the thread, 0 when it has ended
	turn    sync.Mutex   // one caller of Do at a time
	calls   chan func() error
	results chan outcome

	pinned []*Pinned // of the thread
}

// facts are what a device says of itself once.
type facts struct {
	name                     string
	processors, major, minor int
	sharedLimit              int
}

// outcome is how a function given to Do has ended.
type outcome struct {
	err      error
	panicked bool
	value    any // what it panicked with
	gone     bool
}

// maxSharedMemoryOptIn is CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN.
const maxSharedMemoryOptIn cu.DeviceAttribute = 97

// Open retains the primary context of a device, counted from 0, on a thread of
// its own. The device holds that thread until Close.
func Open(index int) (*Device, error) {
	count, err := Count()
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= count {
		return nil, fmt.Errorf("open device %d: there are %d", index, count)
	}
	d := &Device{index: index, calls: make(chan func() error), results: make(chan outcome)}
	go d.run()
	if result := <-d.results; result.err != nil {
		return nil, fmt.Errorf("open device %d: %w", index, result.err)
	}
	return d, nil
}

// run is the device's goroutine. It never unlocks its thread, which ends with it
// and takes the context's binding along.
func (d *Device) run() {
	runtime.LockOSThread()
	err := d.retain()
	if err == nil {
		d.thread.Store(int64(syscall.Gettid()))
	}
	d.results <- outcome{err: err}
	if err != nil {
		return
	}
	for f := range d.calls {
		d.call(f)
	}
}

// call runs one function and sends how it ended, whichever way that was.
func (d *Device) call(f func() error) {
	result := outcome{panicked: true}
	defer func() {
		if result.panicked {
			result.value = recover()
			// A function that ends its goroutine leaves nothing to recover.
			result.gone = result.value == nil
			if result.gone {
				d.thread.Store(0)
			}
		}
		d.results <- result
	}()
	result.err = f()
	result.panicked = false
}

// retain makes the primary context current on this thread and asks the device for its facts.
func (d *Device) retain() error {
	var err error
	if d.handle, err = cu.GetDevice(d.index); err != nil {
		return checkLibrary("cuDeviceGet", err)
	}
	if err := d.ask(); err != nil {
		return err
	}
	context, err := d.handle.RetainPrimaryCtx()
	if err != nil {
		return checkLibrary("cuDevicePrimaryCtxRetain", err)
	}
	if err := cu.SetCurrentContext(context); err != nil {
		_ = d.handle.ReleasePrimaryCtx()
		return checkLibrary("cuCtxSetCurrent", err)
	}
	return nil
}

func (d *Device) ask() error {
	name, err := d.handle.Name()
	if err != nil {
		return checkLibrary("cuDeviceGetName", err)
	}
	d.facts.name = strings.TrimRight(name, " \x00")
	for attribute, value := range map[cu.DeviceAttribute]*int{
		cu.MultiprocessorCount:    &d.facts.processors,
		cu.ComputeCapabilityMajor: &d.facts.major,
		cu.ComputeCapabilityMinor: &d.facts.minor,
		maxSharedMemoryOptIn:      &d.facts.sharedLimit,
	} {
		if *value, err = d.handle.Attribute(attribute); err != nil {
			return checkLibrary("cuDeviceGetAttribute", err)
		}
	}
	return nil
}

// Do runs a function on the device's thread and returns what it returns. Callers
// wait for their turn; a call from inside such a function runs at once. A panic
// of the function is a panic of Do with the same value.
func (d *Device) Do(f func() error) error {
	thread := d.thread.Load()
	if thread == int64(syscall.Gettid()) {
		return f()
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	if d.thread.Load() == 0 {
		return fmt.Errorf("device %d is closed", d.index)
	}
	return d.ended(f)
}

// ended sends the function to the thread and waits. The caller has the turn.
func (d *Device) ended(f func() error) error {
	d.calls <- f
	result := <-d.results
	switch {
	case result.gone:
		return fmt.Errorf("device %d is closed: a function given to it ended its goroutine", d.index)
	case result.panicked:
		panic(result.value)
	default:
		return result.err
	}
}

// Close releases the primary context and ends the thread. What was allocated and
// loaded on the device is lost with the context. Closing twice does nothing.
func (d *Device) Close() error {
	if d.thread.Load() == int64(syscall.Gettid()) {
		return fmt.Errorf("close device %d: called on its own thread", d.index)
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	if d.thread.Load() == 0 {
		return nil
	}
	err := d.ended(func() error {
		d.thread.Store(0)
		return checkLibrary("cuDevicePrimaryCtxRelease", d.handle.ReleasePrimaryCtx())
	})
	close(d.calls)
	if err != nil {
		return fmt.Errorf("close device %d: %w", d.index, err)
	}
	return nil
}

// Name returns the device's name.
func (d *Device) Name() string { return d.facts.name }

// Processors returns the number of streaming multiprocessors.
func (d *Device) Processors() int { return d.facts.processors }

// Capability returns the compute capability, 9 and 0 for Hopper.
func (d *Device) Capability() (major, minor int) { return d.facts.major, d.facts.minor }

// SharedLimit returns how many bytes of shared memory a block may have when its
// function allows it.
func (d *Device) SharedLimit() int { return d.facts.sharedLimit }

// Memory returns the device's memory in bytes.
func (d *Device) Memory() (free, total int64, err error) {
	err = d.Do(func() error {
		free, total, err = cu.MemInfo()
		return checkLibrary("cuMemGetInfo", err)
	})
	return free, total, err
}
