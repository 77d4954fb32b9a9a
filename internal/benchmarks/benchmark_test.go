package benchmarks

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"slipway/internal/generate"
	"slipway/manifest/safetensors"
)

// weightsVariable names a folder with a checkpoint of real size. It is
// generated there where the folder is absent or empty.
const weightsVariable = "SLIPWAY_BENCH_WEIGHTS"

// rounds is how often everything is measured; the best of them counts.
const rounds = 3

// BenchmarkAgainstBareHash measures all subjects in turn, several times, and
// reports each one's best time, its ratio to the best bare hash of the same
// run, processor time likewise, throughput and peak memory. The files are in
// the page cache: a first bare hash reads them.
//
// Times are of the work alone, in processes of their own, so that one's heap
// is not the next one's; what was written is flushed between measurements, not
// within them.
func BenchmarkAgainstBareHash(b *testing.B) {
	p := preparePlace(b)
	shards, err := p.shards()
	if err != nil {
		b.Fatal(err)
	}
	total := int64(0)
	for _, shard := range shards {
		info, err := os.Stat(shard)
		if err != nil {
			b.Fatal(err)
		}
		total += info.Size()
	}
	b.Logf("%d shards, %d bytes (%.3f GiB), page cache warm", len(shards), total, float64(total)/(1<<30))
	measure(b, bare, p)
	best := measureRounds(b, p)
	base := best[bare.name]
	for _, s := range append([]subject{bare}, measured...) {
		r := best[s.name]
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() { // the measuring is done
			}
			b.ReportMetric(float64(r.wall.Nanoseconds()), "ns/op")
			b.ReportMetric(float64(r.wall)/float64(base.wall), "ratio-to-bare-hash")
			b.ReportMetric(float64(r.processor)/float64(base.processor), "cpu-ratio-to-bare-hash")
			b.ReportMetric(float64(r.processor.Milliseconds()), "cpu-ms")
			b.ReportMetric(float64(r.resident)/1e6, "peak-MB")
			if s.kind != again {
				b.ReportMetric(float64(total)/1e6/r.wall.Seconds(), "MB/s")
			}
		})
	}
}

// measureRounds returns the best of all rounds, by subject; each number on its
// own, but for memory, where the largest counts.
func measureRounds(b *testing.B, p place) map[string]result {
	best := map[string]result{}
	note := func(s subject) {
		r := measure(b, s, p)
		if before, known := best[s.name]; known {
			r.wall = min(r.wall, before.wall)
			r.processor = min(r.processor, before.processor)
			r.resident = max(r.resident, before.resident)
		}
		best[s.name] = r
	}
	for range rounds {
		for _, s := range measured {
			if s.kind != again {
				note(bare)
			} else if s.name == "rebuild-layout" {
				measure(b, remember, p)
			}
			note(s)
			syscall.Sync()
		}
		for _, name := range []string{linkedLayout, layoutOut, folderOut, cacheFile, bareCopy} {
			if err := os.RemoveAll(p.in(name)); err != nil {
				b.Fatal(err)
			}
		}
		syscall.Sync()
	}
	return best
}

// preparePlace returns where to measure. The work folder stands beside the
// weights: hard links do not leave a file system.
func preparePlace(b *testing.B) place {
	weights := os.Getenv(weightsVariable)
	options := generate.Options{}
	if weights == "" {
		weights = filepath.Join(b.TempDir(), "weights")
		options = generate.Options{Layers: 4, Vocabulary: 12_000, TextOnly: true}
	}
	if _, err := os.Stat(filepath.Join(weights, safetensors.IndexName)); err != nil {
		if _, err := generate.Write(b.Context(), weights, options); err != nil {
			b.Fatal(err)
		}
	}
	weights, err := filepath.Abs(weights)
	if err != nil {
		b.Fatal(err)
	}
	work, err := os.MkdirTemp(filepath.Dir(weights), "slipway-bench-*")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(work); err != nil {
			b.Error(err)
		}
	})
	return place{weights: weights, work: work}
}
