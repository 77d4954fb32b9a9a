package benchmarks

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"slipway/internal/generate"
	"slipway/manifest/safetensors"
)

// weightsVariable names a folder for checkpoints of real size. Those that are
// not there are generated.
const weightsVariable = "SLIPWAY_BENCH_WEIGHTS"

// rounds is how often everything is measured; the best of them counts.
const rounds = 3

// checkpoint is one folder of weights.
type checkpoint struct {
	name        string
	full, small generate.Options
}

var checkpoints = []checkpoint{
	{"qwen3.5-4b", generate.Options{}, generate.Options{Layers: 4, Vocabulary: 12_000, TextOnly: true}},
	{"maple-2bit", generate.Options{Family: generate.MaplePacked}, generate.Options{Family: generate.MaplePacked, Layers: 1, Vocabulary: 12_000}},
	{"maple", generate.Options{Family: generate.Maple, Layers: 2}, generate.Options{Family: generate.Maple, Layers: 1, Vocabulary: 12_000}},
}

// BenchmarkAgainstBareHash measures what reads all weights: all subjects in
// turn, several times. It reports each one's best time, its ratio to the best
// bare hash of the same checkpoint, processor time likewise, throughput and peak
// memory, and of each subject the sum over all checkpoints. The files are in the
// page cache: a first bare hash reads them.
//
// Times are of the work alone, in processes of their own, so that one's heap
// is not the next one's; what was written is flushed between measurements, not
// within them.
func BenchmarkAgainstBareHash(b *testing.B) {
	sums := map[string]result{} // over all checkpoints
	total := int64(0)
	for _, c := range checkpoints {
		p := preparePlace(b, c)
		size, best := measureAll(b, c.name, p, reading)
		total += size
		for _, s := range append([]subject{bare}, reading...) {
			r := best[s.name]
			r.wall += sums[s.name].wall
			r.processor += sums[s.name].processor
			r.resident = max(r.resident, sums[s.name].resident)
			sums[s.name] = r
		}
	}
	for _, s := range append([]subject{bare}, reading...) {
		present(b, "all/"+s.name, sums[s.name], sums[bare.name], total, s.kind)
	}
}

// BenchmarkWriting measures builds that copy weights, on Qwen3.5-4B.
func BenchmarkWriting(b *testing.B) {
	c := checkpoints[0]
	measureAll(b, c.name, preparePlace(b, c), writing)
}

// measureAll measures and reports subjects on one checkpoint, whose size in
// bytes it returns.
func measureAll(b *testing.B, name string, p place, subjects []subject) (size int64, best map[string]result) {
	size = p.size(b)
	measure(b, bare, p)
	best = measureRounds(b, p, subjects)
	for _, s := range append([]subject{bare}, subjects...) {
		present(b, name+"/"+s.name, best[s.name], best[bare.name], size, s.kind)
	}
	return size, best
}

// BenchmarkPlanOfHeaders opens and plans all of Maple as it is published:
// 18,651 tensors in nine files of 40 GB, whose values are holes.
func BenchmarkPlanOfHeaders(b *testing.B) {
	p := place{Weights: filepath.Join(b.TempDir(), "weights"), Work: b.TempDir(), Options: wholeMaple}
	summary, err := generate.Write(b.Context(), p.Weights, p.Options)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d entries, %d bytes", summary.Entries, summary.Bytes)
	for b.Loop() {
		r := measure(b, planning, p)
		b.ReportMetric(float64(r.wall.Nanoseconds()), "ns/op")
		b.ReportMetric(float64(r.processor.Milliseconds()), "cpu-ms")
		b.ReportMetric(float64(r.resident)/1e6, "peak-MB")
	}
}

// wholeMaple is the published model in as many files as it has.
var wholeMaple = generate.Options{Family: generate.Maple, Shards: 9, HeadersOnly: true}

// present reports what was measured before.
func present(b *testing.B, name string, r, base result, bytes int64, kind kind) {
	b.Run(name, func(b *testing.B) {
		for b.Loop() { // the measuring is done
		}
		b.ReportMetric(float64(r.wall.Nanoseconds()), "ns/op")
		b.ReportMetric(float64(r.wall)/float64(base.wall), "ratio-to-bare-hash")
		b.ReportMetric(float64(r.processor)/float64(base.processor), "cpu-ratio-to-bare-hash")
		b.ReportMetric(float64(r.processor.Milliseconds()), "cpu-ms")
		b.ReportMetric(float64(r.resident)/1e6, "peak-MB")
		if kind != again {
			b.ReportMetric(float64(bytes)/1e6/max(r.wall, time.Nanosecond).Seconds(), "MB/s")
		}
	})
}

// size is the sum of the shards' sizes, in bytes.
func (p place) size(b *testing.B) int64 {
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
	b.Logf("%s: %d shards, %d bytes (%.3f GiB), page cache warm", filepath.Base(p.Weights), len(shards), total, float64(total)/(1<<30))
	return total
}

// measureRounds returns the best of all rounds, by subject; each number on its
// own, but for memory, where the largest counts.
func measureRounds(b *testing.B, p place, subjects []subject) map[string]result {
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
		for _, s := range subjects {
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

// preparePlace returns where to measure a checkpoint. The work folder stands
// beside the weights: hard links do not leave a file system.
func preparePlace(b *testing.B, c checkpoint) place {
	parent, options := os.Getenv(weightsVariable), c.full
	if parent == "" {
		parent, options = b.TempDir(), c.small
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		b.Fatal(err)
	}
	weights := filepath.Join(parent, c.name)
	if _, err := os.Stat(filepath.Join(weights, safetensors.IndexName)); err != nil {
		if _, err := generate.Write(b.Context(), weights, options); err != nil {
			b.Fatal(err)
		}
		syscall.Sync()
	}
	work, err := os.MkdirTemp(parent, "slipway-bench-*")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(work); err != nil {
			b.Error(err)
		}
	})
	return place{Weights: weights, Work: work, Options: options}
}
