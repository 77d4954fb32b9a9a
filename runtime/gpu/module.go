//go:build cuda

package gpu

/*
#include "driver.h"
#include <stdlib.h>
#include <string.h>

// Loads an image that ends in a zero byte and has the compiler write what it
// complains about into log. The option values are numbers in pointers' clothes,
// which Go must not hold.
static int load(handle *module, const void *image, char *log, unsigned int size) {
	enum { ERROR_LOG_BUFFER = 5, ERROR_LOG_BUFFER_SIZE_BYTES = 6 };
	int options[] = {ERROR_LOG_BUFFER, ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(uintptr_t)size};
	return cuModuleLoadDataEx(module, image, 2, options, values);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"gorgonia.org/cu"
)

// Module is loaded code.
type Module struct {
	device *Device
	module cu.Module
}

// Load loads a cubin, or compiles PTX for the device. All of its functions are
// ready on return. An error has what the compiler complained about.
func (d *Device) Load(image []byte) (*Module, error) {
	if len(image) == 0 {
		return nil, errors.New("load a module: the image is empty")
	}
	const logSize = 16 << 10
	memory := C.malloc(C.size_t(len(image)) + 1) // Go's malloc of C never returns NULL
	defer C.free(memory)
	copied := unsafe.Slice((*byte)(memory), len(image)+1)
	copy(copied, image)
	copied[len(image)] = 0 // PTX is a C string
	log := (*C.char)(C.calloc(1, logSize))
	defer C.free(unsafe.Pointer(log))

	var module C.handle
	if err := check("cuModuleLoadDataEx", C.load(&module, memory, log, logSize-1)); err != nil {
		if complaint := strings.TrimSpace(C.GoString(log)); complaint != "" {
			return nil, fmt.Errorf("load a module: %w\n%s", err, complaint)
		}
		return nil, fmt.Errorf("load a module: %w", err)
	}
	return &Module{device: d, module: *(*cu.Module)(unsafe.Pointer(&module))}, nil
}

// Unload gives the module and its functions up.
func (m *Module) Unload() error {
	return checkLibrary("cuModuleUnload", m.module.Unload())
}

// Function is a kernel of a module.
type Function struct {
	name                  string
	function              cu.Function
	registers, localBytes int
}

// Function returns the module's kernel of that name.
func (m *Module) Function(name string) (*Function, error) {
	function, err := m.module.Function(name)
	if err != nil {
		return nil, fmt.Errorf("find kernel %q: %w", name, checkLibrary("cuModuleGetFunction", err))
	}
	f := &Function{name: name, function: function}
	for attribute, value := range map[cu.FunctionAttribute]*int{cu.NumRegs: &f.registers, cu.LocalSizeBytes: &f.localBytes} {
		if *value, err = function.Attribute(attribute); err != nil {
			return nil, fmt.Errorf("find kernel %q: %w", name, checkLibrary("cuFuncGetAttribute", err))
		}
	}
	return f, nil
}

// handle returns the driver's handle: cu.Function has it as its only field.
func (f *Function) handle() C.handle { return *(*C.handle)(unsafe.Pointer(&f.function)) }

// AllowShared lets launches ask for so many bytes of dynamic shared memory. More
// than 48 KiB needs it; SharedLimit, less the kernel's static shared memory, is
// the most.
func (f *Function) AllowShared(bytes int) error {
	const maxDynamicSharedSizeBytes = 8 // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
	err := check("cuFuncSetAttribute", C.cuFuncSetAttribute(f.handle(), maxDynamicSharedSizeBytes, C.int(bytes)))
	if err != nil {
		return fmt.Errorf("allow kernel %q %d bytes of shared memory: %w", f.name, bytes, err)
	}
	return nil
}

// Registers returns how many registers a thread has.
func (f *Function) Registers() int { return f.registers }

// LocalBytes returns how many bytes of local memory a thread has: registers spilled
// and arrays that are indexed.
func (f *Function) LocalBytes() int { return f.localBytes }
