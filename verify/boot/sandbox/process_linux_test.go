package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/verify/boot/sandbox"
)

// begin starts a script and returns its output, to be read as it comes.
func begin(t *testing.T, s *sandbox.Sandbox, text string) (*sandbox.Process, *bufio.Reader) {
	t.Helper()
	read, write, err := os.Pipe() // holds what nobody reads
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	p, err := s.Start(sandbox.Command{Argv: []string{"sh", "-c", text}, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, Output: write})
	if err != nil {
		t.Fatal(err)
	}
	return p, bufio.NewReader(read)
}

// ended waits for a process and returns how it ended.
func ended(t *testing.T, p *sandbox.Process) string {
	t.Helper()
	select {
	case <-p.Exited():
	case <-time.After(patience):
		t.Fatal("the process does not end")
	}
	if p.Err() == nil {
		return ""
	}
	return p.Err().Error()
}

// until polls for what another process is about to do.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within patience: " + what)
		}
	}
}

func TestHowProcessesEnd(t *testing.T) {
	for _, tc := range []struct{ name, script, want string }{
		{"well", "exit 0", ""},
		{"with a status", "exit 3", "exit status 3"},
		{"by a signal", "kill -9 $$", "signal: killed"},
		{"by another", "kill -TERM $$", "signal: terminated"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, _ := begin(t, open(t, sandbox.Options{}), tc.script)
			if got := ended(t, p); got != tc.want {
				t.Errorf("ended with %q, want %q", got, tc.want)
			}
			if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("signal after the end: %v", err)
			}
		})
	}
}

func TestWhatCannotStart(t *testing.T) {
	s := open(t, sandbox.Options{Submission: submission(t, map[string]string{"crlf.sh": "#!/bin/sh\r\necho\r\n", "ok.sh": "#!/bin/sh\nexit 4\n"}), User: 12345})
	env := []string{"PATH=/usr/bin:/bin"}
	for _, tc := range []struct {
		name    string
		command sandbox.Command
		want    error
	}{
		{"a missing program", sandbox.Command{Argv: []string{"/submission/missing"}, Env: env}, syscall.ENOENT},
		{"a script without its interpreter", sandbox.Command{Argv: []string{"/submission/crlf.sh"}, Env: env}, syscall.ENOENT},
		{"a folder", sandbox.Command{Argv: []string{"/submission"}, Env: env}, syscall.EACCES},
		{"a missing folder", sandbox.Command{Argv: []string{"sh"}, Env: env, Dir: "/not/there"}, syscall.ENOENT},
		{"nothing in PATH", sandbox.Command{Argv: []string{"sh"}, Env: []string{"PATH=/submission"}}, nil},
		{"no command", sandbox.Command{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := s.Start(tc.command)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || errors.Is(err, sandbox.ErrNotStarted) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
	p, err := s.Start(sandbox.Command{Argv: []string{"/submission/ok.sh"}, Env: env})
	if err != nil {
		t.Fatal("after all those: ", err)
	}
	if got := ended(t, p); got != "exit status 4" {
		t.Errorf("ended with %q", got)
	}
}

func TestOneCommandAtATime(t *testing.T) {
	s := open(t, sandbox.Options{})
	p, _ := begin(t, s, "exec tail -f /dev/null")
	if _, err := s.Start(sandbox.Command{Argv: []string{"true"}}); !errors.Is(err, sandbox.ErrNotStarted) || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("a second start: %v", err)
	}
	if err := s.KillAll(); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, p); got != "signal: killed" {
		t.Errorf("ended with %q", got)
	}
	if _, err := script(t, s, "true"); err != nil {
		t.Errorf("a start after the end: %v", err)
	}
}

func TestSignalReachesTheCommand(t *testing.T) {
	s := open(t, sandbox.Options{User: 12345})
	p, output := begin(t, s, `trap 'echo caught; exit 7' TERM; echo ready; while :; do read x </dev/ptmx & wait $!; done`)
	if line, err := output.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if line, err := output.ReadString('\n'); line != "caught\n" {
		t.Errorf("%q, %v", line, err)
	}
	if got := ended(t, p); got != "exit status 7" {
		t.Errorf("ended with %q", got)
	}
}

func TestOutputIsWhole(t *testing.T) {
	var output bytes.Buffer
	s := open(t, sandbox.Options{})
	p, err := s.Start(sandbox.Command{Argv: []string{"/bin/sh", "-c", "head -c 3000000 /dev/zero; echo end >&2"}, Env: []string{"PATH=/usr/bin:/bin"}, Output: &output})
	if err != nil {
		t.Fatal(err)
	}
	if got := ended(t, p); got != "" || output.Len() != 3000004 || !strings.HasSuffix(output.String(), "end\n") {
		t.Errorf("ended with %q, %d bytes", got, output.Len())
	}
}

func TestOrphansAreSeenAndEnded(t *testing.T) {
	s := open(t, sandbox.Options{User: 12345})
	p, _ := begin(t, s, "setsid tail -f /dev/null & exec true")
	if got := ended(t, p); got != "" {
		t.Fatalf("ended with %q", got)
	}
	isTail := func(i sandbox.ProcessInfo) bool { return i.Command == "tail -f /dev/null" && i.PID > 1 }
	until(t, "the orphan is listed alone", func() bool {
		left, err := s.Processes()
		if err != nil {
			t.Fatal(err)
		}
		return len(left) == 1 && isTail(left[0])
	})
	if err := s.KillAll(); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Processes(); err != nil || len(left) != 0 {
		t.Errorf("after KillAll: %v, %v", left, err)
	}
}

// server is a small HTTP server that tells when it listens.
const server = `exec python3 -u -c '
import http.server, sys
s = http.server.HTTPServer(("%s", 8000), http.server.SimpleHTTPRequestHandler)
print("ready")
s.serve_forever()'`

func TestDial(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		skip(t, err)
	}
	for _, tc := range []struct {
		host    string
		reached bool
	}{{"0.0.0.0", true}, {"127.0.0.1", false}} {
		t.Run(tc.host, func(t *testing.T) {
			s := open(t, sandbox.Options{User: 12345})
			p, output := begin(t, s, strings.Replace(server, "%s", tc.host, 1))
			if line, err := output.ReadString('\n'); line != "ready\n" {
				t.Fatalf("%q, %v", line, err)
			}
			if ports, err := s.Listening(); err != nil || !slices.Equal(ports, []int{8000}) {
				t.Errorf("listening on %v, %v", ports, err)
			}
			client := &http.Client{Transport: &http.Transport{DialContext: s.Dial}}
			response, err := client.Get("http://" + s.Address() + ":8000/")
			if tc.reached {
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				if response.StatusCode != http.StatusOK {
					t.Error(response.Status)
				}
			} else if !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("error %v, want ECONNREFUSED", err)
			}
			if err := p.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if got := ended(t, p); got != "signal: terminated" {
				t.Errorf("ended with %q", got)
			}
			if ports, err := s.Listening(); err != nil || len(ports) != 0 {
				t.Errorf("still listening on %v, %v", ports, err)
			}
		})
	}
}

func TestDialCannot(t *testing.T) {
	s := open(t, sandbox.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tc := range []struct {
		name, address string
		ctx           context.Context
		want          error
	}{
		{"refused", "192.0.2.2:1", context.Background(), syscall.ECONNREFUSED},
		{"unreachable", "198.51.100.1:80", context.Background(), syscall.ENETUNREACH},
		{"cancelled", "192.0.2.2:1", ctx, context.Canceled},
		{"a name", "localhost:80", context.Background(), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn, err := s.Dial(tc.ctx, "tcp", tc.address)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.address) {
				t.Errorf("%v, %v, want %v", conn, err, tc.want)
			}
		})
	}
}

func traced(t *testing.T, s *sandbox.Sandbox) sandbox.Trace {
	t.Helper()
	trace, err := s.Trace()
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestTrace(t *testing.T) {
	s := open(t, sandbox.Options{Submission: submission(t, map[string]string{"file": "x", "run.sh": "#!/bin/sh\nexit 0\n"}), User: 12345})
	needs(t, s, sandbox.Traced)
	text := `cd /submission; cat file ./nope 2>/dev/null; ./run.sh a "b c"; echo x >/tmp/new; cat /tmp/new; ls /usr >/dev/null; nosuchprogram 2>/dev/null
		bash -c 'echo >/dev/tcp/198.51.100.7/443' 2>/dev/null; bash -c 'echo >/dev/udp/127.0.0.1/53' 2>/dev/null; exit 0`
	if _, err := script(t, s, text); err != nil {
		t.Fatal(err)
	}
	trace := traced(t, s)
	opened := map[string]sandbox.Opened{}
	for _, o := range trace.Opened {
		if _, twice := opened[o.Path]; twice {
			t.Errorf("%s is listed twice", o.Path)
		}
		if o.At <= 0 || o.At > patience {
			t.Errorf("%s was opened at %s", o.Path, o.At)
		}
		opened[o.Path] = o
	}
	for path, want := range map[string]sandbox.Opened{
		"/submission/file":   {Exists: true},
		"/submission/nope":   {},
		"/submission/run.sh": {Exists: true},
		"/tmp/new":           {Exists: true, Written: true},
		"/dev/null":          {Exists: true, Written: true},
	} {
		got, ok := opened[path]
		if !ok || got.Exists != want.Exists || got.Written != want.Written {
			t.Errorf("%s: %+v (listed: %v), want %+v", path, got, ok, want)
		}
	}
	for _, path := range []string{"/usr", "/submission"} {
		if _, ok := opened[path]; ok {
			t.Errorf("the folder %s is listed", path)
		}
	}
	isRun := func(p sandbox.Program) bool {
		return p.Path == "/submission/run.sh" && slices.Equal(p.Argv, []string{"./run.sh", "a", "b c"})
	}
	if !slices.ContainsFunc(trace.Programs, isRun) || trace.Programs[0].Path != "/bin/sh" {
		t.Errorf("programs: %v", trace.Programs)
	}
	if slices.ContainsFunc(trace.Programs, func(p sandbox.Program) bool { return strings.Contains(p.Path, "nosuch") }) {
		t.Errorf("a program that is not there was started: %v", trace.Programs)
	}
	var addresses []string
	for _, c := range trace.Connections {
		addresses = append(addresses, c.Address)
	}
	if !slices.Equal(addresses, []string{"198.51.100.7:443", "127.0.0.1:53"}) {
		t.Errorf("connections: %v", addresses)
	}
	if _, err := script(t, s, "true"); err != nil {
		t.Fatal(err)
	}
	if again := traced(t, s); len(again.Connections) != 0 || len(again.Programs) != 1 {
		t.Errorf("the next trace: %+v", again)
	}
}

// A datagram needs no connection: every call that can name an address is seen.
func TestTraceOfDatagrams(t *testing.T) {
	s := open(t, sandbox.Options{Submission: filepath.Dir(testProgram(t)), User: 12345})
	needs(t, s, sandbox.Traced)
	p, err := s.Start(sandbox.Command{Argv: []string{"/submission/program"}, Env: []string{partVariable + "=sends"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for _, c := range traced(t, s).Connections {
		addresses = append(addresses, c.Address)
	}
	if want := []string{"192.0.2.1:53", "192.0.2.2:53", "192.0.2.3:53", "192.0.2.4:53"}; !slices.Equal(addresses, want) {
		t.Errorf("sent to %v, want %v", addresses, want)
	}
}

// What starts a Python program again is kept, of others only what is shown.
func TestTraceOfInvocations(t *testing.T) {
	s := open(t, sandbox.Options{Submission: submission(t, map[string]string{"python3": "#!/bin/sh\n", "tool": "#!/submission/python3 -u\n", "other": "#!/bin/sh\n"}), User: 12345})
	needs(t, s, sandbox.Traced)
	long := strings.Repeat("x", 2000)
	if got, err := script(t, s, "cd /tmp; export MADE='a b'; /submission/other 1; /submission/python3 "+long+"; exec /submission/tool 2"); err != nil {
		t.Fatal(got, err)
	}
	programs := traced(t, s).Programs
	if len(programs) != 4 || programs[1].Python != nil || programs[2].Python == nil || programs[3].Python == nil {
		t.Fatalf("programs: %+v", programs)
	}
	python, tool := programs[2].Python, programs[3].Python
	if !slices.Equal(python.Argv, []string{"/submission/python3", long}) || python.Dir != "/tmp" || !slices.Contains(python.Env, "MADE=a b") || python.Interpreter != "/bin/sh" {
		t.Errorf("python3 is started by %+v", python)
	}
	if tool.Interpreter != "/submission/python3 -u" || !slices.Equal(tool.Argv, []string{"/submission/tool", "2"}) || programs[3].PID != programs[0].PID || programs[2].PID == programs[0].PID {
		t.Errorf("tool is started by %+v of %+v", tool, programs)
	}
}

// Of a file that would keep who opens it waiting nothing is read.
func TestTraceOfPipe(t *testing.T) {
	s := open(t, sandbox.Options{Submission: submission(t, map[string]string{"python3": "#!/bin/sh\n"}), User: 12345})
	needs(t, s, sandbox.Traced)
	if got, err := script(t, s, "mkfifo -m 755 /tmp/x; (/tmp/x &) 2>/dev/null; /submission/python3"); err != nil {
		t.Fatal(got, err)
	}
	isPython := func(p sandbox.Program) bool { return p.Path == "/submission/python3" && p.Python != nil }
	if programs := traced(t, s).Programs; !slices.ContainsFunc(programs, isPython) {
		t.Errorf("programs: %+v", programs)
	}
}

// What is too much to keep costs no memory: an environment in which a thousand
// variables are one long text.
func TestTraceOfLongEnvironment(t *testing.T) {
	folder := filepath.Dir(testProgram(t))
	if err := os.WriteFile(filepath.Join(folder, "python"), []byte("no program\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, sandbox.Options{Submission: folder, User: 12345})
	needs(t, s, sandbox.Traced)
	for length, kept := range map[int]bool{1: true, 200: true, 300: false, longText: false} {
		p, err := s.Start(sandbox.Command{Argv: []string{"/submission/program"}, Env: []string{partVariable + "=executes", lengthVariable + "=" + strconv.Itoa(length)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Err(); err != nil {
			t.Fatal(err)
		}
		programs := traced(t, s).Programs
		if len(programs) != 2 || programs[1].Path != "/submission/python" || (programs[1].Python != nil) != kept {
			t.Fatalf("%d bytes each: programs %+v", length, programs)
		}
		if kept && (len(programs[1].Python.Env) != variablesCount || len(programs[1].Python.Env[0]) != length) {
			t.Errorf("%d bytes each: %d variables", length, len(programs[1].Python.Env))
		}
	}
}

// What a link or another name hides is in the trace under its own name too.
func TestTraceOfOtherNames(t *testing.T) {
	s := open(t, sandbox.Options{Submission: submission(t, map[string]string{"one": "1", "two": "2", "three": "3"}), User: 12345})
	needs(t, s, sandbox.Traced)
	text := "ln -s /submission /tmp/folder; ln -s /submission/one /tmp/one; cat /tmp/one /tmp/folder/two /proc/self/root/submission/three /tmp/one"
	if got, err := script(t, s, text); got != "1231" {
		t.Fatal(got, err)
	}
	var paths []string
	for _, o := range traced(t, s).Opened {
		if strings.HasPrefix(o.Path, "/submission/") || strings.HasPrefix(o.Path, "/tmp/") {
			paths = append(paths, o.Path)
		}
	}
	if want := []string{"/tmp/one", "/submission/one", "/tmp/folder/two", "/submission/two", "/submission/three"}; !slices.Equal(paths, want) {
		t.Errorf("opened %v, want %v", paths, want)
	}
}

func TestMemoryLimit(t *testing.T) {
	s := open(t, sandbox.Options{Memory: 64 << 20, User: 12345})
	needs(t, s, sandbox.MemoryLimit)
	if _, err := script(t, s, "head -c 8M /dev/zero | tail >/dev/null"); err != nil {
		t.Errorf("a small one: %v", err)
	}
	if _, err := script(t, s, "exec tail /dev/zero"); err == nil || err.Error() != "out of memory: killed at the limit of 67108864 bytes" {
		t.Errorf("a hog: %v", err)
	}
	if _, err := script(t, s, "tail /dev/zero; exit 5"); err == nil || err.Error() != "out of memory: exit status 5 after a process of it was killed at the limit of 67108864 bytes" {
		t.Errorf("a hog's parent: %v", err)
	}
	if _, err := script(t, s, "kill -9 $$"); err == nil || err.Error() != "signal: killed" {
		t.Errorf("another end: %v", err)
	}
}

func TestCPULimit(t *testing.T) {
	s := open(t, sandbox.Options{CPUs: 0.5})
	needs(t, s, sandbox.CPULimit)
	byAffinity := slices.ContainsFunc(s.Conditions(), func(c sandbox.Condition) bool {
		return c.Name == sandbox.CPULimit && strings.Contains(c.Detail, "affinity")
	})
	text, want := `cat /sys/fs/cgroup/cpu*/$(grep -E ':cpu(,|:)' /proc/self/cgroup | cut -d: -f3)/cpu.cfs_quota_us 2>/dev/null ||
		cut -d' ' -f1 /sys/fs/cgroup/$(grep ^0: /proc/self/cgroup | cut -d: -f3)/cpu.max`, "50000"
	if byAffinity {
		text, want = "nproc", "1"
	}
	if got, err := script(t, s, text); err != nil || got != want {
		t.Errorf("limited to %q, %v, want %q", got, err, want)
	}
}

// cuda asks the driver for a context and memory, and prints its answers.
const cuda = `python3 -c '
from ctypes import *
c = CDLL("libcuda.so.1")
device, context, memory = c_int(), c_void_p(), c_void_p()
print(c.cuInit(0), c.cuDeviceGet(byref(device), 0), c.cuCtxCreate_v2(byref(context), 0, device), c.cuMemAlloc_v2(byref(memory), c_size_t(1 << 20)))'`

func TestGPU(t *testing.T) {
	for _, user := range []int{0, 12345} {
		s := open(t, sandbox.Options{GPU: true, User: user})
		needs(t, s, sandbox.GPUDevices)
		if got, err := script(t, s, "ls /dev/nvidia0"); err != nil || got != "/dev/nvidia0" {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := script(t, s, "if command -v python3; then "+cuda+"; else echo python3; echo 0 0 0 0; fi"); err != nil || !strings.HasSuffix(got, "python3\n0 0 0 0") {
			t.Errorf("%q, %v", got, err)
		} else {
			t.Log(got)
		}
	}
}
