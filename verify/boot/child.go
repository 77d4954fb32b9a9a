package boot

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"slipway/verify/boot/local"
	"slipway/verify/boot/sandbox"
	"slipway/verify/report"
)

// childOutcome is what a server made of the death of one of its processes.
type childOutcome struct {
	command string        // of the child
	took    time.Duration // until it answered again, had ended, or was given up
	exit    string        // how it ended; "": it did not
	problem string        // "" for a server that answers again, or ended and said that something was wrong
}

// killChild ends one process of the server, not the one that was started, while
// it answers: a server must answer again, or end with a status that tells whoever
// started it. It is the last that is done to a start.
func (s *session) killChild(ctx context.Context, o *observed, examples examples) error {
	place, ok := s.place.(*sandboxPlace)
	if !ok {
		return nil
	}
	child, ok := place.child(s.process)
	if !ok {
		return nil
	}
	limit := seconds(s.Profile.Load.StartSeconds)
	asking, stop := context.WithTimeout(ctx, limit)
	defer stop()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.request(asking, examples, 0)
	}()
	time.Sleep(local.PollInterval) // the request is under way
	began := time.Now()
	if err := place.Signal(child.PID, syscall.SIGKILL); err != nil {
		stop()
		<-answered
		return ctx.Err() // it has just ended by itself
	}
	outcome := childOutcome{command: child.Command}
	outcome.problem = s.outlive(asking, answered, examples, &outcome)
	outcome.took = time.Since(began)
	stop()
	<-answered
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	o.child = &outcome
	s.step("killed %s while it answered: %s", child.Command, outcome.text())
	return nil
}

// outlive waits until the server answers again or ends, and says what is wrong.
func (s *session) outlive(ctx context.Context, answered <-chan struct{}, examples examples, outcome *childOutcome) string {
	for open := true; ; {
		select {
		case <-s.process.Exited():
			if outcome.exit = exitText(s.process.Err()); s.process.Err() == nil {
				return "it ended with status 0, as if nothing were wrong"
			}
			return ""
		case <-ctx.Done():
			return "it neither answers again nor ends"
		case <-time.After(local.PollInterval):
		}
		s.waiting("waiting for an answer after %s was killed", outcome.command)
		if open {
			select {
			case <-answered:
				open = false
			default:
				continue // the request that it was killed under has not ended
			}
		}
		if status, err := s.server.Health(ctx); err != nil || status != http.StatusOK {
			continue
		}
		if reply, _ := s.request(ctx, examples, 1); reply.Problem == "" {
			return ""
		}
	}
}

// child finds a process that the server started: the first one, but for what
// Python keeps beside its workers to clean up after them.
func (s *sandboxPlace) child(of process) (child sandbox.ProcessInfo, ok bool) {
	main, isInside := of.(*sandbox.Process)
	processes, err := s.Processes()
	if !isInside || err != nil {
		return child, false
	}
	for _, p := range processes {
		if p.PID != main.PID() && !strings.Contains(p.Command, "multiprocessing.resource_tracker") && (!ok || p.PID < child.PID) {
			child, ok = p, true
		}
	}
	return child, ok
}

func (c childOutcome) text() string {
	switch {
	case c.problem != "":
		return fmt.Sprintf("after %s %s", rounded(c.took), c.problem)
	case c.exit != "":
		return fmt.Sprintf("it ended %s later: %s", rounded(c.took), c.exit)
	}
	return fmt.Sprintf("it answered again after %s", rounded(c.took))
}

// judgeChild warns of a server that does not notice that a part of it is gone.
func (o *observed) judgeChild(v *verdict) {
	switch c := o.child; {
	case c == nil:
	case c.problem == "":
		v.Note("its process %q was killed while it answered: %s", c.command, c.text())
	default:
		v.Warn(report.Finding{Path: serveScript, Problem: fmt.Sprintf("its process %q was killed while it answered: %s", c.command, c.text()),
			Want: "an answer to the next request, or an end with another status than 0", Hint: "watch the processes that the server starts, and end it when one is lost"})
	}
}
