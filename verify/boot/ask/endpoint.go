// Package ask asks a server what a grader asks, questions for chat completions
// and token ids for drafts, and says how each request ended and how good the
// answers were. It starts nothing.
package ask

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"slipway/manifest"
)

// Endpoint is where a server is asked.
type Endpoint struct {
	URL  string       // http://HOST:PORT
	HTTP *http.Client // nil: one that follows no redirect

	most int64 // bytes of a reply; 0: maxReply
}

// Direct is a client for servers of this machine.
var Direct = &http.Client{CheckRedirect: noRedirect}

// noRedirect makes a redirect the answer: a server must answer where it is
// asked, and cannot send who asks to its own loopback or to another machine.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// dialFunc dials, from wherever the server can be reached.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// NewEndpoint returns a client of its own for a server: one connection a
// request, as graders do it, and no proxy.
func NewEndpoint(address string, dial dialFunc) Endpoint {
	return Endpoint{URL: "http://" + address, HTTP: &http.Client{
		CheckRedirect: noRedirect, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
	}}
}

func (e Endpoint) client() *http.Client {
	if e.HTTP == nil {
		return Direct
	}
	return e.HTTP
}

const (
	maxReply     = 4 << 20 // bytes of a reply; each request at a time may need many times as many
	excerptBytes = 300     // of a body, for people
)

// Exchange is how one request went. Failed holds why there is no usable reply.
type Exchange struct {
	Status  int // 0: no HTTP reply
	Excerpt string
	Took    time.Duration
	Failed  error

	Sent  int   // bytes of the request's body
	short short // of that body
}

// post sends a JSON body and reads a JSON reply. limit bounds the whole
// exchange; 0 does not.
func (e Endpoint) post(ctx context.Context, path string, body, reply any, limit time.Duration) (x Exchange) {
	began := time.Now()
	data, err := json.Marshal(body)
	if err != nil {
		return Exchange{Failed: err}
	}
	defer func() {
		x.Took, x.Sent = time.Since(began), len(data)
		if len(data) <= longestCurl {
			x.short.body = data
		}
	}()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, LateError{limit})
		defer cancel()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL+path, bytes.NewReader(data))
	if err != nil {
		return Exchange{Failed: err}
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := e.client().Do(request)
	if err != nil {
		return Exchange{Failed: plainly(ctx, err)}
	}
	defer response.Body.Close()
	most := cmp.Or(e.most, maxReply)
	got, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	x = Exchange{Status: response.StatusCode, Excerpt: manifest.Printable(string(got[:min(len(got), excerptBytes)]))}
	switch {
	case err != nil:
		x.Failed = fmt.Errorf("read the reply: %w", plainly(ctx, err))
	case int64(len(got)) > most:
		x.Failed = fmt.Errorf("%w: it is longer than %d bytes", errMalformed, most)
	case x.Status != http.StatusOK:
		x.Failed = fmt.Errorf("%s: %s", response.Status, x.Excerpt)
	default:
		if err := json.Unmarshal(got, reply); err != nil {
			x.Failed = malformed(got, err)
		}
	}
	return x
}

// LateError is a request that was not answered in time.
type LateError struct{ Limit time.Duration }

func (l LateError) Error() string { return fmt.Sprintf("not answered within %s", l.Limit) }

// plainly drops from a client's error what everybody knows: the method, the
// address, and that a context ended rather than why.
func plainly(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var operation *net.OpError
	for errors.As(err, &operation) { // one may hold another: what was read from, and what was written to
		err = operation.Err
	}
	if operation != nil {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the connection was closed without a reply")
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// Health asks GET /health.
func (e Endpoint) Health(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, healthPatience, LateError{healthPatience})
	defer cancel()
	status, err := GetHealth(ctx, e.client(), e.URL)
	if err != nil {
		err = plainly(ctx, err)
	}
	return status, err
}

// healthPatience is how long one GET /health may take.
const healthPatience = 10 * time.Second

// GetHealth returns the status of GET /health, or why there is none.
func GetHealth(ctx context.Context, client *http.Client, server string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/health", nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// HealthText says in a few words what GET /health came to.
func HealthText(status int, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("HTTP %d", status)
}
