//go:build cuda

package gpu

import (
	"errors"
	"fmt"
	"reflect"
)

// Error is a result of the CUDA driver other than success.
type Error struct {
	Call string // the driver's function, "cuLaunchKernelEx"
	Name string // CUDA's name, "CUDA_ERROR_ILLEGAL_ADDRESS"
	Code int    // its number, 700
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code)
}

// The results that this package tells apart, numbered as in the driver API's CUresult.
const (
	outOfMemory = 2
	notReady    = 600
)

// sticky has the results after which every call in the process's context returns
// an error; only another process gets a working one.
var sticky = map[int]bool{
	214: true, // CUDA_ERROR_ECC_UNCORRECTABLE
	220: true, // CUDA_ERROR_NVLINK_UNCORRECTABLE
	700: true, // CUDA_ERROR_ILLEGAL_ADDRESS
	702: true, // CUDA_ERROR_LAUNCH_TIMEOUT
	709: true, // CUDA_ERROR_CONTEXT_IS_DESTROYED
	710: true, // CUDA_ERROR_ASSERT
	714: true, // CUDA_ERROR_HARDWARE_STACK_ERROR
	715: true, // CUDA_ERROR_ILLEGAL_INSTRUCTION
	716: true, // CUDA_ERROR_MISALIGNED_ADDRESS
	717: true, // CUDA_ERROR_INVALID_ADDRESS_SPACE
	718: true, // CUDA_ERROR_INVALID_PC
	719: true, // CUDA_ERROR_LAUNCH_FAILED
}

// Sticky reports whether the error says that the device's context is lost.
func Sticky(err error) bool {
	var driver *Error
	return errors.As(err, &driver) && sticky[driver.Code]
}

func newError(call string, code int) error {
	return &Error{Call: call, Name: errorName(code), Code: code}
}

// checkLibrary returns a result of gorgonia.org/cu as an Error. Its type of
// results is not exported, but is an int with CUDA's numbers.
func checkLibrary(call string, err error) error {
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if value := reflect.ValueOf(cause); value.Kind() == reflect.Int {
			return newError(call, int(value.Int()))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	return nil
}
