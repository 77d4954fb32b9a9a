//go:build cuda

package kernels

import (
	"os"
	"testing"
	"time"
)

// TestOnDevice runs the tests of operations on a GPU: by graphs, by single
// launches, and with kernels that the driver compiled from PTX.
func TestOnDevice(t *testing.T) {
	for name, options := range map[string]DeviceOptions{
		"graphs": {}, "launches": {Uncaptured: true}, "ptx": {PTX: true},
	} {
		t.Run(name, func(t *testing.T) {
			options.Mirrored = true
			if n, err := Devices(); n == 0 && os.Getenv("REQUIRE_GPU") == "" {
				t.Skip("no device: ", err)
			}
			began := time.Now()
			device, err := OpenDevice(options)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, opened in %.2f s", device.Name(), time.Since(began).Seconds())
			testDevice = device
			defer func() {
				testDevice = nil
				if err := device.Close(); err != nil {
					t.Error(err)
				}
			}()
			for name, body := range bodies {
				t.Run(name, body)
			}
		})
	}
}

// bodies are the tests that hold for every implementation.
var bodies = map[string]func(t *testing.T){
	"Embed": TestEmbed, "Linear": TestLinear, "LinearRowsAreIndependent": TestLinearRowsAreIndependent, "Norms": TestNorms, "SiLUMul": TestSiLUMul,
	"Rotary": TestRotary, "Attention": TestAttention, "Select": TestSelect, "Sample": TestSample, "SampleNaN": TestSampleNaN,
	"DeltaNetChunks": TestDeltaNetChunks, "DeltaNetCuts": TestDeltaNetCuts, "DeltaNetSlots": TestDeltaNetSlots,
}
