// Package cuda holds the compiled CUDA kernels: one for every operation of
// package kernels, for any dimensions. Their sources stand beside it and
// abi.cuh has the calling convention; each kernel's comment has its grid and
// block. The outputs under build are what the sources, flags and compiler named
// in build/checksums give.
package cuda

import (
	"embed"
	"strings"
)

//go:generate go run slipway/internal/generate/kernels -folder .

const (
	folder    = "build"
	cubinName = ".sm_90a.cubin"
	ptxName   = ".compute_80.ptx"
)

//go:embed build/*.cubin build/*.ptx
var outputs embed.FS

// Image is the kernels of one source.
type Image struct {
	Name  string // of the source, without .cu
	Cubin []byte // machine code for compute capability 9.0
	PTX   []byte // for compute capability 8.0 and above; it ends with a zero byte, as drivers want it
}

// Images returns all kernels, in the order of their names.
func Images() []Image {
	entries, err := outputs.ReadDir(folder)
	if err != nil {
		panic(err) // embedded
	}
	var images []Image
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), cubinName); ok {
			images = append(images, Image{name, read(name + cubinName), append(read(name+ptxName), 0)})
		}
	}
	return images
}

func read(name string) []byte {
	data, err := outputs.ReadFile(folder + "/" + name)
	if err != nil {
		panic(err) // embedded
	}
	return data
}
