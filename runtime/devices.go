package main

import (
	"errors"
	"fmt"

	"slipway/manifest"
	"slipway/runtime/kernels"
)

// checkBackend refuses a device that this build knows nothing of.
func checkBackend(device string) error {
	if device == "cuda" && backend != "cuda" {
		err := errors.New("--device cuda: this program was built without CUDA")
		return manifest.WithHint(err, "build it with -tags cuda, or serve with --device cpu")
	}
	return nil
}

// openDevices begins to open what the model will run on: a driver takes longer to
// wake up than a tokenizer to be read. The function it returns waits for the
// devices; nil stands for the CPU. They are the process's until it ends.
func openDevices(o options) func() ([]*kernels.Device, error) {
	if o.device != "cuda" {
		return func() ([]*kernels.Device, error) { return []*kernels.Device{nil}, nil }
	}
	type opened struct {
		devices []*kernels.Device
		err     error
	}
	done := make(chan opened, 1)
	go func() {
		var all opened
		for _, index := range o.devices {
			device, err := kernels.OpenDevice(kernels.DeviceOptions{Index: index})
			if err != nil {
				all.err = fmt.Errorf("--device cuda: %w", err)
				break
			}
			all.devices = append(all.devices, device)
		}
		done <- all
	}()
	return func() ([]*kernels.Device, error) {
		all := <-done
		return all.devices, all.err
	}
}

// deviceName says what a model runs on; nil is the CPU.
func deviceName(device *kernels.Device) string {
	if device == nil {
		return "the CPU"
	}
	return device.Name()
}
