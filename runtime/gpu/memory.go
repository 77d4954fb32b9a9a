//go:build cuda

package gpu

/*
#include "driver.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"gorgonia.org/cu"
)

// Pointer is an address in a device's memory.
type Pointer uint64

// Alloc returns new memory of the device, aligned to 256 bytes at least and of any
// content. An error says how much was asked for and how much is free.
func (d *Device) Alloc(bytes int64) (Pointer, error) {
	if bytes <= 0 {
		return 0, fmt.Errorf("allocate %d bytes on device %d: not a size", bytes, d.index)
	}
	address, err := cu.MemAlloc(bytes)
	if err == nil {
		return Pointer(address), nil
	}
	err = checkLibrary("cuMemAlloc", err)
	var result *Error
	if errors.As(err, &result) && result.Code == outOfMemory {
		if free, total, asked := cu.MemInfo(); asked == nil {
			return 0, fmt.Errorf("allocate %d bytes on device %d, where %d of %d are free: %w", bytes, d.index, free, total, err)
		}
	}
	return 0, fmt.Errorf("allocate %d bytes on device %d: %w", bytes, d.index, err)
}

// Free gives memory back; it waits for the work that was given to the device.
func (d *Device) Free(p Pointer) error {
	return checkLibrary("cuMemFree", cu.MemFree(cu.DevicePtr(p)))
}

// Pinned is page-locked memory of the host, which the device reads and writes
// while the host goes on.
type Pinned struct {
	device *Device
	memory unsafe.Pointer
	bytes  []byte
}

// CU_MEMHOSTALLOC_PORTABLE: pinned for every context of the process.
const portable = 1

// Pinned returns new page-locked memory of the host.
func (d *Device) Pinned(bytes int) (*Pinned, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("allocate %d bytes of pinned memory: not a size", bytes)
	}
	var memory unsafe.Pointer
	if err := check("cuMemHostAlloc", C.cuMemHostAlloc(&memory, C.size_t(bytes), portable)); err != nil {
		return nil, fmt.Errorf("allocate %d bytes of pinned memory: %w", bytes, err)
	}
	p := &Pinned{device: d, memory: memory, bytes: unsafe.Slice((*byte)(memory), bytes)}
	d.pinned = append(d.pinned, p)
	return p, nil
}

// Bytes returns the memory, which is gone after Free. Any goroutine may use it;
// what the device still reads or writes is the caller's to know.
func (p *Pinned) Bytes() []byte { return p.bytes }

// Free gives the memory back.
func (p *Pinned) Free() error {
	if p.memory == nil {
		return nil
	}
	p.device.pinned = slices.DeleteFunc(p.device.pinned, func(other *Pinned) bool { return other == p })
	err := checkLibrary("cuMemFreeHost", cu.MemFreeHost(p.memory))
	p.memory, p.bytes = nil, nil
	return err
}

// isPinned reports whether all of the bytes are pinned memory of the device. A
// device has a handful of such buffers.
func (d *Device) isPinned(data []byte) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	for _, p := range d.pinned {
		first := uintptr(p.memory)
		if start >= first && start+uintptr(len(data)) <= first+uintptr(len(p.bytes)) {
			return true
		}
	}
	return false
}

// ToDevice copies from the host in the stream's order. From pinned memory the call
// returns at once and the bytes must stay until the stream has passed the copy;
// from other memory the copy is complete on return, and a capture refuses it.
func (s *Stream) ToDevice(dst Pointer, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	pinned := s.device.isPinned(src)
	if !pinned && s.capturing {
		return fmt.Errorf("copy %d bytes to the device in a capture: the source is not pinned memory", len(src))
	}
	err := cu.MemcpyHtoDAsync(cu.DevicePtr(dst), unsafe.Pointer(unsafe.SliceData(src)), int64(len(src)), s.library())
	if err != nil {
		return checkLibrary("cuMemcpyHtoDAsync", err)
	}
	return s.settle(src, pinned)
}

// ToHost copies to the host in the stream's order, with ToDevice's rules for the
// destination.
func (s *Stream) ToHost(dst []byte, src Pointer) error {
	if len(dst) == 0 {
		return nil
	}
	pinned := s.device.isPinned(dst)
	if !pinned && s.capturing {
		return fmt.Errorf("copy %d bytes to the host in a capture: the destination is not pinned memory", len(dst))
	}
	err := cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(dst)), cu.DevicePtr(src), int64(len(dst)), s.library())
	if err != nil {
		return checkLibrary("cuMemcpyDtoHAsync", err)
	}
	return s.settle(dst, pinned)
}

// settle waits for a copy of memory that is not pinned: Go's memory must not be
// in the driver's hands afterwards.
func (s *Stream) settle(memory []byte, pinned bool) error {
	if pinned {
		return nil
	}
	err := s.Synchronize()
	runtime.KeepAlive(memory)
	return err
}

// Copy copies within the device in the stream's order.
func (s *Stream) Copy(dst, src Pointer, bytes int64) error {
	return checkLibrary("cuMemcpyDtoDAsync", cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), bytes, s.library()))
}

// Fill sets bytes of the device's memory in the stream's order.
func (s *Stream) Fill(dst Pointer, value byte, bytes int64) error {
	return checkLibrary("cuMemsetD8Async", cu.MemsetD8Async(cu.DevicePtr(dst), value, bytes, s.library()))
}
