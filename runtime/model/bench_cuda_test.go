//go:build cuda

package model

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"slipway/runtime/kernels"
	"slipway/runtime/weights"
)

// BenchmarkDevice measures checkpoints on a GPU: those of the colon-separated
// list SLIPWAY_BENCH_CHECKPOINTS, by absolute paths.
//
//	load        opening the checkpoint to the last graph captured
//	prefill     256 tokens of one prompt that has 768 before them
//	decode-N    a token of each of N sequences of about 1000 tokens
func BenchmarkDevice(b *testing.B) {
	device, err := kernels.OpenDevice(kernels.DeviceOptions{})
	if err != nil {
		b.Skip(err)
	}
	defer device.Close()
	for _, folder := range filepath.SplitList(os.Getenv("SLIPWAY_BENCH_CHECKPOINTS")) {
		b.Run(filepath.Base(folder), func(b *testing.B) { benchmarkFolder(b, device, folder) })
	}
}

func benchmarkFolder(b *testing.B, device *kernels.Device, folder string) {
	const slots, length = 32, 1000
	began := time.Now()
	checkpoint, err := weights.Open(folder)
	if err != nil {
		b.Fatal(err)
	}
	m, err := Load(checkpoint, Limits{Slots: slots, Context: 2048, Device: device})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	loaded := time.Since(began)
	_ = checkpoint.Close()
	b.Run("load", func(b *testing.B) { b.ReportMetric(loaded.Seconds(), "s") })
	prompt := make([]int32, 256)
	for i := range prompt {
		prompt[i] = int32((i*7919 + 1) % m.Vocabulary())
	}
	fill := func(slot int) {
		m.Reset(slot)
		for m.Length(slot)+len(prompt) < length {
			step(b, m, Work{Slot: slot, Tokens: prompt})
		}
	}
	b.Run("prefill", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			fill(0)
			b.StartTimer()
			step(b, m, Work{Slot: 0, Tokens: prompt})
		}
		b.ReportMetric(float64(b.N*len(prompt))/b.Elapsed().Seconds(), "tokens/s")
	})
	for _, count := range []int{1, 16, 32} {
		b.Run(fmt.Sprintf("decode-%d", count), func(b *testing.B) {
			var work []Work
			for slot := range count {
				fill(slot)
				work = append(work, Work{Slot: slot, Tokens: []int32{prompt[slot]}, Sample: true})
			}
			b.ResetTimer()
			for range b.N {
				for i, r := range step(b, m, work...) {
					if math.IsNaN(float64(r.Logprob)) {
						b.Fatal("logits are not numbers")
					}
					work[i].Tokens = []int32{r.Token}
				}
				if m.Length(0)+1 > m.Limits().Context {
					b.StopTimer()
					for slot := range count {
						fill(slot)
					}
					b.StartTimer()
				}
			}
			b.ReportMetric(float64(b.N*count)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
