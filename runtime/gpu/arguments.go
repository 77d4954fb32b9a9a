//go:build cuda

package gpu

import (
	"encoding/binary"
	"math"
)

// Arguments are a kernel's parameters in its order, laid out as C lays out the
// members of a struct: each at the next multiple of its alignment. The zero value
// is empty. A launch copies them.
type Arguments struct {
	data []byte
}

// Pointer adds an address of the device, 8 bytes.
func (a *Arguments) Pointer(p Pointer) *Arguments { return a.Uint64(uint64(p)) }

// Int32 adds an int.
func (a *Arguments) Int32(value int32) *Arguments {
	binary.LittleEndian.PutUint32(a.place(4, 4), uint32(value))
	return a
}

// Float32 adds a float.
func (a *Arguments) Float32(value float32) *Arguments {
	binary.LittleEndian.PutUint32(a.place(4, 4), math.Float32bits(value))
	return a
}

// Uint64 adds an unsigned long long.
func (a *Arguments) Uint64(value uint64) *Arguments {
	binary.LittleEndian.PutUint64(a.place(8, 8), value)
	return a
}

// Bytes adds a struct passed by value, as it lies in memory; align is its
// alignment in C, a power of two.
func (a *Arguments) Bytes(data []byte, align int) *Arguments {
	copy(a.place(len(data), align), data)
	return a
}

// Reset empties the arguments and keeps their memory.
func (a *Arguments) Reset() { a.data = a.data[:0] }

// place returns the bytes of the next parameter, after padding of zeros.
func (a *Arguments) place(size, align int) []byte {
	if align <= 0 || align&(align-1) != 0 {
		panic("gpu: an alignment that is not a power of two")
	}
	start := (len(a.data) + align - 1) &^ (align - 1)
	for len(a.data) < start+size {
		a.data = append(a.data, 0)
	}
	return a.data[start:]
}
