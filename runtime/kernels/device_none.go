//go:build !cuda

package kernels

import "errors"

// Device is a GPU on which programs run. This build knows none.
type Device struct{}

var errNoCUDA = errors.New("this program was built without CUDA")

// Devices returns how many GPUs there are; the error says why none can be seen.
func Devices() (int, error) { return 0, errNoCUDA }

// OpenDevice opens a GPU.
func OpenDevice(DeviceOptions) (*Device, error) { return nil, errNoCUDA }

// NewProgram allocates an empty program on the device.
func (d *Device) NewProgram(Shape) *Program { panic(noDevice) }

// MeasureProgram returns a program that is bound without allocating anything.
func (d *Device) MeasureProgram(Shape) *Program { panic(noDevice) }

const noDevice = "kernels: a device of a build without CUDA"

// Name returns the device's name.
func (d *Device) Name() string { return "" }

// Memory returns the bytes of the device's memory that are free, and all.
func (d *Device) Memory() (free, total int64, err error) { return 0, 0, nil }

// Close gives the device back.
func (d *Device) Close() error { return nil }

// Sticky reports whether an error says that the device is lost to this process.
func Sticky(error) bool { return false }
