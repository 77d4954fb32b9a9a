// Package local starts a submission on this machine as it is, outside any
// sandbox. It promises that whatever it started is gone once it is stopped, also
// what left its process group, and that a killed slipway leaves nothing either.
package local

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
	"strconv"
	"time"

	"slipway/manifest"
	"slipway/verify/boot/ask"
	"slipway/verify/boot/sandbox"
)

// Options of Start.
type Options struct {
	Folder  string        // the submission
	Port    int           // passed to serve.sh, and must be free; 0: any free one
	TempDir string        // the submission's HOME and TMPDIR; must exist
	Path    string        // the submission's PATH
	Grace   time.Duration // between the polite end and the other; 0: ten seconds
	Log     io.Writer     // gets what the server prints; may be nil
}

// Server is a running submission, outside any sandbox and told its port: what
// somebody wants who uses a bundle and does not rehearse it.
type Server struct {
	URL string // http://127.0.0.1:PORT; once it is healthy, where it answered

	*Group
	home   string
	log    *Tail
	grace  time.Duration
	keeper *sandbox.Keeper
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
	script := filepath.Join(options.Folder, ServeScript)
	if _, err := os.Lstat(script); err != nil {
		return nil, manifest.WithHint(fmt.Errorf("start the submission: it has no serve.sh"), `a runtime block in bundle.hcl brings one: runtime "native" { device = "cpu" }`)
	}
	port := options.Port
	if port == 0 {
		var err error
		if port, err = FreePort(); err != nil {
			return nil, fmt.Errorf("start the submission: %w", err)
		}
	} else if err := checkFree(port); err != nil {
		return nil, err
	}
	s := &Server{URL: localURL(port), home: options.TempDir, log: NewTail(), grace: options.Grace}
	if s.grace == 0 {
		s.grace = 10 * time.Second
	}
	command := exec.Command(script, "--port", strconv.Itoa(port))
	if _, err := exec.LookPath(script); err != nil { // no x bit, or a mount that is noexec
		command = exec.Command(shellHere(), script, "--port", strconv.Itoa(port))
	}
	command.Dir = options.Folder // as a grader does, and a rehearsal
	command.Env = []string{
		"PATH=" + options.Path, "HOME=" + options.TempDir, "TMPDIR=" + options.TempDir, "SUBMISSION_DIR=" + options.Folder, "LC_ALL=C.UTF-8",
	}
	output := io.Writer(s.log)
	if options.Log != nil {
		output = io.MultiWriter(s.log, options.Log)
	}
	if err := s.begin(command, output, options.TempDir); err != nil {
		return nil, fmt.Errorf("start the submission: %w", err)
	}
	return s, nil
}

// shellHere is the shell of scripts that cannot be executed themselves: bash, as
// most are written for it, where there is one.
func shellHere() string {
	if bash, err := exec.LookPath("bash"); err == nil {
		return bash
	}
	return "/bin/sh"
}

// begin starts the command, watched from before it runs.
func (s *Server) begin(command *exec.Cmd, output io.Writer, home string) error {
	var err error
	if s.keeper, err = Keep(home); err != nil {
		return err
	}
	if s.Group, err = StartGroup(command, output); err != nil {
		s.keeper.Stop()
		return err
	}
	if err := s.keeper.Group(command.Process.Pid); err != nil {
		s.Stop()
		return err
	}
	return nil
}

// ServeScript is the entry point of every submission.
const ServeScript = "serve.sh"

func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// PollInterval is how often /health is asked.
const PollInterval = 20 * time.Millisecond

// WaitHealthy waits until GET /health answers 200 and returns how long that
// took since it was called. A serve.sh need not listen to the port that it is
// told: where nothing answers there and the server's own processes do at another
// one, twice in a row, URL is that one from then on. The error of a process that
// ended, or of a limit that passed, says what was asked and comes with the end of
// the log.
func (s *Server) WaitHealthy(ctx context.Context, limit time.Duration) (time.Duration, error) {
	began := time.Now()
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	probe, other := "", ""
	for polls := 1; ; polls++ {
		status, err := ask.GetHealth(waiting, ask.Direct, s.URL)
		if status == http.StatusOK {
			return time.Since(began), nil
		}
		if waiting.Err() == nil || probe == "" {
			probe = ask.HealthText(status, err)
		}
		if err != nil && polls%portsPolls == 0 {
			before := other
			if other = s.elsewhere(waiting); other != "" && other == before {
				s.URL = other
				return time.Since(began), nil
			}
		}
		select {
		case <-s.exited:
			return 0, s.withLog(fmt.Errorf("the server ended before it was healthy: %w", s.Err()))
		case <-waiting.Done():
			if ctx.Err() != nil {
				return 0, s.withLog(context.Cause(ctx))
			}
			return 0, s.withLog(fmt.Errorf("GET %s/health did not answer 200 within %s; the last probe: %s%s", s.URL, limit, probe, listeningText(s.listening())))
		case <-time.After(PollInterval):
		}
	}
}

func (s *Server) withLog(err error) error {
	log := s.log.String()
	if log == "" {
		log = "(it printed nothing)"
	}
	return manifest.WithHint(fmt.Errorf("start the submission: %w", err), "the end of its log:\n"+log)
}

// Err says how the process ended, a clean end too. It waits for the end.
func (s *Server) Err() error {
	if err := s.Group.Err(); err != nil {
		return err
	}
	return errors.New("exit status 0")
}

// Log returns the end of what the server printed.
func (s *Server) Log() string { return s.log.String() }

// Stop ends the server and everything it started, and waits for that.
func (s *Server) Stop() {
	s.End(s.grace)
	EndStrays(s.home, s.command.Process.Pid) // daemons left the group
	s.keeper.Stop()
	s.keeper = nil // it may be called again
}
