package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"slipway/runtime/api"
	"slipway/runtime/engine"
)

// cutGrace is how long clients whose requests the drain's deadline cut have to
// read that it did.
const cutGrace = 2 * time.Second

// newGrace is how long a connection that stands when the drain begins has to
// send its request.
const newGrace = 500 * time.Millisecond

// serve listens, loads in the background, and returns once everything has ended.
func (p *process) serve(o options, events *lineLog) ending {
	if err := checkBackend(o.device); err != nil {
		return ending{code: exitCannotRun, err: err}
	}
	listener, err := listen(o)
	if err != nil {
		return ending{code: exitCannotRun, err: err} // "listen tcp 0.0.0.0:8000: bind: address already in use"
	}
	events.print("listening on " + listener.Addr().String())
	if program, err := os.Executable(); err == nil && o.removeCopy != "" {
		removeCopy(o.removeCopy, program)
	}
	server := api.New(api.Config{Model: o.model, Log: events.print})
	web := server.HTTPServer()
	web.ErrorLog = log.New(events, "", 0)
	open := &connections{}
	web.ConnState, web.Handler = open.track, open.counted(web.Handler)
	broken := make(chan error, 2)
	go func() { broken <- web.Serve(listener) }()
	loaded := make(chan *engine.Engine, 1)
	lost := make(chan error, 1)
	go func() {
		m, err := p.start(o, server, events)
		if err != nil {
			broken <- err
			return
		}
		server.Ready(m)
		events.print("ready")
		loaded <- m.Engine
		<-m.Engine.Lost()
		lost <- m.Engine.Healthy()
	}()
	select {
	case err := <-broken:
		web.Close()
		return ending{code: exitCannotRun, err: err}
	case err := <-lost:
		return p.abandon(o, listener, server, web, events, err)
	case received := <-p.signals:
		events.print("stopping: " + received.String())
	}
	code, err := drain(o, server, web, open, loaded, events, p.signals)
	return ending{code: code, err: err}
}

// drain closes the port, lets the requests in flight finish, and ends them when
// their time is over.
func drain(o options, server *api.Server, web *http.Server, open *connections, loaded <-chan *engine.Engine, events *lineLog, signals <-chan os.Signal) (int, error) {
	server.Stop()
	ctx, cancel := context.WithTimeoutCause(context.Background(), o.drain, fmt.Errorf("requests were still running after %v", o.drain))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- finishRequests(ctx, web, open, loaded) }()
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

// finishRequests returns ctx's cause if requests were running when ctx ended.
func finishRequests(ctx context.Context, web *http.Server, open *connections, loaded <-chan *engine.Engine) error {
	idle := time.AfterFunc(newGrace, open.closeNew)
	defer idle.Stop()
	var running atomic.Int64 // counted before they are cut
	cut, cutNow := context.WithCancelCause(context.Background())
	defer cutNow(nil)
	defer context.AfterFunc(ctx, func() {
		running.Store(open.running())
		open.closeNew()
		cutNow(context.Cause(ctx))
	})()
	closed := make(chan error, 1)
	go func() { closed <- web.Shutdown(cut) }() // closes the port at once
	var drained error
	select {
	case e := <-loaded:
		drained = e.Drain(cut)
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
	if running.Load() == 0 {
		return nil
	}
	return context.Cause(ctx)
}
