package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"slipway/runtime/engine"
)

// Error types, in OpenAI's words.
const (
	typeInvalid = "invalid_request_error"
	typeLimit   = "rate_limit_error"
	typeServer  = "server_error"
)

// codeTooLong is OpenAI's code for a prompt that the context does not hold.
const codeTooLong = "context_length_exceeded"

// retryAfter is what clients are told to wait when the queue is full: about as
// long as a short answer takes.
const retryAfter = 1

// Error is an answer that is not 200.
type Error struct {
	Status     int
	Message    string
	Type       string
	Param      string // the field that is wrong, if it is one
	Code       string
	RetryAfter int // seconds; 0: not said
}

// body returns the error in OpenAI's shape; absent param and code are null there.
func (e *Error) body() any {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	optional := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	return struct {
		Error inner `json:"error"`
	}{inner{e.Message, e.Type, optional(e.Param), optional(e.Code)}}
}

func invalid(param, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Type: typeInvalid, Param: param, Message: fmt.Sprintf(format, args...)}
}

// engineError says what an error of the engine means to a client.
func engineError(err error) *Error {
	var long *engine.TooLongError
	var bad *engine.InvalidError
	switch {
	case errors.As(err, &long):
		return &Error{Status: http.StatusBadRequest, Type: typeInvalid, Code: codeTooLong, Message: long.Error()}
	case errors.As(err, &bad):
		return invalid("", "%s", bad.Problem)
	case errors.Is(err, engine.ErrQueueFull):
		return &Error{Status: http.StatusTooManyRequests, Type: typeLimit, Code: "queue_full",
			Message: "too many requests are waiting; try again", RetryAfter: retryAfter}
	case errors.Is(err, engine.ErrDraining):
		return &Error{Status: http.StatusServiceUnavailable, Type: typeServer, Code: "stopping",
			Message: "the server is stopping", RetryAfter: retryAfter}
	case errors.Is(err, engine.ErrLost):
		return &Error{Status: http.StatusServiceUnavailable, Type: typeServer, Code: "device_lost",
			Message: "the device is lost; the server is starting again", RetryAfter: retryAfter}
	}
	return &Error{Status: http.StatusInternalServerError, Type: typeServer, Message: err.Error()}
}

func writeError(w http.ResponseWriter, e *Error) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	writeJSON(w, e.Status, e.body())
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	body := append(encode(value), '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // not all writers can
	w.WriteHeader(status)
	w.Write(body) // if it fails the client is gone
}

// encode returns JSON without HTML escapes and without a line end. The values
// are this package's own, so an error is a bug.
func encode(value any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}
