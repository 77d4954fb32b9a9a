//go:build unix

package local

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/manifest"
	"slipway/verify/boot/sandbox"
)

// The test program is its own submission: serve.sh runs it again as a server,
// whose status of /health LOCAL_TEST_HEALTH gives.
func TestMain(m *testing.M) {
	sandbox.Main()
	if status := os.Getenv("LOCAL_TEST_HEALTH"); status != "" {
		fmt.Println(serve(status))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func serve(health string) error {
	port := flag.Int("port", 8000, "")
	flag.Parse()
	status, err := strconv.Atoi(health)
	if err != nil {
		return err
	}
	http.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	fmt.Println("listening on", *port)
	return http.ListenAndServe(":"+strconv.Itoa(*port), nil)
}

// self is the test program.
func self(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// submission is one whose serve.sh holds a script, in which SERVER stands for a
// healthy server at the port that it is told.
func submission(t *testing.T, script string) Options {
	t.Helper()
	folder := t.TempDir()
	script = strings.ReplaceAll(script, "SERVER", "LOCAL_TEST_HEALTH=200 exec '"+self(t)+"' \"$@\"")
	if err := os.WriteFile(filepath.Join(folder, ServeScript), []byte("#!/bin/sh\n"+script+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return Options{Folder: folder, TempDir: t.TempDir(), Path: os.Getenv("PATH")}
}

func start(t *testing.T, script string) *Server {
	t.Helper()
	s, err := Start(submission(t, script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

const patience = time.Minute // far more than any of this takes

// A server that is stopped answers no more, and what it printed is kept.
func TestStop(t *testing.T) {
	s := start(t, "SERVER")
	if _, err := s.WaitHealthy(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if _, err := http.Get(s.URL + "/health"); err == nil {
		t.Error("the server still answers after Stop")
	}
	if log := s.Log(); !strings.Contains(log, "listening on") {
		t.Errorf("log %q", log)
	}
}

// Its own first line says what serve.sh is run by; without an x bit it is bash.
func TestScriptOfBash(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	for _, mode := range []os.FileMode{0o755, 0o644} {
		options := submission(t, "words=(a b)\nif [ \"${words[1]}\" = b ]; then SERVER; fi")
		script := filepath.Join(options.Folder, ServeScript)
		text, err := os.ReadFile(script)
		if err == nil {
			err = errors.Join(os.WriteFile(script, []byte(strings.Replace(string(text), "#!/bin/sh", "#!/usr/bin/env bash", 1)), mode), os.Chmod(script, mode))
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := Start(options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		if _, err := s.WaitHealthy(t.Context(), patience); err != nil {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

func TestServerThatEnds(t *testing.T) {
	s := start(t, "echo 'ModuleNotFoundError: accelerate' >&2\nexit 7")
	_, err := s.WaitHealthy(t.Context(), patience)
	if err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(manifest.Hint(err), "ModuleNotFoundError: accelerate") {
		t.Errorf("error %v, hint %q", err, manifest.Hint(err))
	}
}

func TestServerThatIsNeverHealthy(t *testing.T) {
	s := start(t, "echo waiting\nexec sleep 600")
	_, err := s.WaitHealthy(t.Context(), time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "did not answer 200 within 1ms") {
		t.Errorf("error %v", err)
	}
}

// A server that ignores the polite signal, and what it started, are gone after
// Stop.
func TestStopEndsTheWholeGroup(t *testing.T) {
	options := submission(t, `trap '' TERM
sleep 600 &
echo $! > "$HOME/child"
wait
sleep 600`)
	options.Grace = time.Millisecond
	s, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	var child int
	for child == 0 {
		data, _ := os.ReadFile(filepath.Join(options.TempDir, "child"))
		child, _ = strconv.Atoi(strings.TrimSpace(string(data)))
	}
	s.Stop()
	select {
	case <-s.Exited():
	default:
		t.Error("Stop returned before the server had ended")
	}
	// Whoever adopted the child reaps it in its own time; a zombie is dead.
	if err := syscall.Kill(child, 0); err == nil {
		state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if fields := strings.Fields(string(state)); len(fields) > 2 && !strings.Contains("ZX", fields[2]) {
			t.Errorf("the child %d still runs: %s", child, state)
		}
	} else if !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}

func TestNoServeScript(t *testing.T) {
	_, err := Start(Options{Folder: t.TempDir(), TempDir: t.TempDir()})
	if err == nil || manifest.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
}

func TestTail(t *testing.T) {
	log := &Tail{limit: 5}
	for _, part := range []string{"ab", "cdef", "", "0123456789"} {
		if n, err := log.Write([]byte(part)); n != len(part) || err != nil {
			t.Error(n, err)
		}
	}
	if log.String() != "56789" {
		t.Errorf("kept %q", log.String())
	}
}

// A daemon that left the group and holds the output keeps nobody waiting.
func TestDaemonThatHoldsTheOutput(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	options := submission(t, `setsid sleep 600 &
echo $! > "$HOME/daemon"
exit 0`)
	s, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		data, _ := os.ReadFile(filepath.Join(options.TempDir, "daemon"))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	if _, err := s.WaitHealthy(t.Context(), patience); err == nil || !strings.Contains(err.Error(), "ended before it was healthy: exit status 0") {
		t.Errorf("error %v", err)
	}
	s.Stop()
}

// A relative folder is the caller's, not the submission's.
func TestRelativeFolders(t *testing.T) {
	options := submission(t, "SERVER")
	t.Chdir(filepath.Dir(options.Folder))
	options.Folder = filepath.Base(options.Folder)
	s, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if _, err := s.WaitHealthy(t.Context(), patience); err != nil {
		t.Error(err)
	}
}
