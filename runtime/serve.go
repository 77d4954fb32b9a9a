package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/manifest"
	"slipway/runtime/api"
	"slipway/runtime/engine"
)

// cutGrace is how long clients whose requests the drain's deadline cut have to
// read that it did.
const cutGrace = 2 * time.Second

// lineLog writes one line an event, whatever goroutine it comes from.
type lineLog struct {
	mutex  sync.Mutex
	writer io.Writer
}

func (l *lineLog) print(line string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	fmt.Fprintln(l.writer, "runtime: "+strings.TrimRight(strings.ReplaceAll(line, "\n", " "), " "))
}

// Write lets net/http report through the log.
func (l *lineLog) Write(line []byte) (int, error) {
	l.print(string(line))
	return len(line), nil
}

// serve listens, loads in the background, and returns the exit code once
// everything has ended.
func serve(o options, events *lineLog, signals <-chan os.Signal) (int, error) {
	if o.device == "cuda" {
		err := errors.New("--device cuda: this program was built without CUDA")
		return exitCannotRun, manifest.WithHint(err, "build it with -tags cuda, or serve with --device cpu")
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(o.host, strconv.Itoa(o.port)))
	if err != nil {
		return exitCannotRun, err // "listen tcp 0.0.0.0:8000: bind: address already in use"
	}
	events.print("listening on " + listener.Addr().String())
	server := api.New(api.Config{Model: o.model, Log: events.print})
	web := server.HTTPServer()
	web.ErrorLog = log.New(events, "", 0)
	broken := make(chan error, 2)
	go func() { broken <- web.Serve(listener) }()
	loaded := make(chan *engine.Engine, 1)
	go func() {
		m, err := start(o, server, events)
		if err != nil {
			broken <- err
			return
		}
		server.Ready(m)
		events.print("ready")
		loaded <- m.Engine
	}()
	select {
	case err := <-broken:
		web.Close()
		return exitCannotRun, err
	case received := <-signals:
		events.print("stopping: " + received.String())
	}
	return drain(o, server, web, loaded, events, signals)
}

// drain closes the port, lets the requests in flight finish, and ends them when
// their time is over.
func drain(o options, server *api.Server, web *http.Server, loaded <-chan *engine.Engine, events *lineLog, signals <-chan os.Signal) (int, error) {
	server.Stop()
	ctx, cancel := context.WithTimeoutCause(context.Background(), o.drain, fmt.Errorf("requests were still running after %v", o.drain))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- finishRequests(ctx, web, loaded) }()
	select {
	case err := <-ended:
		if err != nil {
			return exitCannotRun, err
		}
		events.print("stopped")
		return exitDone, nil
	case <-signals:
		web.Close()
		return exitInterrupted, errors.New("ended by a second signal")
	}
}

func finishRequests(ctx context.Context, web *http.Server, loaded <-chan *engine.Engine) error {
	closed := make(chan error, 1)
	go func() { closed <- web.Shutdown(ctx) }() // closes the port at once
	var drained error
	select {
	case e := <-loaded:
		drained = e.Drain(ctx)
	default: // nothing was served yet
	}
	if err := <-closed; err == nil && drained == nil {
		return nil
	}
	grace, cancel := context.WithTimeout(context.Background(), cutGrace)
	defer cancel()
	if web.Shutdown(grace) != nil {
		web.Close()
	}
	return context.Cause(ctx)
}
