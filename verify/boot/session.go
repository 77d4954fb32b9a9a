package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slipway/manifest"
	"slipway/verify/boot/ask"
	"slipway/verify/boot/local"
	"slipway/verify/boot/sandbox"
	"slipway/verify/report"
)

// serveScript is the entry point of every submission.
const serveScript = local.ServeScript

// session is one place with the submission in it, started once or twice.
type session struct {
	*Rehearsal
	place   place
	log     *local.Tail // of the current start
	process process
	began   time.Time
	port    int
	server  ask.Endpoint
}

// startOutcome is how a start went.
type startOutcome struct {
	report.Start
	problem   string        // why it is not healthy; "" when it is
	machines  bool          // the problem is this machine's, and says nothing of the submission
	remedy    string        // what to do about it, where what was seen says so
	probe     string        // what the last GET /health came to
	loopback  bool          // it answers at 127.0.0.1 and not at its own address
	installed time.Duration // to when the last installer was seen to run; 0: none ran
	log       string        // the end of what it printed
	reply     string        // what is wrong with the first bad reply of a later start
	before    int           // of its requests, those that were answered well on the first start
	well      int           // and now; accepted ids for drafts
}

func (o startOutcome) healthy() bool { return o.problem == "" }

// note adds what a trace saw to the phases.
func (o *startOutcome) note(trace *sandbox.Trace) {
	if trace == nil {
		return
	}
	seen := map[string]bool{}
	for _, p := range trace.Programs {
		if name := path.Base(p.Path); !seen[name] && len(seen) < 12 {
			seen[name] = true
			o.Phases = append(o.Phases, report.Phase{Name: "started " + name, At: p.At.Seconds()})
		}
	}
	for _, f := range trace.Opened {
		if isWeights(f.Path) && f.Exists {
			o.Phases = append(o.Phases, report.Phase{Name: "opened the first weight file", At: f.At.Seconds()})
			break
		}
	}
	slices.SortStableFunc(o.Phases, func(a, b report.Phase) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
}

// begin starts serve.sh and waits until it is healthy, has ended, or has used up
// its time. Only what is no fault of the submission is an error.
func (s *session) begin(ctx context.Context, what string) (startOutcome, error) {
	o := startOutcome{Start: report.Start{What: what}}
	argv, err := s.command()
	if err != nil {
		return o, err
	}
	s.log = local.NewTail()
	output := io.Writer(s.log)
	if s.Log != nil {
		output = io.MultiWriter(s.log, s.Log)
	}
	s.began = time.Now()
	s.process, err = s.place.start(argv, s.environment(), s.place.submission(), output)
	if err != nil {
		if ctx.Err() != nil {
			return o, context.Cause(ctx)
		}
		o.problem = fmt.Sprintf("serve.sh cannot be executed: %v", manifest.Cause(err))
		if o.machines = machineFault(err); o.machines {
			o.problem = "this machine cannot start it: " + manifest.Cause(err).Error()
		}
		return o, nil
	}
	if err := s.wait(ctx, &o); err != nil {
		return o, err
	}
	o.log = sanitised(s.log.String())
	return o, nil
}

// machineFault reports whether a command was not started for want of something
// that it has no part in.
func machineFault(err error) bool {
	return errors.Is(err, sandbox.ErrNotStarted) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// command is what a grader executes: serve.sh itself where it may be executed,
// else bash with it. A bundle's own server is told its port where the grader's
// may be somebody else's.
func (s *session) command() ([]string, error) {
	inside := path.Join(filepath.ToSlash(s.place.submission()), serveScript)
	info, err := os.Stat(filepath.Join(s.Folder, serveScript))
	if err != nil {
		return nil, manifest.WithHint(fmt.Errorf("start the submission: it has no serve.sh"), `a runtime block in bundle.hcl brings one: runtime "native" { device = "cpu" }`)
	}
	argv := []string{"bash", inside}
	if info.Mode()&0o111 != 0 && !s.noExec() {
		argv = argv[1:]
	}
	s.port = s.Profile.Load.Port
	if _, bare := s.place.(*barePlace); !bare {
		return argv, nil
	}
	if _, err := os.Stat(filepath.Join(s.Folder, "runtime", "serve")); err == nil {
		if s.port, err = local.FreePort(); err != nil {
			return nil, fmt.Errorf("start the submission: %w", err)
		}
		return append(argv, "--port", strconv.Itoa(s.port)), nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(s.port))
	if err != nil {
		return nil, manifest.WithHint(fmt.Errorf("start the submission without a sandbox: port %d, where the grader looks for it, is taken on this machine", s.port), "end what listens there")
	}
	return argv, listener.Close()
}

// environment is all that a grader's start gives.
func (s *session) environment() []string {
	all := []string{"PATH=" + s.path(s.place), "HOME=" + s.place.home(), "LANG=C.UTF-8", "SUBMISSION_DIR=" + s.place.submission()}
	if _, bare := s.place.(*barePlace); bare {
		all = append(all, "TMPDIR="+s.place.home()) // nothing is left in this machine's own
	}
	return all
}

// wait polls GET /health from another address than the server's loopback where
// there is one.
func (s *session) wait(ctx context.Context, o *startOutcome) error {
	limit := seconds(s.Profile.Load.StartSeconds)
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	loopback := ask.NewEndpoint(net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), s.place.dial)
	s.server = loopback
	if outside := s.place.outside(); outside != "" {
		s.server = ask.NewEndpoint(net.JoinHostPort(outside, strconv.Itoa(s.port)), s.place.dial)
	}
	bound, inLoopback := false, 0
	for polls := 0; ; polls++ {
		asked := time.Now()
		status, err := s.server.Health(waiting)
		o.probe = probeText(o.probe, status, err, waiting.Err() != nil, time.Since(asked))
		refused := errors.Is(err, syscall.ECONNREFUSED)
		if !bound && waiting.Err() == nil && !refused {
			bound = true
			o.Phases = append(o.Phases, report.Phase{Name: "the port was bound", At: time.Since(s.began).Seconds()})
		}
		if refused && s.place.outside() != "" {
			if status, err := loopback.Health(waiting); err == nil && status == http.StatusOK {
				inLoopback++
			}
		}
		switch {
		case status == http.StatusOK, inLoopback > loopbackPolls:
			o.Healthy = time.Since(s.began).Seconds()
			o.Phases = append(o.Phases, report.Phase{Name: "/health answered 200", At: o.Healthy})
			if o.loopback = status != http.StatusOK; o.loopback {
				s.server = loopback // the rest can be seen there
			}
			return nil
		}
		s.waiting("start (%s): waiting for /health: %.0f s of %.0f s; the last probe: %s", o.What, time.Since(s.began).Seconds(), limit.Seconds(), o.probe)
		if polls%installerPolls == 0 {
			s.watchInstallers(o)
		}
		select {
		case <-s.process.Exited():
			o.Exit = exitText(s.process.Err())
			o.problem = "the server ended before it was healthy: " + o.Exit
			return nil
		case <-waiting.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			o.problem = fmt.Sprintf("GET /health did not answer 200 within %s; the last probe: %s", limit, o.probe)
			o.remedy = lateRemedy(s.place.listening(), s.port, status)
			return nil
		case <-time.After(local.PollInterval):
		}
	}
}

// probeText says what a GET /health came to, of which before is what the one before
// it came to ("": there was none). over: the time for all of them ended before this
// one did, which had taken that long.
func probeText(before string, status int, err error, over bool, took time.Duration) string {
	const unanswered = "not answered when the time was over"
	switch {
	case err == nil || !over:
		return ask.HealthText(status, err)
	case before == "":
		return unanswered
	case took <= local.PollInterval:
		return before // this one was hardly sent
	}
	return unanswered + "; the one before: " + before
}

// lateRemedy is what to do about a server that is not healthy in time, by the
// ports that it listens on then (nil: unknown) and the last status of /health.
func lateRemedy(ports []int, port, status int) string {
	switch {
	case status == http.StatusNotFound:
		return "answer GET /health: with 503 while the model loads, then with 200"
	case ports == nil || slices.Contains(ports, port):
		return ""
	case len(ports) > 0:
		return fmt.Sprintf("listen on port %d, where the grader asks: it listens on %s", port, strings.Trim(fmt.Sprint(ports), "[]"))
	}
	return "bind the port first and load then: nothing listens yet when the time is over"
}

const (
	loopbackPolls  = 10 // that answer at 127.0.0.1 alone, before it is believed
	installerPolls = 10
)

func exitText(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// stopOutcome is how SIGTERM went.
type stopOutcome struct {
	took time.Duration // until all was gone, or was given up
	left []string
}

// defaultPatience is how long a server and its processes may take to end after
// SIGTERM: more than the bundles' runtime gives requests that are running.
const defaultPatience = 35 * time.Second

// end sends serve.sh's process SIGTERM and waits until everything it started is
// gone and the port is free; what then still is there is killed. What outlives
// the process itself gets a part of the time only: nobody tells it to end.
func (s *session) end(ctx context.Context) (*stopOutcome, error) {
	began, orphaned := time.Now(), time.Time{}
	_ = s.process.Signal(syscall.SIGTERM) // one that has ended already needs none
	for {
		left, err := s.place.alive()
		if err != nil {
			return nil, fmt.Errorf("list the server's processes: %w", err)
		}
		bound := s.place.bound(s.port)
		if len(left) == 0 && !bound {
			took := time.Since(began)
			return &stopOutcome{took: took}, s.awaitExit(ctx)
		}
		if time.Since(began) > s.patience || !orphaned.IsZero() && time.Since(orphaned) > s.patience/4 {
			if bound {
				left = append(left, fmt.Sprintf("port %d", s.port))
			}
			took := time.Since(began)
			if err := s.place.killAll(); err != nil {
				return nil, err
			}
			return &stopOutcome{took: took, left: left}, s.awaitExit(ctx)
		}
		select {
		case <-s.process.Exited():
			if orphaned.IsZero() {
				orphaned = time.Now()
			}
		default:
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(local.PollInterval):
		}
	}
}

// awaitExit waits for the news that a process has ended, which comes a moment
// after it is gone: until then nothing else can be started in its place.
func (s *session) awaitExit(ctx context.Context) error {
	select {
	case <-s.process.Exited():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// again starts the submission once more and asks it the first few things.
func (s *session) again(ctx context.Context, o *observed, what string, examples examples) error {
	outcome, err := s.begin(ctx, what)
	if err != nil {
		return err
	}
	for i := 0; i < firstRequests && outcome.healthy() && outcome.reply == ""; i++ {
		reply, well := s.request(ctx, examples, i)
		outcome.reply = reply.Problem
		outcome.before += o.answeredBefore(i)
		outcome.well += well
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	o.again = append(o.again, outcome)
	if warm, faster := o.warm(); faster && what == startedAgain {
		outcome.Saved = o.first.Healthy - warm.Seconds()
	}
	o.Starts = append(o.Starts, outcome.Start)
	s.step("started it %s: %s", what, outcome.text())
	return nil
}

func (o startOutcome) text() string {
	switch {
	case !o.healthy():
		return o.problem
	case o.reply != "":
		return "healthy, and a request failed: " + o.reply
	case o.otherwise():
		return "healthy, and nothing is answered as on the first start"
	}
	return fmt.Sprintf("healthy after %s, and the requests were answered", rounded(seconds(o.Healthy)))
}

// otherwise reports whether what was answered well on the first start no longer
// is.
func (o startOutcome) otherwise() bool { return o.before >= 2 && o.well == 0 }

// answeredBefore is how well the example i was answered on the first start: 1 for
// a right answer, the accepted ids of a draft.
func (o *observed) answeredBefore(i int) int {
	switch {
	case o.drafts != nil:
		return o.drafts.First[i%len(o.drafts.First)].Accepted
	case o.answers[i%len(o.answers)].Right():
		return 1
	}
	return 0
}

func (s *session) close() { _ = s.place.close() }
