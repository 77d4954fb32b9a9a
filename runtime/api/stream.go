package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"slipway/runtime/engine"
)

// collected is an answer in one piece.
type collected struct {
	thought, content string
	tokens           []engine.Token // of the content
}

// collect waits for the whole answer.
func collect(ctx context.Context, stream *engine.Stream) (collected, engine.Outcome, *Error) {
	var thought, content strings.Builder
	var tokens []engine.Token
	for {
		pieces, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			return collected{thought.String(), content.String(), tokens}, stream.Outcome(), nil
		}
		if err != nil {
			return collected{}, engine.Outcome{}, streamError(ctx, err)
		}
		for _, piece := range pieces {
			if piece.Thought {
				thought.WriteString(piece.Text)
				continue
			}
			content.WriteString(piece.Text)
			tokens = append(tokens, piece.Tokens...)
		}
	}
}

// streamError says what to answer when a stream failed. When the client is
// gone nobody reads the answer; the connection is dropped without a log line.
func streamError(ctx context.Context, err error) *Error {
	if ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	return engineError(err)
}

// relayed says what to send for the parts of a stream.
type relayed struct {
	begin func(*eventWriter)
	piece func(*eventWriter, engine.Piece)
	end   func(*eventWriter, engine.Outcome)
}

// relay sends a stream as server-sent events while it is produced. Nothing is
// written before there is something to send, so that a request that fails at
// once still gets its status; one that fails later gets an error event and no
// [DONE].
func relay(w http.ResponseWriter, r *http.Request, stream *engine.Stream, parts relayed) *Error {
	events := &eventWriter{w: w, control: http.NewResponseController(w)}
	for {
		pieces, err := stream.Next(r.Context())
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			problem := streamError(r.Context(), err)
			if events.begun {
				events.send(problem.body())
				events.flush()
				return nil
			}
			return problem
		}
		if !events.begun {
			events.begin()
			parts.begin(events)
		}
		for _, piece := range pieces {
			parts.piece(events, piece)
		}
		if ended {
			parts.end(events, stream.Outcome())
			events.write("data: [DONE]\n\n")
			events.flush()
			return nil
		}
		events.flush()
	}
}

// eventWriter writes server-sent events. A write that fails or takes too long
// ends the handler, which ends the request's context and frees its slot.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (e *eventWriter) begin() {
	e.begun = true
	header := e.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Accel-Buffering", "no") // a proxy in between passes events on at once
	e.w.WriteHeader(http.StatusOK)
}

func (e *eventWriter) send(value any) { e.write("data: " + string(encode(value)) + "\n\n") }

func (e *eventWriter) write(text string) {
	e.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not all writers can
	if _, err := io.WriteString(e.w, text); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (e *eventWriter) flush() {
	if err := e.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		panic(http.ErrAbortHandler)
	}
}
