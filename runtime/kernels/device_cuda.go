//go:build cuda

package kernels

import (
	"errors"
	"fmt"

	"slipway/runtime/gpu"
	"slipway/runtime/kernels/cuda"
)

// Device is a GPU on which programs run, one at a time.
type Device struct {
	gpu       *gpu.Device
	stream    *gpu.Stream
	modules   []*gpu.Module
	functions map[string]*gpu.Function
	shared    map[string]int // bytes of shared memory that a function may have
	options   DeviceOptions
}

// operations are the kernels that launchers start, by the image that has them.
var operations = map[string][]string{
	"rows": {"embed", "silu_mul", "select_rows", "rotary"}, "linear": {"linear"}, "norm": {"add_norm", "head_norm_rope"},
	"attention": {"attention"}, "delta": {"delta_convolve", "delta_rule"}, "sample": {"sample"},
}

// Devices returns how many GPUs there are; the error says why none can be seen.
func Devices() (int, error) { return gpu.Count() }

// OpenDevice opens a GPU and loads every kernel.
func OpenDevice(o DeviceOptions) (*Device, error) {
	opened, err := gpu.Open(o.Index)
	if err != nil {
		return nil, err
	}
	d := &Device{gpu: opened, functions: map[string]*gpu.Function{}, shared: map[string]int{}, options: o}
	if err := opened.Do(func() error { return d.load(o.PTX) }); err != nil {
		_ = d.Close() // the first error is the one to tell
		return nil, fmt.Errorf("load the kernels: %w", err)
	}
	return d, nil
}

func (d *Device) load(ptx bool) (err error) {
	if d.stream, err = d.gpu.Stream(); err != nil {
		return err
	}
	major, minor := d.gpu.Capability()
	for _, image := range cuda.Images() {
		code := image.Cubin
		if ptx || major != 9 || minor != 0 { // sm_90a code runs on nothing else
			code = image.PTX
		}
		module, err := d.gpu.Load(code)
		if err != nil {
			return fmt.Errorf("%s: %w", image.Name, err)
		}
		d.modules = append(d.modules, module)
		for _, name := range operations[image.Name] {
			if d.functions[name], err = module.Function(name); err != nil {
				return fmt.Errorf("%s: %w", image.Name, err)
			}
		}
	}
	for image, names := range operations {
		for _, name := range names {
			if d.functions[name] == nil {
				return fmt.Errorf("there is no image %s", image)
			}
		}
	}
	return nil
}

// allowShared lets a kernel have that many bytes of shared memory. All programs
// share the kernel: what was allowed once stays.
func (d *Device) allowShared(name string, bytes int) error {
	const without = 48 << 10 // what needs no asking
	if bytes <= max(without, d.shared[name]) {
		return nil
	}
	if limit := d.gpu.SharedLimit(); bytes > limit {
		return fmt.Errorf("kernel %s needs %d bytes of shared memory, the device has %d a block", name, bytes, limit)
	}
	d.shared[name] = bytes
	return d.functions[name].AllowShared(bytes)
}

// Name returns the device's name as its driver tells it.
func (d *Device) Name() string { return d.gpu.Name() }

// Memory returns the bytes of the device's memory that are free, and all.
func (d *Device) Memory() (free, total int64, err error) { return d.gpu.Memory() }

// Close gives the device back. Its programs must have been closed.
func (d *Device) Close() error {
	err := d.gpu.Do(func() error {
		var all []error
		if d.stream != nil {
			all = append(all, d.stream.Destroy())
		}
		for _, module := range d.modules {
			all = append(all, module.Unload())
		}
		return errors.Join(all...)
	})
	return errors.Join(err, d.gpu.Close())
}

// Sticky reports whether an error says that the device is lost to this process.
func Sticky(err error) bool { return gpu.Sticky(err) }
