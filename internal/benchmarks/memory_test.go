package benchmarks

import (
	"path/filepath"
	"testing"

	"slipway/internal/generate"
)

// residentLimit is what building and verifying may take at any size, in bytes.
const residentLimit = 200_000_000

// TestPeakMemory builds and verifies a checkpoint of one shard that is larger
// than the limit: whoever held a shard in memory, or mapped it, would exceed it.
func TestPeakMemory(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("writes 700 MB; the race detector takes memory of its own")
	}
	p := place{weights: filepath.Join(t.TempDir(), "weights"), work: t.TempDir()}
	summary, err := generate.Write(t.Context(), p.weights, generate.Options{Layers: 4, Vocabulary: 12_000, TextOnly: true, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	if summary.Bytes <= residentLimit*11/10 {
		t.Fatalf("a checkpoint of %d bytes shows nothing", summary.Bytes)
	}
	if control := measure(t, hold, p); control.resident <= residentLimit {
		t.Fatalf("a process that held %d bytes seems to have taken %d: the measure is broken", summary.Bytes, control.resident)
	}
	for _, s := range measured {
		if s.kind == nothing || s.kind == again {
			continue
		}
		if r := measure(t, s, p); r.resident >= residentLimit {
			t.Errorf("%s: %d bytes resident at the peak, limit %d", s.name, r.resident, residentLimit)
		} else {
			t.Logf("%s: %.1f MB resident at the peak", s.name, float64(r.resident)/1e6)
		}
	}
}
