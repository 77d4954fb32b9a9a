//go:build cuda

package gpu

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/test.ptx
var testPTX []byte

// open returns the first device, closed at the test's end. Where there is none
// the test is skipped, and fails when REQUIRE_GPU is set.
func open(t testing.TB) *Device {
	t.Helper()
	d, err := Open(0)
	if err != nil {
		if os.Getenv("REQUIRE_GPU") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// do runs f on the device and ends the test on its error.
func do(t testing.TB, d *Device, f func() error) {
	t.Helper()
	if err := d.Do(f); err != nil {
		t.Fatal(err)
	}
}

// kernel loads the test's module and returns its kernel of that name.
func kernel(d *Device, name string) (*Function, error) {
	m, err := d.Load(testPTX)
	if err != nil {
		return nil, err
	}
	return m.Function(name)
}

func floats(data []byte) []float32 {
	values := make([]float32, len(data)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return values
}

func TestNoDriverIsOneError(t *testing.T) {
	count, err := Count()
	if err == nil {
		if count < 1 {
			t.Errorf("%d devices and no error", count)
		}
		_, err = Open(count)
		if err == nil || !strings.Contains(err.Error(), "there are ") {
			t.Errorf("opening a device too many: %v", err)
		}
		return
	}
	text := err.Error()
	if !strings.Contains(text, "libcuda.so.1") && !strings.Contains(text, "cuInit: CUDA_ERROR") || strings.Contains(text, "\n") {
		t.Errorf("the error does not say what is missing in one line: %q", text)
	}
	if _, again := Open(0); again == nil || again.Error() != text {
		t.Errorf("opening says %v, counting %v", again, err)
	}
}

func TestDevice(t *testing.T) {
	d := open(t)
	major, minor := d.Capability()
	free, total, err := d.Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: capability %d.%d, %d processors, %d of %d bytes free, %d bytes of shared memory a block", d.Name(), major, minor, d.Processors(), free, total, d.SharedLimit())
	if d.Name() == "" || strings.ContainsRune(d.Name(), 0) || major < 5 || d.Processors() < 1 || free <= 0 || total < free || d.SharedLimit() < 48<<10 {
		t.Error("a device cannot be that")
	}
}

func TestDoRunsOnOneThread(t *testing.T) {
	d := open(t)
	fault := errors.New("fault")
	if err := d.Do(func() error { return fault }); err != fault {
		t.Errorf("an error came back as %v", err)
	}
	inner := false
	do(t, d, func() error {
		return d.Do(func() error { inner = true; return nil })
	})
	if !inner {
		t.Error("a call from the device's thread did not run")
	}
	func() {
		defer func() {
			if value := recover(); value != "broken" {
				t.Errorf("a panic came back as %v", value)
			}
		}()
		_ = d.Do(func() error { panic("broken") })
	}()
	do(t, d, func() error { _, _, err := d.Memory(); return err }) // it still works
}

func TestClosedDevice(t *testing.T) {
	d := open(t)
	if err := d.Do(d.Close); err == nil {
		t.Error("a device was closed from its own thread")
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Do(func() error { return nil }); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a closed device says %v", err)
	}
}

// addition is c = a + 2b on the device, with its input in place.
type addition struct {
	stream  *Stream
	add     *Function
	a, b, c Pointer
	n       int
}

func newAddition(d *Device, n int) (*addition, error) {
	x := &addition{n: n}
	var err error
	if x.stream, err = d.Stream(); err != nil {
		return nil, err
	}
	if x.add, err = kernel(d, "add"); err != nil {
		return nil, err
	}
	data := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(i)))
	}
	for _, p := range []*Pointer{&x.a, &x.b, &x.c} {
		if *p, err = d.Alloc(int64(len(data))); err != nil {
			return nil, err
		}
		if err := x.stream.ToDevice(*p, data); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *addition) launch() error {
	args := (&Arguments{}).Pointer(x.a).Float32(2).Pointer(x.b).Int32(int32(x.n)).Pointer(x.c)
	return x.stream.Launch(x.add, Launch{Grid: [3]int{(x.n + 127) / 128}, Block: [3]int{128}, Args: args})
}

func (x *addition) check(t *testing.T) {
	t.Helper()
	out := make([]byte, 4*x.n)
	if err := x.stream.ToHost(out, x.c); err != nil {
		t.Fatal(err)
	}
	for i, got := range floats(out) {
		if want := float32(3 * i); got != want {
			t.Fatalf("element %d is %v, want %v", i, got, want)
		}
	}
}

func TestLaunch(t *testing.T) {
	d := open(t)
	do(t, d, func() error {
		x, err := newAddition(d, 1000)
		if err != nil {
			return err
		}
		if err := x.stream.Fill(x.c, 0xff, 4000); err != nil {
			return err
		}
		if err := x.launch(); err != nil {
			return err
		}
		x.check(t)
		if x.add.Registers() < 1 || x.add.LocalBytes() != 0 {
			t.Errorf("%d registers, %d bytes of local memory", x.add.Registers(), x.add.LocalBytes())
		}
		if err := x.stream.Launch(x.add, Launch{Block: [3]int{1}}); err == nil || !strings.Contains(err.Error(), "not a shape") {
			t.Errorf("a grid of nothing: %v", err)
		}
		for _, p := range []Pointer{x.a, x.b, x.c} {
			if err := d.Free(p); err != nil {
				return err
			}
		}
		return x.stream.Destroy()
	})
}

func TestClusterAndDependentLaunch(t *testing.T) {
	d := open(t)
	if major, _ := d.Capability(); major < 9 {
		t.Skip("clusters need compute capability 9.0")
	}
	do(t, d, func() error {
		s, err := d.Stream()
		if err != nil {
			return err
		}
		empty, err := kernel(d, "empty")
		if err != nil {
			return err
		}
		for range 2 {
			if err := s.Launch(empty, Launch{Grid: [3]int{8}, Block: [3]int{32}, Cluster: [3]int{4}, Dependent: true}); err != nil {
				return err
			}
		}
		if err := s.Launch(empty, Launch{Grid: [3]int{6}, Block: [3]int{32}, Cluster: [3]int{4}}); err == nil {
			t.Error("a grid that is no multiple of its clusters was launched")
		}
		return s.Synchronize()
	})
}

func TestSharedMemoryAboveTheDefault(t *testing.T) {
	d := open(t)
	do(t, d, func() error {
		s, err := d.Stream()
		if err != nil {
			return err
		}
		f, err := kernel(d, "shared")
		if err != nil {
			return err
		}
		out, err := d.Alloc(4)
		if err != nil {
			return err
		}
		bytes := d.SharedLimit()
		launch := Launch{Grid: [3]int{1}, Block: [3]int{1}, Shared: bytes, Args: (&Arguments{}).Pointer(out).Int32(int32(bytes - 4))}
		if err := s.Launch(f, launch); err == nil {
			t.Errorf("%d bytes of shared memory without being allowed", bytes)
		}
		if err := f.AllowShared(bytes); err != nil {
			return err
		}
		if err := s.Launch(f, launch); err != nil {
			return err
		}
		got := make([]byte, 4)
		if err := s.ToHost(got, out); err != nil {
			return err
		}
		if value := binary.LittleEndian.Uint32(got); int(value) != bytes-4 {
			t.Errorf("the last word is %d, want %d", value, bytes-4)
		}
		if err := f.AllowShared(bytes + 1); err == nil || !strings.Contains(err.Error(), "cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE (1)") {
			t.Errorf("a byte too much: %v", err)
		}
		return nil
	})
}

func TestCaptureAndLaunch(t *testing.T) {
	d := open(t)
	do(t, d, func() error {
		x, err := newAddition(d, 1000)
		if err != nil {
			return err
		}
		if err := x.stream.Fill(x.c, 0, 4000); err != nil {
			return err
		}
		g, err := x.stream.Capture(func() error {
			if err := x.stream.ToDevice(x.a, make([]byte, 4)); err == nil || !strings.Contains(err.Error(), "not pinned") {
				t.Errorf("Go's memory was captured: %v", err)
			}
			return errors.Join(x.launch(), x.launch())
		})
		if err != nil {
			return err
		}
		if n, err := g.Nodes(); err != nil || n != 2 {
			t.Errorf("%d nodes, %v", n, err)
		}
		executable, err := g.Instantiate()
		if err != nil {
			return err
		}
		if err := g.Destroy(); err != nil {
			return err
		}
		if err := executable.Launch(x.stream); err != nil {
			return err
		}
		x.check(t)
		if n := testing.AllocsPerRun(10, func() { err = errors.Join(err, executable.Launch(x.stream)) }); n != 0 || err != nil {
			t.Errorf("%v allocations a launch, %v", n, err)
		}
		if err := x.stream.Synchronize(); err != nil {
			return err
		}
		return executable.Destroy()
	})
}

func TestCaptureEndsWithAnError(t *testing.T) {
	d := open(t)
	do(t, d, func() error {
		x, err := newAddition(d, 100)
		if err != nil {
			return err
		}
		fault := errors.New("fault")
		if _, err := x.stream.Capture(func() error { return errors.Join(x.launch(), fault) }); !errors.Is(err, fault) {
			t.Errorf("the capture ended with %v", err)
		}
		func() {
			defer func() { _ = recover() }()
			_, _ = x.stream.Capture(func() error { panic("broken") })
		}()
		if err := x.launch(); err != nil { // the stream works again
			return err
		}
		x.check(t)
		return nil
	})
}

func TestPinnedCopies(t *testing.T) {
	d := open(t)
	do(t, d, func() error {
		const n = 1 << 20
		s, err := d.Stream()
		if err != nil {
			return err
		}
		memory, err := d.Alloc(2 * n)
		if err != nil {
			return err
		}
		in, err := d.Pinned(n)
		if err != nil {
			return err
		}
		out, err := d.Pinned(n)
		if err != nil {
			return err
		}
		for i := range in.Bytes() {
			in.Bytes()[i] = byte(i * 7)
		}
		if !d.isPinned(in.Bytes()[5:]) || d.isPinned(make([]byte, 10)) {
			t.Error("pinned memory is mistaken")
		}
		allocations := testing.AllocsPerRun(5, func() {
			err = errors.Join(err, s.ToDevice(memory, in.Bytes()), s.Copy(memory+n, memory, n), s.ToHost(out.Bytes(), memory+n))
		})
		if err = errors.Join(err, s.Synchronize()); err != nil {
			return err
		}
		if string(in.Bytes()) != string(out.Bytes()) {
			t.Error("the copies differ")
		}
		if allocations != 0 {
			t.Errorf("%v allocations a round of copies", allocations)
		}
		return errors.Join(in.Free(), in.Free(), out.Free(), d.Free(memory))
	})
	if len(d.pinned) != 0 {
		t.Errorf("%d buffers are still known", len(d.pinned))
	}
}

func TestEvents(t *testing.T) {
	d := open(t)
	do(t, d, func() error {
		first, err := d.Stream()
		if err != nil {
			return err
		}
		second, err := d.Stream()
		if err != nil {
			return err
		}
		memory, err := d.Alloc(64 << 20)
		if err != nil {
			return err
		}
		start, err := first.Record()
		if err != nil {
			return err
		}
		if err := first.Fill(memory, 1, 64<<20); err != nil {
			return err
		}
		end, err := first.Record()
		if err != nil {
			return err
		}
		if err := errors.Join(second.Wait(end), second.Synchronize()); err != nil {
			return err
		}
		if done, err := first.Query(); !done || err != nil {
			t.Errorf("done: %v, %v", done, err)
		}
		if took, err := end.Since(start); err != nil || took <= 0 || took > time.Minute {
			t.Errorf("took %v, %v", took, err)
		}
		return errors.Join(first.RecordIn(start), start.Synchronize(), start.Destroy(), end.Destroy())
	})
}

func TestErrorsNameTheCall(t *testing.T) {
	d := open(t)
	do(t, d, func() error {
		m, err := d.Load(testPTX)
		if err != nil {
			return err
		}
		if _, err := m.Function("adds"); err == nil || err.Error() != `find kernel "adds": cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500)` {
			t.Errorf("a kernel that is not there: %v", err)
		}
		broken := strings.Replace(string(testPTX), "fma.rn.f32", "fma.rn.f33", 1)
		if _, err := d.Load([]byte(broken)); err == nil || !strings.Contains(err.Error(), "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218)\n") {
			t.Errorf("PTX that does not compile: %v", err)
		}
		_, total, err := d.Memory()
		if err != nil {
			return err
		}
		if _, err := d.Alloc(2 * total); err == nil || !strings.Contains(err.Error(), "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)") || !strings.Contains(err.Error(), " are free") {
			t.Errorf("twice the memory: %v", err)
		}
		if _, err := d.Alloc(0); err == nil {
			t.Error("nothing was allocated")
		}
		return m.Unload()
	})
}

// A kernel that traps takes the context with it, so this runs in a child process.
func TestStickyError(t *testing.T) {
	if os.Getenv("SLIPWAY_FAULT") != "" {
		fault(t)
		return
	}
	open(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, "-test.run=^TestStickyError$", "-test.v")
	command.Env = append(os.Environ(), "SLIPWAY_FAULT=1")
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "sticky") {
		t.Errorf("%v\n%s", err, out)
	}
}

func fault(t *testing.T) {
	d, err := Open(0)
	if err != nil {
		t.Fatal(err)
	}
	do(t, d, func() error {
		s, err := d.Stream()
		if err != nil {
			return err
		}
		f, err := kernel(d, "fault")
		if err != nil {
			return err
		}
		if err := s.Launch(f, Launch{Grid: [3]int{1}, Block: [3]int{1}}); err != nil {
			return err
		}
		err = s.Synchronize()
		if !Sticky(err) {
			t.Errorf("a trap is %v", err)
		}
		if _, next := d.Alloc(1); !Sticky(next) {
			t.Errorf("the context is not lost: %v", next)
		}
		t.Logf("sticky: %v", err)
		return nil
	})
}
