package cli

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"

	"slipway/manifest/registry/embedded"
)

type registryKey struct{}

// scriptRegistry is the registry of one script, with a fault that the script
// can set and a count of the requests that came.
type scriptRegistry struct {
	handler http.Handler

	mu       sync.Mutex
	requests map[string]int
	fault    fault
}

// fault is what happens to the requests that it is meant for.
type fault struct {
	mode   string // "drop", "corrupt", "cut", "status", "hold"; "" for none
	match  string // "GET blob", as requestKind writes it
	number int64  // byte of the body; the status of "status"
	times  int    // how many more requests; below 0 all
	hold   *hold
}

// hold is where requests wait until the script lets them go on, or gives them
// up by setting another fault.
type hold struct {
	arrived, ended  chan struct{}
	arrive, release func()
	abandon         func()
	abandoned       atomic.Bool
	passed          atomic.Int64 // bytes of request bodies before it
}

func newHold() *hold {
	h := &hold{arrived: make(chan struct{}), ended: make(chan struct{})}
	h.arrive = sync.OnceFunc(func() { close(h.arrived) })
	h.release = sync.OnceFunc(func() { close(h.ended) })
	h.abandon = func() { h.abandoned.Store(true); h.release() }
	return h
}

// wait returns nil when the script lets the request go on, and an error when
// it was given up or its client is gone.
func (h *hold) wait(ctx context.Context) error {
	h.arrive()
	select {
	case <-h.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	if h.abandoned.Load() {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func scriptRegistryOf(ts *testscript.TestScript) *scriptRegistry {
	return ts.Value(registryKey{}).(*scriptRegistry)
}

// registry [USER:PASSWORD] starts a registry that lives as long as the script
// and sets $REGISTRY.
func startRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: registry [USER:PASSWORD]")
	}
	var options embedded.Options
	if len(args) == 1 {
		options.Username, options.Password, _ = strings.Cut(args[0], ":")
	}
	served, err := embedded.New(filepath.Join(ts.Getenv("WORK"), "registry"), options)
	ts.Check(err)
	r := scriptRegistryOf(ts)
	r.handler, r.requests = served, map[string]int{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	server := &http.Server{Handler: r, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	ts.Defer(func() {
		r.set(fault{})
		_ = server.Close()
		<-done
		_ = served.Close()
	})
	ts.Setenv("REGISTRY", listener.Addr().String())
}

// fault MODE REQUEST [NUMBER [TIMES]] sets what happens to requests such as
// "GET blob", "PATCH upload", "PUT tag"; `fault none` ends it.
//
//	drop     the connection breaks after NUMBER bytes of the body
//	cut      the body of the answer ends after NUMBER bytes, as if it were whole
//	corrupt  byte NUMBER of the answer's body is another one
//	status   the answer is the status NUMBER
//	hold     the request waits after NUMBER bytes until `release`; of what is
//	         sent, the bytes of all such requests count
func setFault(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 4 {
		ts.Fatalf("usage: fault MODE REQUEST [NUMBER [TIMES]]")
	}
	f := fault{mode: args[0], times: -1}
	switch f.mode {
	case "none":
		f.mode = ""
	case "drop", "cut", "corrupt", "status", "hold":
		if len(args) < 2 {
			ts.Fatalf("fault %s of which requests?", f.mode)
		}
		f.match, f.hold = args[1], newHold()
	default:
		ts.Fatalf("unknown fault %q", f.mode)
	}
	var err error
	if len(args) > 2 {
		f.number, err = strconv.ParseInt(args[2], 10, 64)
		ts.Check(err)
	}
	if len(args) > 3 {
		f.times, err = strconv.Atoi(args[3])
		ts.Check(err)
	}
	scriptRegistryOf(ts).set(f)
}

// held waits until a request meets the fault `hold`.
func waitHeld(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: held")
	}
	<-scriptRegistryOf(ts).current().hold.arrived
}

// release lets held requests, and later ones, go on.
func releaseHeld(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: release")
	}
	scriptRegistryOf(ts).current().hold.release()
}

// requests prints how many requests of which kind came since it was last run.
func printRequests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: requests")
	}
	r := scriptRegistryOf(ts)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(r.requests)) {
		fmt.Fprintln(ts.Stdout(), r.requests[kind], kind)
	}
	clear(r.requests)
}

func (r *scriptRegistry) current() fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault
}

// holdAgain gives up the requests that are held, and returns what tells that
// another one is.
func (r *scriptRegistry) holdAgain() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault.hold.abandon()
	r.fault.hold = newHold()
	return r.fault.hold.arrived
}

func (r *scriptRegistry) set(f fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault.hold != nil {
		r.fault.hold.abandon()
	}
	r.fault = f
}

// take counts a request and returns the fault that is meant for it, if any.
func (r *scriptRegistry) take(kind string) fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests[kind]++
	if r.fault.match != kind || r.fault.times == 0 {
		return fault{}
	}
	if r.fault.times > 0 {
		r.fault.times--
	}
	return r.fault
}

// requestKind names a request by its method and what it is about.
func requestKind(req *http.Request) string {
	parts := strings.Split(req.URL.Path, "/")
	what := "other"
	for i, part := range parts {
		switch {
		case part == "uploads":
			return req.Method + " upload"
		case part == "blobs" && i == len(parts)-2:
			what = "blob"
		case part == "manifests" && strings.HasPrefix(parts[len(parts)-1], "sha256:"):
			what = "manifest"
		case part == "manifests":
			what = "tag"
		}
	}
	return req.Method + " " + what
}

func (r *scriptRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	f := r.take(requestKind(req))
	sending := req.Method == http.MethodPatch || req.Method == http.MethodPut || req.Method == http.MethodPost
	switch {
	case f.mode == "status":
		http.Error(w, "", int(f.number))
	case f.mode == "drop" && sending:
		req.Body = io.NopCloser(io.MultiReader(io.LimitReader(req.Body, f.number), brokenBody{}))
		r.handler.ServeHTTP(discardAnswer{http.Header{}}, req)
		panic(http.ErrAbortHandler)
	case f.mode == "hold" && f.number == 0:
		if f.hold.wait(req.Context()) != nil {
			panic(http.ErrAbortHandler)
		}
		r.handler.ServeHTTP(w, req)
	case f.mode == "hold" && sending:
		req.Body = io.NopCloser(&heldBody{req.Body, req.Context(), f})
		r.handler.ServeHTTP(w, req)
	case f.mode == "":
		r.handler.ServeHTTP(w, req)
	default:
		r.handler.ServeHTTP(&faultyAnswer{ResponseWriter: w, fault: f, req: req}, req)
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

type discardAnswer struct{ header http.Header }

func (d discardAnswer) Header() http.Header         { return d.header }
func (d discardAnswer) Write(p []byte) (int, error) { return len(p), nil }
func (d discardAnswer) WriteHeader(int)             {}

// heldBody stops where the bodies of all requests of its kind have brought as
// many bytes as the fault says.
type heldBody struct {
	body  io.Reader
	ctx   context.Context
	fault fault
}

func (b *heldBody) Read(p []byte) (int, error) {
	if b.fault.hold.passed.Load() >= b.fault.number {
		if err := b.fault.hold.wait(b.ctx); err != nil {
			return 0, err
		}
	}
	n, err := b.body.Read(p)
	b.fault.hold.passed.Add(int64(n))
	return n, err
}

// faultyAnswer lets an answer through up to its fault.
type faultyAnswer struct {
	http.ResponseWriter
	fault fault
	req   *http.Request
	sent  int64
	held  bool
}

func (a *faultyAnswer) WriteHeader(status int) {
	if a.fault.mode == "cut" {
		a.Header().Del("Content-Length")
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *faultyAnswer) Write(p []byte) (int, error) {
	at := a.fault.number - a.sent // the fault's place in p
	a.sent += int64(len(p))
	if at < 0 || at >= int64(len(p)) || a.held {
		if at < 0 && a.fault.mode == "cut" {
			return len(p), nil
		}
		return a.ResponseWriter.Write(p)
	}
	switch a.fault.mode {
	case "corrupt":
		p = slices.Clone(p)
		p[at] ^= 1
	case "cut":
		_, err := a.ResponseWriter.Write(p[:at])
		return len(p), err
	case "drop":
		_, _ = a.ResponseWriter.Write(p[:at])
		_ = http.NewResponseController(a.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	case "hold":
		if _, err := a.ResponseWriter.Write(p[:at]); err != nil {
			return 0, err
		}
		_ = http.NewResponseController(a.ResponseWriter).Flush()
		if a.fault.hold.wait(a.req.Context()) != nil {
			panic(http.ErrAbortHandler)
		}
		a.held = true
		n, err := a.ResponseWriter.Write(p[at:])
		return int(at) + n, err
	}
	return a.ResponseWriter.Write(p)
}
