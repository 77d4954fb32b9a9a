package registry

import (
	"context"
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"slipway/manifest/content"
)

const (
	maxTries      = 5
	firstDelay    = 500 * time.Millisecond
	maxDelay      = 30 * time.Second
	maxRetryAfter = 2 * time.Minute
)

// sleep waits, or ends with ctx. Tests put a clock of their own in its place.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// retry calls try until it succeeds, fails for good, or failed maxTries times.
func (r *Repository) retry(ctx context.Context, try func(ctx context.Context) error) error {
	for attempt := 1; ; attempt++ {
		noted, note := withRetryAfter(ctx)
		err := try(noted)
		asked := time.Duration(note.Load())
		if err == nil || attempt == maxTries || !isTemporary(ctx, err, asked) {
			return err
		}
		if r.pause(ctx, attempt, asked) != nil {
			return err
		}
	}
}

// pause waits before the try after the attempt-th (from 1): twice as long each
// time, and no shorter than the server asked for.
func (r *Repository) pause(ctx context.Context, attempt int, asked time.Duration) error {
	delay := min(firstDelay<<(attempt-1), maxDelay)
	delay += rand.N(delay / 4) // so that parallel uploads do not come back in step
	return r.sleep(ctx, max(delay, asked))
}

// isTemporary reports whether another try may succeed. Answers of the registry
// decide by their status, and a 403 with Retry-After is a rate limit; what has
// no status is a connection that broke, except for the errors that say the
// same every time.
func isTemporary(ctx context.Context, err error, asked time.Duration) bool {
	if ctx.Err() != nil || errors.Is(err, errPlainHTTP) || errors.Is(err, http.ErrSchemeMismatch) {
		return false
	}
	if _, ok := errors.AsType[permanentError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*content.IntegrityError](err); ok {
		return false
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return false
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return false
	}
	status := statusOf(err)
	return status == 0 || isTemporaryStatus(status) || status == http.StatusForbidden && asked > 0
}

func isTemporaryStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		499, 522: // nginx and Cloudflare: the connection behind them broke
		return true
	}
	return false
}

// permanentError is one that no second try can cure: the source of a blob
// fails or changed, an answer breaks the protocol.
type permanentError struct{ error }

func (p permanentError) Unwrap() error { return p.error }
