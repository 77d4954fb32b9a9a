//go:build cuda

package gpu

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/standin/driver.c
var standInDriver string

// The tests of this package run a second time against a stand-in for the driver, which
// checks how it is called and computes on the CPU; so threads, layouts and
// captures are tested on any machine, and the GPU's part on one that has it.
func TestWithStandInDriver(t *testing.T) {
	if standIn() {
		t.Skip("this is the second time")
	}
	folder := t.TempDir()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip(err) // where the test was not built
	}
	build := exec.Command("gcc", "-O1", "-Wall", "-Wno-stringop-truncation", "-shared", "-fPIC", "-x", "c", "-", "-o", filepath.Join(folder, "libcuda.so.1"))
	build.Stdin = strings.NewReader(standInDriver)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, "-test.v")
	command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+folder, "REQUIRE_GPU=1", "SLIPWAY_STANDIN=1", "TMPDIR="+folder, "CUDA_MODULE_LOADING=", "CUDA_CACHE_PATH=")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "stand-in: capability 9.0, 132 processors") {
		t.Errorf("the stand-in was not used:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(folder, "slipway-cuda-"+strconv.Itoa(os.Getuid()))); err != nil {
		t.Errorf("no folder for compiled kernels: %v", err)
	}
}

func standIn() bool { return os.Getenv("SLIPWAY_STANDIN") != "" }

func TestTensorMap(t *testing.T) {
	d := open(t)
	tensor := Tensor{Base: 1 << 20, Type: ElementBFloat16, Dimensions: []uint64{128, 40}, Strides: []uint64{256}, Box: []uint32{64, 8}, Swizzle: Swizzle128}
	do(t, d, func() error {
		encoded, err := tensor.TensorMap()
		if err != nil {
			return err
		}
		if encoded == (TensorMap{}) {
			t.Error("the map is empty")
		}
		if standIn() {
			for i, want := range map[int]uint64{0: 9, 1: 2, 2: 1 << 20, 3: 3, 4: 128, 5: 40, 8: 256, 9: 0, 12: 64, 13: 8} {
				if got := binary.LittleEndian.Uint64(encoded[8*i:]); got != want {
					t.Errorf("argument %d is %d, want %d", i, got, want)
				}
			}
		}
		line := Tensor{Base: 1 << 20, Type: ElementFloat32, Dimensions: []uint64{64}, Box: []uint32{64}}
		if _, err := line.TensorMap(); err != nil {
			t.Errorf("one dimension: %v", err)
		}
		tensor.Base++
		if _, err := tensor.TensorMap(); err == nil || !strings.Contains(err.Error(), "cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE (1)") {
			t.Errorf("an address that is not aligned: %v", err)
		}
		tensor.Strides = nil
		if _, err := tensor.TensorMap(); err == nil {
			t.Error("a tensor without strides was encoded")
		}
		return nil
	})
}
