package benchmarks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These variables turn the test binary into a measured process.
const (
	childSubject = "SLIPWAY_BENCH_SUBJECT"
	childPlace   = "SLIPWAY_BENCH_PLACE"      // JSON
	childProfile = "SLIPWAY_BENCH_CPUPROFILE" // folder for CPU profiles; may be empty
)

func TestMain(m *testing.M) {
	if name := os.Getenv(childSubject); name != "" {
		if err := runChild(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runChild runs one subject and prints how long it took, in nanoseconds.
func runChild(name string) error {
	all := append([]subject{bare, remember, hold, planning}, measured...)
	i := slices.IndexFunc(all, func(s subject) bool { return s.name == name })
	if i < 0 {
		return fmt.Errorf("no subject is called %q", name)
	}
	var p place
	if err := json.Unmarshal([]byte(os.Getenv(childPlace)), &p); err != nil {
		return fmt.Errorf("read %s: %w", childPlace, err)
	}
	if folder := os.Getenv(childProfile); folder != "" {
		file, err := os.Create(folder + "/" + filepath.Base(p.Weights) + "-" + name + ".pprof")
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	start := time.Now()
	if err := all[i].run(context.Background(), p); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Println(time.Since(start).Nanoseconds())
	return nil
}

// result is what a process of its own took.
type result struct {
	wall, processor time.Duration // processor: user and system time of the whole process
	resident        int64         // peak resident set, bytes
}

// measure runs a subject in a process of its own. Its time is that of the work,
// without the start of the process. A fresh process inherits the peak resident
// set of its parent on Linux, so the parent must stay small; it only ever makes
// the number larger.
func measure(tb testing.TB, s subject, p place) result {
	tb.Helper()
	binary, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	where, err := json.Marshal(p)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), childSubject+"="+s.name, childPlace+"="+string(where))
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			tb.Fatalf("%s: %v: %s", s.name, err, exit.Stderr)
		}
		tb.Fatalf("%s: %v", s.name, err)
	}
	nanoseconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		tb.Fatalf("%s: %v", s.name, err)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		tb.Skip("this system does not say how much memory a process took")
	}
	r := result{
		wall: time.Duration(nanoseconds), processor: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
		resident: usage.Maxrss,
	}
	if runtime.GOOS != "darwin" { // there it is in bytes, elsewhere in KiB
		r.resident <<= 10
	}
	return r
}
