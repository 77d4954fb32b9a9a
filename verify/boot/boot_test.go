//go:build unix

package boot

import (
	"errors"
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
	"slipway/verify/boot/ask"
)

// self is the test program.
func self(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func submission(t *testing.T, script string) Options {
	t.Helper()
	folder := t.TempDir()
	const variable = "BOOT_TEST_SERVER"
	script = strings.NewReplacer(variable, variable, "SERVER", variable+"=plain exec '"+self(t)+"' \"$@\"").Replace(script)
	if err := os.WriteFile(filepath.Join(folder, "serve.sh"), []byte("#!/bin/sh\n"+script+"\n"), 0o644); err != nil {
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

func TestServe(t *testing.T) {
	s := start(t, "SERVER")
	if _, err := s.WaitHealthy(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	questions, err := ask.ReadQuestions([]byte(`{"id":"1","question":"say yes","answer":"yes"}
{"id":"2","question":"say no","answer":"yes"}

{"id":"3","question":"fail","answer":"yes"}
`))
	if err != nil {
		t.Fatal(err)
	}
	answers, err := ask.All(t.Context(), ask.Endpoint{URL: s.URL}, questions, ask.Load{Concurrency: 2, MaxTokens: 4, Request: patience})
	if err != nil {
		t.Fatal(err)
	}
	if !answers[0].Right() || answers[0].Tokens != 2 || answers[0].Finish != "stop" || answers[1].Right() || answers[1].Failed != nil {
		t.Errorf("answers %+v", answers)
	}
	if a := answers[2]; a.Right() || a.Failed == nil || !strings.Contains(a.Failed.Error(), `500 Internal Server Error: out of\x1b[31m luck`) {
		t.Errorf("a failed request gives %+v", a)
	}
	s.Stop()
	if _, err := http.Get(s.URL + "/health"); err == nil {
		t.Error("the server still answers after Stop")
	}
	if log := s.Log(); !strings.Contains(log, "listening on") {
		t.Errorf("log %q", log)
	}
}

// The target goes 1 2 3 7 8 20: the first draft after 0 is right for three ids
// and step one adds the 7; the second is right for 8 and adds 20.
func TestMeasureDrafts(t *testing.T) {
	s := start(t, "SERVER")
	if _, err := s.WaitHealthy(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	continuations, err := ask.ReadContinuations([]byte(`{"id":"a","prompt":[9,0],"continuation":[1,2,3,7,8,20]}` + "\n" + `{"id":"b","prompt":[5],"continuation":[6]}`))
	if err != nil {
		t.Fatal(err)
	}
	a, err := ask.MeasureDrafts(t.Context(), ask.Endpoint{URL: s.URL}, continuations, ask.Load{Concurrency: 2, MaxTokens: 16, Request: patience})
	if err != nil {
		t.Fatal(err)
	}
	if a.Tokens != 7 || a.Steps != 3 || a.Failed != 0 || a.Tau() != 7.0/3 || a.PerPrompt != 2 {
		t.Errorf("%+v, tau %v", a, a.Tau())
	}
	s.Stop()
	a, err = ask.MeasureDrafts(t.Context(), ask.Endpoint{URL: s.URL}, continuations, ask.Load{Concurrency: 1, MaxTokens: 16, Request: patience})
	if err != nil || a.Failed != 7 || a.Tau() != 1 { // every step adds the target's own token
		t.Errorf("of a dead server: %+v %v", a, err)
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

func TestReadQuestionsRefuses(t *testing.T) {
	for in, fault := range map[string]string{
		`{"id":"1","Question":"x"}`:             `line 1: top level: key "Question" must be written "question"`,
		"{}\n{\"id\":\"1\",\"id\":\"2\"}":       "line 2",
		`{"id":"1","question":"x","extra":"y"}`: "unknown key",
	} {
		if _, err := ask.ReadQuestions([]byte(in)); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: error %v, want %q", in, err, fault)
		}
	}
}

func TestTail(t *testing.T) {
	log := newTail(5)
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
