//go:build cuda

package gpu

import (
	"errors"
	"fmt"
	"testing"

	"gorgonia.org/cu"
)

func TestSticky(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("illegal address"), false},
		{&Error{Call: "cuMemAlloc", Code: 2}, false},
		{&Error{Call: "cuStreamSynchronize", Code: 700}, true},
		{fmt.Errorf("decode: %w", &Error{Call: "cuGraphLaunch", Code: 719}), true},
		{&Error{Call: "cuStreamQuery", Code: 600}, false},
	} {
		if got := Sticky(tc.err); got != tc.want {
			t.Errorf("Sticky(%v) = %v", tc.err, got)
		}
	}
}

// cu's results come back with their number and the name of the call.
func TestLibraryResults(t *testing.T) {
	if err := checkLibrary("cuMemAlloc", nil); err != nil {
		t.Errorf("success is %v", err)
	}
	var result *Error
	for _, err := range []error{cu.OutOfMemory, fmt.Errorf("allocate: %w", cu.OutOfMemory)} {
		if !errors.As(checkLibrary("cuMemAlloc", err), &result) || result.Call != "cuMemAlloc" || result.Code != 2 {
			t.Errorf("%v is %#v", err, result)
		}
	}
	other := errors.New("something else")
	if err := checkLibrary("cuMemAlloc", other); !errors.Is(err, other) || errors.As(err, &result) && result == nil {
		t.Errorf("another error is %v", err)
	}
	if got, want := (&Error{"cuLaunchKernelEx", "CUDA_ERROR_ILLEGAL_ADDRESS", 700}).Error(), "cuLaunchKernelEx: CUDA_ERROR_ILLEGAL_ADDRESS (700)"; got != want {
		t.Errorf("prints %q, want %q", got, want)
	}
}
