//go:build cuda

package gpu

/*
#include "driver.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// TensorMap describes a tensor in the device's memory to the tensor memory
// accelerator of Hopper. A kernel takes it by value, aligned to 64 bytes, as a
// __grid_constant__ parameter.
type TensorMap [128]byte

// ElementType is the type of a tensor's elements, numbered as CUtensorMapDataType.
type ElementType int

// The element types in use here.
const (
	ElementUint8    ElementType = 0
	ElementInt32    ElementType = 3
	ElementFloat16  ElementType = 6
	ElementFloat32  ElementType = 7
	ElementBFloat16 ElementType = 9
)

// Swizzle is the pattern in which a tile lies in shared memory, numbered as
// CUtensorMapSwizzle.
type Swizzle int

// The patterns: none, or within rows of so many bytes.
const (
	SwizzleNone Swizzle = iota
	Swizzle32
	Swizzle64
	Swizzle128
)

// Tensor is what a TensorMap is made of. The first dimension is the one whose
// elements are adjacent.
type Tensor struct {
	Base       Pointer // aligned to 16 bytes
	Type       ElementType
	Dimensions []uint64 // elements, 1 to 5 dimensions
	Strides    []uint64 // bytes of each dimension but the first, multiples of 16
	Box        []uint32 // elements of a tile in each dimension, at most 256
	Swizzle    Swizzle
}

// TensorMap encodes the tensor, with no interleaving, promotion to 128 bytes of
// the second-level cache, and zeros for elements outside.
func (t Tensor) TensorMap() (TensorMap, error) {
	rank := len(t.Dimensions)
	if rank < 1 || rank > 5 || len(t.Box) != rank || len(t.Strides) != rank-1 {
		return TensorMap{}, fmt.Errorf("encode a tensor map of %d dimensions, %d strides and a box of %d: not a tensor", rank, len(t.Strides), len(t.Box))
	}
	const (
		noInterleave = 0
		promotion128 = 2 // CU_TENSOR_MAP_L2_PROMOTION_L2_128B
		zeros        = 0 // CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
	)
	// The map must be aligned to 64 bytes.
	var memory [128 + 63]byte
	offset := -uintptr(unsafe.Pointer(&memory)) & 63
	steps := [5]C.uint32_t{1, 1, 1, 1, 1}
	strides := append([]uint64{}, t.Strides...)
	strides = append(strides, 0) // of one dimension there are none, and the pointer must be one
	result := C.cuTensorMapEncodeTiled(unsafe.Pointer(&memory[offset]), C.int(t.Type), C.uint32_t(rank), C.uintptr_t(t.Base),
		(*C.uint64_t)(unsafe.SliceData(t.Dimensions)), (*C.uint64_t)(unsafe.SliceData(strides)),
		(*C.uint32_t)(unsafe.SliceData(t.Box)), &steps[0], noInterleave, C.int(t.Swizzle), promotion128, zeros)
	if err := check("cuTensorMapEncodeTiled", result); err != nil {
		return TensorMap{}, fmt.Errorf("encode a tensor map: %w", err)
	}
	return TensorMap(memory[offset : offset+128]), nil
}
