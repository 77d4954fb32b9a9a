package verify

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/report"
)

// benchmarkFolder writes shards of four packed tensors with 16 MiB of codes
// each and a scale for 128 weights.
func benchmarkFolder(b *testing.B, shards int) string {
	b.Helper()
	root := b.TempDir()
	r := random("benchmark")
	codes := make([]byte, 16<<20)
	for i := range codes {
		codes[i] = []byte{0x55, 0x12, 0x46, 0x8a, 0xa1, 0x04}[r.IntN(6)]
	}
	q := manifest.Quantization{Tensors: map[string]manifest.Quantity{}}
	for i := range shards {
		file := fmt.Sprintf("s%d.safetensors", i)
		tensors := map[string]*stored{}
		for j := range 4 {
			name := fmt.Sprintf("t%d.%d", i, j)
			tensors[name] = &stored{safetensors.U8, []int64{4096, 4096}, codes}
			scales := make([]byte, 2*4096*128)
			for k := 0; k < len(scales); k += 2 {
				scales[k], scales[k+1] = byte(k), 0x20
			}
			tensors[name+".s"] = &stored{safetensors.F16, []int64{4096, 128}, scales}
			q.Tensors[name] = manifest.Quantity{Kind: manifest.KindPacked2Bit, Shape: []int64{4096, 16384}, GroupSize: 128,
				Codes: &manifest.StoredTensor{File: file, Tensor: name}, Scales: &manifest.StoredTensor{File: file, Tensor: name + ".s"}}
		}
		if err := os.WriteFile(filepath.Join(root, file), encodeShard(tensors), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	data, err := q.Encode()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, manifest.QuantizationPath), data, 0o644); err != nil {
		b.Fatal(err)
	}
	return root
}

// BenchmarkVerify reads, hashes and audits; compare BenchmarkHash.
//
//	go test -run '^$' -bench 'Verify|Hash' ./verify
func BenchmarkVerify(b *testing.B) {
	root := benchmarkFolder(b, 8)
	options := Options{Profile: practice()}
	for b.Loop() {
		r, err := runFolder(b, root, options)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(r.Bytes)
	}
}

func runFolder(b *testing.B, root string, options Options) (*report.Report, error) {
	tree, err := content.OpenFolder(b.Context(), root)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	return Run(b.Context(), tree, options)
}

// BenchmarkHash is the least that reading and hashing the same files costs, on
// two cores.
func BenchmarkHash(b *testing.B) {
	root := benchmarkFolder(b, 8)
	files, err := filepath.Glob(filepath.Join(root, "*.safetensors"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(sizeOf(b, files))
	for b.Loop() {
		var workers sync.WaitGroup
		for half := range slices.Chunk(files, (len(files)+1)/2) {
			workers.Go(func() {
				for _, file := range half {
					hashFile(b, file)
				}
			})
		}
		workers.Wait()
	}
}

func sizeOf(b *testing.B, files []string) int64 {
	sum := int64(0)
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			b.Fatal(err)
		}
		sum += info.Size()
	}
	return sum
}

func hashFile(b *testing.B, name string) {
	file, err := os.Open(name)
	if err != nil {
		b.Error(err)
		return
	}
	defer file.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{sha256.New()}, struct{ io.Reader }{file}, make([]byte, 4<<20))
	if err != nil {
		b.Error(err)
	}
}
