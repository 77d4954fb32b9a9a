// Package boot starts a submission the way its grader does, through serve.sh,
// and asks it what the grader asks. It promises that whatever it started is
// gone when it is done: the process group is ended, politely and then not. It
// does not sandbox yet, and its callers say so.
package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"slipway/manifest"
)

// Options of Start.
type Options struct {
	Folder  string        // the submission
	Port    int           // passed to serve.sh; 0: a free one
	TempDir string        // the submission's HOME and TMPDIR; must exist
	Path    string        // the submission's PATH
	Grace   time.Duration // between the polite end and the other; 0: ten seconds
	Log     io.Writer     // gets what the server prints; may be nil
}

// Server is a running submission.
type Server struct {
	URL string // http://127.0.0.1:PORT

	command *exec.Cmd
	log     *tail
	grace   time.Duration
	exited  chan struct{}
	err     error // of the process; valid once exited is closed
}

// Start runs serve.sh and returns at once; WaitHealthy waits for it. Stop must
// be called.
func Start(options Options) (*Server, error) {
	for _, folder := range []*string{&options.Folder, &options.TempDir} {
		absolute, err := filepath.Abs(*folder)
		if err != nil {
			return nil, fmt.Errorf("start the submission: %w", err)
		}
		*folder = absolute
	}
	script := filepath.Join(options.Folder, "serve.sh")
	if _, err := os.Lstat(script); err != nil {
		return nil, manifest.WithHint(fmt.Errorf("start the submission: it has no serve.sh"), `a runtime block in bundle.hcl brings one: runtime "native" { device = "cpu" }`)
	}
	port := options.Port
	if port == 0 {
		var err error
		if port, err = freePort(); err != nil {
			return nil, fmt.Errorf("start the submission: %w", err)
		}
	}
	s := &Server{
		URL: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), log: newTail(logBytes),
		grace: options.Grace, exited: make(chan struct{}),
	}
	if s.grace == 0 {
		s.grace = 10 * time.Second
	}
	s.command = exec.Command("/bin/sh", script, "--port", strconv.Itoa(port))
	s.command.Dir = options.TempDir
	s.command.Env = []string{
		"PATH=" + options.Path, "HOME=" + options.TempDir, "TMPDIR=" + options.TempDir, "SUBMISSION_DIR=" + options.Folder, "LC_ALL=C.UTF-8",
	}
	output := io.Writer(s.log)
	if options.Log != nil {
		output = io.MultiWriter(s.log, options.Log)
	}
	s.command.Stdout, s.command.Stderr = output, output
	s.command.WaitDelay = outputDelay
	ownGroup(s.command)
	started := make(chan error)
	go s.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the submission: %w", err)
	}
	return s, nil
}

// outputDelay is how long the output of a server that has ended may stay open:
// a process that left the group can hold it for ever.
const outputDelay = time.Second

// run starts the process and waits for it on one thread: the system ends the
// process when the thread that started it ends, so that a killed slipway leaves
// no server behind.
func (s *Server) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := s.command.Start()
	started <- err
	if err != nil {
		return
	}
	s.err = s.command.Wait()
	if errors.Is(s.err, exec.ErrWaitDelay) {
		s.err = nil // it ended well, and something else holds its output
	}
	close(s.exited)
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// pollInterval is how often /health is asked.
const pollInterval = 20 * time.Millisecond

// WaitHealthy waits until GET /health answers 200 and returns how long that
// took since Start was called. The error of a process that ended, or of a limit
// that passed, comes with the end of its log.
func (s *Server) WaitHealthy(ctx context.Context, limit time.Duration) (time.Duration, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not healthy within %s", limit))
	defer cancel()
	for {
		if s.healthy(ctx) {
			return time.Since(began), nil
		}
		select {
		case <-s.exited:
			return 0, s.withLog(fmt.Errorf("the server ended before it was healthy: %w", s.Err()))
		case <-ctx.Done():
			return 0, s.withLog(context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
}

func (s *Server) healthy(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/health", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func (s *Server) withLog(err error) error {
	log := s.log.String()
	if log == "" {
		log = "(it printed nothing)"
	}
	return manifest.WithHint(fmt.Errorf("start the submission: %w", err), "the end of its log:\n"+log)
}

// Err says how the process ended; nil for a clean exit. It waits for the end.
func (s *Server) Err() error {
	<-s.exited
	if s.err == nil {
		return errors.New("exit status 0")
	}
	return s.err
}

// Exited is closed when the process has ended by itself or was stopped.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Log returns the end of what the server printed.
func (s *Server) Log() string { return s.log.String() }

// Stop ends the server and everything it started, and waits for that.
func (s *Server) Stop() {
	endGroup(s.command, false)
	select {
	case <-s.exited:
	case <-time.After(s.grace):
	}
	endGroup(s.command, true) // also what outlived its parent
	<-s.exited
	for deadline := time.Now().Add(reapTime); groupLives(s.command) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// reapTime is how long the system may take to end killed processes; what is
// listed longer is dead and waits for its parent to notice.
const reapTime = time.Second
