package benchmarks

import (
	"path/filepath"
	"testing"

	"slipway/internal/generate"
)

// residentLimit is what building and verifying may take at any size, in bytes.
const residentLimit = 200_000_000

// TestPeakMemory builds and verifies checkpoints of one shard that is larger
// than the limit: whoever held a shard in memory, or mapped it, would exceed it.
// It plans the whole of Maple too, of which there are many tensors.
func TestPeakMemory(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("writes 1 GB; the race detector takes memory of its own")
	}
	for name, options := range map[string]generate.Options{
		"qwen3.5-4b": {Layers: 4, Vocabulary: 12_000, TextOnly: true, Shards: 1},
		"maple-2bit": {Family: generate.MaplePacked, Layers: 1, Vocabulary: 12_000, Shards: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := place{Weights: filepath.Join(t.TempDir(), "weights"), Work: t.TempDir(), Options: options}
			summary, err := generate.Write(t.Context(), p.Weights, options)
			if err != nil {
				t.Fatal(err)
			}
			if summary.Bytes <= residentLimit*11/10 {
				t.Fatalf("a checkpoint of %d bytes shows nothing", summary.Bytes)
			}
			if control := measure(t, hold, p); control.resident <= residentLimit {
				t.Fatalf("a process that held %d bytes seems to have taken %d: the measure is broken", summary.Bytes, control.resident)
			}
			subjects := reading
			if name == checkpoints[0].name {
				subjects = measured
			}
			for _, s := range subjects {
				if s.kind != nothing && s.kind != again {
					checkResident(t, s, p)
				}
			}
		})
	}
	t.Run("18,651 tensors", func(t *testing.T) {
		p := place{Weights: filepath.Join(t.TempDir(), "weights"), Work: t.TempDir(), Options: wholeMaple}
		summary, err := generate.Write(t.Context(), p.Weights, p.Options)
		if err != nil {
			t.Fatal(err)
		}
		if summary.Entries != 18_651 || summary.Bytes <= 40_428_060_672 {
			t.Fatalf("%d entries in %d bytes", summary.Entries, summary.Bytes)
		}
		checkResident(t, planning, p)
	})
}

func checkResident(t *testing.T, s subject, p place) {
	t.Helper()
	if r := measure(t, s, p); r.resident >= residentLimit {
		t.Errorf("%s: %d bytes resident at the peak, limit %d", s.name, r.resident, residentLimit)
	} else {
		t.Logf("%s: %.1f MB resident at the peak, %.2f s", s.name, float64(r.resident)/1e6, r.wall.Seconds())
	}
}
