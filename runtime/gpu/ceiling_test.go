//go:build cuda

package gpu

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// What the machine can do at most, as lines for docs/benchmarks.md:
//
//	go run ./internal/generate/cuda go test -tags cuda ./runtime/gpu -run xxx -bench Ceiling -benchtime 1x

//go:embed testdata/dependent.ptx
var dependentPTX []byte

// sized makes sizes small where the stand-in only shows that the code runs.
func sized(bytes int) int {
	if standIn() {
		return bytes >> 8
	}
	return bytes
}

// timed returns the device's time for what f adds to the stream, after one
// round that does not count.
func timed(s *Stream, f func() error) (time.Duration, error) {
	if err := errors.Join(f(), s.Synchronize()); err != nil {
		return 0, err
	}
	start, err := s.Record()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	end, err := s.Record()
	if err != nil {
		return 0, err
	}
	if err := end.Synchronize(); err != nil {
		return 0, err
	}
	took, err := end.Since(start)
	return took, errors.Join(err, start.Destroy(), end.Destroy())
}

// measure runs one measurement on the device and logs its line.
func measure(b *testing.B, line func(d *Device, s *Stream) (string, error)) {
	d := open(b)
	b.ResetTimer()
	for range b.N {
		do(b, d, func() error {
			s, err := d.Stream()
			if err != nil {
				return err
			}
			text, err := line(d, s)
			if err == nil {
				b.Logf("\n| %s | %s |", d.Name(), text)
			}
			return errors.Join(err, s.Destroy())
		})
	}
}

// rate returns 10^9 bytes a second.
func rate(bytes int, took time.Duration) float64 { return float64(bytes) / float64(took.Nanoseconds()) }

func BenchmarkCeilingGraph(b *testing.B) {
	for _, nodes := range []int{100, 300, 1000, 3000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			measure(b, func(d *Device, s *Stream) (string, error) {
				plain, err := kernel(d, "empty")
				if err != nil {
					return "", err
				}
				inOrder, err := nodeTime(s, plain, nodes, false)
				if err != nil {
					return "", err
				}
				text := fmt.Sprintf("graph of %d empty kernels | %.2f us a node", nodes, inOrder)
				if major, _ := d.Capability(); major < 9 {
					return text, nil
				}
				m, err := d.Load(dependentPTX)
				if err != nil {
					return "", err
				}
				dependent, err := m.Function("empty_dependent")
				if err != nil {
					return "", err
				}
				overlapped, err := nodeTime(s, dependent, nodes, true)
				return fmt.Sprintf("%s, %.2f us with programmatic dependent launch, %.2f times", text, overlapped, inOrder/overlapped), err
			})
		})
	}
}

// nodeTime returns the microseconds a node of a graph of empty kernels takes. Each
// has a block for every processor.
func nodeTime(s *Stream, f *Function, nodes int, dependent bool) (float64, error) {
	const launches = 20
	g, err := s.Capture(func() error {
		for range nodes {
			if err := s.Launch(f, Launch{Grid: [3]int{s.device.Processors()}, Block: [3]int{128}, Dependent: dependent}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	x, err := g.Instantiate()
	if err != nil {
		return 0, err
	}
	took, err := timed(s, func() error {
		for range launches {
			if err := x.Launch(s); err != nil {
				return err
			}
		}
		return nil
	})
	return float64(took.Microseconds()) / float64(launches*nodes), errors.Join(err, x.Destroy(), g.Destroy())
}

// What the host pays for a launch, and for a graph's.
func BenchmarkCeilingLaunch(b *testing.B) {
	measure(b, func(d *Device, s *Stream) (string, error) {
		const launches = 500 // fewer than the stream's queue holds
		f, err := kernel(d, "empty")
		if err != nil {
			return "", err
		}
		one := func() error { return s.Launch(f, Launch{Grid: [3]int{1}, Block: [3]int{32}}) }
		g, err := s.Capture(one)
		if err != nil {
			return "", err
		}
		x, err := g.Instantiate()
		if err != nil {
			return "", err
		}
		var cost [2]float64
		for i, launch := range []func() error{one, func() error { return x.Launch(s) }} {
			if err := errors.Join(launch(), s.Synchronize()); err != nil {
				return "", err
			}
			start := time.Now()
			for range launches {
				if err := launch(); err != nil {
					return "", err
				}
			}
			cost[i] = float64(time.Since(start).Nanoseconds()) / launches / 1000
			if err := s.Synchronize(); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("launch of a kernel | %.2f us of the host; of a graph of one kernel %.2f us, %.2f times", cost[0], cost[1], cost[1]/cost[0]), errors.Join(x.Destroy(), g.Destroy())
	})
}

func BenchmarkCeilingCopy(b *testing.B) {
	measure(b, func(d *Device, s *Stream) (string, error) {
		size := sized(1 << 30)
		memory, err := d.Alloc(2 * int64(size))
		if err != nil {
			return "", err
		}
		pinned, err := d.Pinned(size)
		if err != nil {
			return "", err
		}
		pageable := make([]byte, size)
		for i := 0; i < size; i += 4096 {
			pageable[i], pinned.Bytes()[i] = 1, 1
		}
		fast, err := timed(s, func() error { return s.ToDevice(memory, pinned.Bytes()) })
		if err != nil {
			return "", err
		}
		slow, err := timed(s, func() error { return s.ToDevice(memory, pageable) })
		if err != nil {
			return "", err
		}
		within, err := timed(s, func() error { return s.Copy(memory+Pointer(size), memory, int64(size)) })
		return fmt.Sprintf("%d MiB host to device | pinned %.1f GB/s, pageable %.1f GB/s, %.2f times; within the device %.0f GB/s read and written",
			size>>20, rate(size, fast), rate(size, slow), rate(size, fast)/rate(size, slow), rate(2*size, within)), errors.Join(err, pinned.Free(), d.Free(memory))
	})
}

// A file in the page cache, read in parallel into pinned buffers and copied from
// there.
func BenchmarkCeilingFile(b *testing.B) {
	size := sized(2 << 30)
	name := filepath.Join(b.TempDir(), "weights")
	if err := writeFile(name, size); err != nil {
		b.Fatal(err)
	}
	var alone float64
	for _, readers := range []int{1, 4, 8} {
		b.Run(fmt.Sprint(readers), func(b *testing.B) {
			measure(b, func(d *Device, s *Stream) (string, error) {
				took, err := readToDevice(d, s, name, size, readers)
				if err != nil {
					return "", err
				}
				got := rate(size, took)
				if readers == 1 {
					alone = got
				}
				return fmt.Sprintf("%d MiB from the page cache to the device, %d readers | %.1f GB/s, %.2f times one reader", size>>20, readers, got, got/alone), nil
			})
		})
	}
}

func writeFile(name string, size int) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	chunk := make([]byte, 1<<20)
	for i := range chunk {
		chunk[i] = byte(i * 31)
	}
	for written := 0; written < size; written += len(chunk) {
		if _, err := file.Write(chunk); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	return file.Close()
}

// slot is a pinned buffer and the event after its last copy.
type slot struct {
	pinned *Pinned
	copied *Event
	offset int64
	bytes  int
}

// readToDevice copies the file to new memory of the device through 256 MiB of
// pinned buffers, which are not part of the time.
func readToDevice(d *Device, s *Stream, name string, size, readers int) (time.Duration, error) {
	const slots = 16
	chunk := sized(16 << 20)
	memory, err := d.Alloc(int64(size))
	if err != nil {
		return 0, err
	}
	free, full := make(chan *slot, slots), make(chan *slot, slots)
	var all []*slot
	for range slots {
		x := &slot{}
		if x.pinned, err = d.Pinned(chunk); err != nil {
			return 0, err
		}
		if x.copied, err = d.Event(); err != nil {
			return 0, err
		}
		all = append(all, x)
		free <- x
	}
	start := time.Now()
	reading := startReaders(name, int64(size), readers, free, full)
	err = errors.Join(copySlots(s, memory, free, full), s.Synchronize(), reading())
	took := time.Since(start)
	for _, x := range all {
		err = errors.Join(err, x.pinned.Free(), x.copied.Destroy())
	}
	return took, errors.Join(err, d.Free(memory))
}

// startReaders fills slots from the file with so many goroutines and closes full
// at its end. The returned function waits and returns their error.
func startReaders(name string, size int64, readers int, free, full chan *slot) func() error {
	var next atomic.Int64
	var group sync.WaitGroup
	problems := make([]error, readers)
	for i := range readers {
		group.Go(func() {
			file, err := os.Open(name)
			if err != nil {
				problems[i] = err
				return
			}
			defer file.Close()
			for {
				x := <-free
				buffer := x.pinned.Bytes()
				x.offset = next.Add(int64(len(buffer))) - int64(len(buffer))
				if x.offset >= size {
					free <- x // for the others to see the end by
					return
				}
				x.bytes = int(min(int64(len(buffer)), size-x.offset))
				if _, problems[i] = file.ReadAt(buffer[:x.bytes], x.offset); problems[i] != nil {
					return
				}
				full <- x
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(full); close(done) }()
	return func() error { <-done; return errors.Join(problems...) }
}

// copySlots copies full slots as they come and frees each when its copy has passed.
// After an error it frees them at once, so that the readers come to their end.
func copySlots(s *Stream, memory Pointer, free, full chan *slot) error {
	var pending []*slot
	drain := func(err error) error {
		for _, x := range pending {
			free <- x
		}
		for x := range full {
			free <- x
		}
		return err
	}
	settle := func() error {
		err := pending[0].copied.Synchronize()
		free <- pending[0]
		pending = pending[1:]
		return err
	}
	for {
		var x *slot
		more := true
		if len(pending) == 0 {
			x, more = <-full
		} else {
			select {
			case x, more = <-full:
			default:
				if err := settle(); err != nil {
					return drain(err)
				}
				continue
			}
		}
		if !more {
			return nil
		}
		if err := errors.Join(s.ToDevice(memory+Pointer(x.offset), x.pinned.Bytes()[:x.bytes]), s.RecordIn(x.copied)); err != nil {
			free <- x
			return drain(err)
		}
		pending = append(pending, x)
	}
}
