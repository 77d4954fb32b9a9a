// Package api is the HTTP face of the runtime: OpenAI's chat and text
// completions, drafts, health, models and metrics.
//
// Promises:
//   - Input is read leniently where clients differ (unknown fields are ignored,
//     any model name serves) and strictly where a mistake would change the
//     answer: a field of the wrong type or out of its range is a 400 that names it.
//     Field names are case-sensitive; of a repeated field the last counts.
//   - Every error, also of an unknown path, has OpenAI's shape:
//     {"error": {"message", "type", "param", "code"}}.
//   - A slow or vanished client holds up nobody: its request is dropped.
//   - Nothing here chooses a token: the same request gives the same answer,
//     and a request without a seed has seed 0.
package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"slipway/runtime/engine"
	"slipway/runtime/model"
)

// DefaultMaxBody limits request bodies: 32 MiB hold a context of millions of
// tokens, or the images of a question as data URLs.
const DefaultMaxBody = 32 << 20

// writeTimeout is how long one write to a client may take. A client that reads
// nothing for so long is treated as gone.
const writeTimeout = 60 * time.Second

// readTimeout is how long a client may take to send a request's body.
const readTimeout = 120 * time.Second

// Config is what a server knows before a model is loaded.
type Config struct {
	Model   string            // the name in /v1/models and in answers
	MaxBody int64             // bytes of a request; 0: DefaultMaxBody
	Log     func(line string) // told of bugs; nil: nobody
}

// Model is what serves requests, installed by Ready.
type Model struct {
	Engine      *engine.Engine
	Encode      func(text string) []int32       // special tokens' literals become their ids
	LongestText int                             // bytes that one token stands for at most; 0: not known
	NewDecoder  func() engine.Decoder           // for one sequence
	Token       func(id int32) string           // the bytes that one token stands for
	Prompt      func(chat Chat) (string, error) // the chat template; an error is the request's fault
	Think       bool                            // think unless the request says otherwise
	Thinking    *engine.Thinking                // the marks of a thought; nil: the model has none
	Defaults    model.Sampling                  // where the request is silent
}

// Server answers requests. It can listen before there is a model; until Ready,
// whatever needs one gets 503.
type Server struct {
	config Config
	model  atomic.Pointer[Model]

	mutex    sync.Mutex
	progress progress
	stopping bool

	now   func() time.Time
	newID func() string
}

// progress is what /health shows of a start.
type progress struct {
	Stage string `json:"stage"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

// New returns a server without a model.
func New(config Config) *Server {
	if config.MaxBody == 0 {
		config.MaxBody = DefaultMaxBody
	}
	if config.Log == nil {
		config.Log = func(string) {}
	}
	return &Server{config: config, now: time.Now, newID: randomID, progress: progress{Stage: "starting"}}
}

// Progress tells /health how far the start is. Total 0: not known.
func (s *Server) Progress(stage string, done, total int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.progress = progress{stage, done, total}
}

// Ready installs the model: from now on requests are served.
func (s *Server) Ready(model *Model) { s.model.Store(model) }

// Restart takes the model away: the server is about to be replaced by another.
func (s *Server) Restart() {
	s.Progress("starting again: the device was lost", 0, 0)
	s.model.Store(nil)
}

// Stop makes /health say that the server is going, so that nobody sends it more.
func (s *Server) Stop() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.stopping = true
}

// HTTPServer returns a server for listening, with the timeouts that keep idle
// and stalled clients from piling up. Answers may take as long as they take.
func (s *Server) HTTPServer() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    64 << 10,
	}
}

// endpoint is one path. A handler returns an error only before it has
// written anything.
type endpoint struct {
	method string
	serve  func(*Server, http.ResponseWriter, *http.Request) *Error
}

var endpoints = map[string]endpoint{
	"/health":              {http.MethodGet, (*Server).health},
	"/metrics":             {http.MethodGet, (*Server).metrics},
	"/v1/models":           {http.MethodGet, (*Server).models},
	"/v1/chat/completions": {http.MethodPost, (*Server).chat},
	"/v1/completions":      {http.MethodPost, (*Server).completion},
	"/draft":               {http.MethodPost, (*Server).draft},
}

// ServeHTTP routes by exact path. The standard mux would answer unknown paths
// and methods in plain text.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.recover(w)
	e, known := endpoints[r.URL.Path]
	switch {
	case !known:
		writeError(w, &Error{Status: http.StatusNotFound, Type: typeInvalid, Code: "not_found",
			Message: fmt.Sprintf("there is no %s here", r.URL.Path)})
	case r.Method != e.method && !(e.method == http.MethodGet && r.Method == http.MethodHead):
		w.Header().Set("Allow", e.method)
		writeError(w, &Error{Status: http.StatusMethodNotAllowed, Type: typeInvalid, Code: "method_not_allowed",
			Message: fmt.Sprintf("%s takes %s, not %s", r.URL.Path, e.method, r.Method)})
	default:
		if err := e.serve(s, w, r); err != nil {
			writeError(w, err)
		}
	}
}

// recover answers a bug with a 500 and logs it, in one line.
func (s *Server) recover(w http.ResponseWriter) {
	value := recover()
	if value == nil {
		return
	}
	if value == http.ErrAbortHandler {
		panic(value)
	}
	s.config.Log(fmt.Sprintf("panic in a request: %v: %q", value, debug.Stack()))
	writeError(w, &Error{Status: http.StatusInternalServerError, Type: typeServer, Message: "internal error"})
}

// ready returns the model, or a 503.
func (s *Server) ready() (*Model, *Error) {
	if model := s.model.Load(); model != nil {
		return model, nil
	}
	return nil, &Error{Status: http.StatusServiceUnavailable, Type: typeServer, Code: "loading",
		Message: "the model is still being loaded; GET /health says how far", RetryAfter: 5}
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) *Error {
	s.mutex.Lock()
	stopping, start := s.stopping, s.progress
	s.mutex.Unlock()
	type loading struct {
		Status string `json:"status"`
		progress
	}
	type state struct {
		Status  string `json:"status"`
		Message string `json:"message,omitempty"`
	}
	switch model := s.model.Load(); {
	case stopping:
		writeJSON(w, http.StatusServiceUnavailable, state{Status: "stopping"})
	case model == nil:
		writeJSON(w, http.StatusServiceUnavailable, loading{"loading", start})
	case model.Engine.Healthy() != nil:
		writeJSON(w, http.StatusServiceUnavailable, state{"failing", model.Engine.Healthy().Error()})
	default:
		writeJSON(w, http.StatusOK, state{Status: "ok"})
	}
	return nil
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) *Error {
	type entry struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
		Context int    `json:"max_model_len,omitempty"`
	}
	one := entry{ID: s.config.Model, Object: "model", OwnedBy: "slipway"}
	if model := s.model.Load(); model != nil {
		one.Context = model.Engine.Context()
	}
	writeJSON(w, http.StatusOK, struct {
		Object string  `json:"object"`
		Data   []entry `json:"data"`
	}{"list", []entry{one}})
	return nil
}

// submit hands a request to the engine.
func (m *Model) submit(ctx context.Context, request engine.Request) (*engine.Stream, *Error) {
	stream, err := m.Engine.Submit(ctx, request)
	if err != nil {
		return nil, engineError(err)
	}
	return stream, nil
}

// encode turns a prompt into tokens, unless it is so long that they cannot fit
// whatever they are: megabytes take seconds.
func (m *Model) encode(text string) ([]int32, *Error) {
	if m.LongestText > 0 && len(text)/m.LongestText > m.Engine.Context() {
		return nil, &Error{Status: http.StatusBadRequest, Type: typeInvalid, Code: codeTooLong, Message: fmt.Sprintf(
			"the prompt has %d bytes, and the model's context holds %d tokens of at most %d bytes", len(text), m.Engine.Context(), m.LongestText)}
	}
	if len(text) > longText {
		encodings <- struct{}{}
		defer func() { <-encodings }()
	}
	return m.Encode(text), nil
}

// A text longer than longText waits until at most one other such is being
// encoded: while it is, it takes up to fifty times its length in memory.
const longText = 256 << 10

var encodings = make(chan struct{}, 2)

func randomID() string {
	var id [12]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}
