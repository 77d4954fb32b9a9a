package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slipway/runtime/engine"
	"slipway/runtime/model"
)

// faultVariable has the test program be the runtime, with a model that loses its
// device whenever a file of that name turns up.
const faultVariable = "SLIPWAY_TEST_FAULT"

func TestMain(m *testing.M) {
	fault := os.Getenv(faultVariable)
	if fault == "" {
		os.Exit(m.Run())
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM)
	os.Exit(execute(&process{
		args: os.Args[1:], stdout: os.Stdout, stderr: os.Stderr, signals: signals,
		lost: func(err error) bool { return errors.Is(err, errGone) },
		wrap: func(s engine.Stepper) engine.Stepper { return losing{s, fault} },
	}))
}

var errGone = errors.New("the device fell off the bus")

// losing is a model that loses its device.
type losing struct {
	engine.Stepper
	fault string // a file
}

func (l losing) Step(work []model.Work) ([]model.Result, error) {
	if os.Remove(l.fault) == nil {
		return nil, errGone
	}
	return l.Stepper.Step(work)
}

// faulty is the runtime with a fault, in a process of its own.
type faulty struct {
	*exec.Cmd
	fault string
	lines chan string // of standard error; closed at its end
	url   string
}

func startFaulty(t *testing.T, args ...string) *faulty {
	t.Helper()
	f := &faulty{fault: filepath.Join(t.TempDir(), "fault"), lines: make(chan string, 100)}
	f.Cmd = exec.Command(os.Args[0], append([]string{"--host", "127.0.0.1", "--port", "0"}, args...)...)
	f.Env = append(os.Environ(), faultVariable+"="+f.fault)
	stderr, err := f.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Process.Kill() })
	go func() {
		defer close(f.lines)
		for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
			f.lines <- scanner.Text()
		}
	}()
	f.url = "http://" + strings.TrimPrefix(f.until(t, "listening on "), "runtime: listening on ")
	f.until(t, "ready")
	return f
}

// until returns the first line from here on that begins so.
func (f *faulty) until(t *testing.T, prefix string) string {
	t.Helper()
	var seen []string
	for line := range f.lines {
		if strings.HasPrefix(line, "runtime: "+prefix) {
			return line
		}
		seen = append(seen, line)
	}
	t.Fatalf("no %q in %q", prefix, seen)
	return ""
}

// ask returns status and body of a completion.
func (f *faulty) ask(t *testing.T) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"prompt": "1 + 1 =", "max_tokens": 4})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(f.url+"/v1/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (f *faulty) loseDevice(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(f.fault, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if status, text := f.ask(t); status != http.StatusInternalServerError || !strings.Contains(text, errGone.Error()) {
		t.Errorf("the request in flight got %d %s", status, text)
	}
}

// A lost device costs the requests in flight. The program starts again in the same
// process on the same port, with the same answers; the second loss ends it.
func TestRestartAfterLoss(t *testing.T) {
	f := startFaulty(t, "--weights", ternary)
	_, before := f.ask(t)
	f.loseDevice(t)
	f.until(t, "the device is lost: "+errGone.Error())
	f.until(t, "starting again on the same port")
	// Nobody is refused meanwhile: the socket is open all the time.
	if answer, err := http.Get(f.url + "/health"); err != nil {
		t.Error(err)
	} else {
		answer.Body.Close()
	}
	if again := f.until(t, "listening on "); !strings.HasSuffix(again, strings.TrimPrefix(f.url, "http://")) {
		t.Errorf("%s, before %s", again, f.url)
	}
	f.until(t, "ready")
	if status, after := f.ask(t); status != http.StatusOK || choices(t, after) != choices(t, before) {
		t.Errorf("answered %d %s, before %s", status, after, before)
	}
	f.loseDevice(t)
	f.until(t, "the device is lost: "+errGone.Error()+", and was lost before")
	for range f.lines {
	}
	var exit *exec.ExitError
	if err := f.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitCannotRun {
		t.Errorf("ended with %v, want exit code %d", err, exitCannotRun)
	}
}

// choices are what stays the same in equal answers.
func choices(t *testing.T, answer string) string {
	t.Helper()
	var parsed struct{ Choices json.RawMessage }
	if err := json.Unmarshal([]byte(answer), &parsed); err != nil || len(parsed.Choices) == 0 {
		t.Fatalf("%v: %s", err, answer)
	}
	return string(parsed.Choices)
}

// A signal after the restart ends the program as before it.
func TestStopAfterRestart(t *testing.T) {
	f := startFaulty(t, "--weights", ternary)
	f.loseDevice(t)
	f.until(t, "ready")
	if err := f.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	f.until(t, "stopped")
	for range f.lines {
	}
	if err := f.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// A device that is lost before anything was served is no reason to try again.
func TestLossWhileStarting(t *testing.T) {
	var stderr bytes.Buffer
	fault := filepath.Join(t.TempDir(), "fault")
	if err := os.WriteFile(fault, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p := &process{
		args: []string{"--host", "127.0.0.1", "--port", "0", "--weights", ternary}, stdout: io.Discard, stderr: &stderr,
		lost: func(err error) bool { return errors.Is(err, errGone) },
		wrap: func(s engine.Stepper) engine.Stepper { return losing{s, fault} },
	}
	if end := p.run(); end.restart || end.code != exitCannotRun || !strings.Contains(stderr.String(), "warm up: ") {
		t.Errorf("%+v: %s", end, &stderr)
	}
}

func TestListenDescriptor(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	descriptor, err := syscall.Dup(int(null.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listen(options{listenDescriptor: descriptor}); err == nil || !strings.Contains(err.Error(), "--listen-descriptor") {
		t.Errorf("a file was taken for a socket: %v", err)
	}
}
