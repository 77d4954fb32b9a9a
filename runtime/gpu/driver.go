//go:build cuda

package gpu

/*
#include "driver.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"gorgonia.org/cu"
)

// initialize loads the driver and initialises it, once for the process. Its error
// is the loader's complaint or cuInit's result.
var initialize = sync.OnceValue(func() error {
	if err := prepareEnvironment(); err != nil {
		return err
	}
	switch result := C.slipway_cuda_initialize(); {
	case result < 0:
		return fmt.Errorf("load the CUDA driver: %s", C.GoString(C.slipway_cuda_problem()))
	default:
		return check("cuInit", result)
	}
})

// prepareEnvironment sets what the driver reads while it is initialised, where
// the user has not: kernels are loaded with their module, so that none loads
// during the first request or a capture; and what is compiled from PTX is kept
// below the folder for temporary files, never in HOME.
func prepareEnvironment() error {
	settings := map[string]string{"CUDA_MODULE_LOADING": "EAGER"}
	cache := filepath.Join(os.TempDir(), fmt.Sprintf("slipway-cuda-%d", os.Getuid()))
	if err := privateFolder(cache); err == nil {
		settings["CUDA_CACHE_PATH"] = cache
	} else if os.Getenv("CUDA_CACHE_PATH") == "" {
		settings["CUDA_CACHE_DISABLE"] = "1"
	}
	for name, value := range settings {
		if os.Getenv(name) != "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("set %s for the CUDA driver: %w", name, err)
		}
	}
	return nil
}

// privateFolder makes the folder, or makes sure that nobody else can write into
// the one that is there: compiled kernels from it will be run.
func privateFolder(name string) error {
	err := os.Mkdir(name, 0o700)
	if err == nil || !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ok || int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a folder that this user alone can write into", name)
	}
	return nil
}

// Count returns the number of devices. Its error says why there is no driver, or
// cuInit's result. CUDA_ERROR_NO_DEVICE is such a result.
func Count() (int, error) {
	if err := initialize(); err != nil {
		return 0, err
	}
	count, err := cu.NumDevices()
	return count, checkLibrary("cuDeviceGetCount", err)
}

// errorName returns CUDA's name of a result.
func errorName(code int) string {
	var name *C.char
	if C.cuGetErrorName(C.int(code), &name) != 0 || name == nil {
		return "unknown result"
	}
	return strings.Clone(C.GoString(name))
}

// check returns the error of a call's result, nil for success.
func check(call string, result C.int) error {
	if result == 0 {
		return nil
	}
	return newError(call, int(result))
}
