package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// errPlainHTTP is why a request to another machine is not sent unencrypted.
var errPlainHTTP = errors.New("plain http to a host that is not this machine")

// newTransport returns connections as go-containerregistry makes them, without
// its reading of the environment for a proxy, and without compression, which
// would hide a blob's length.
func newTransport(proxy func(*http.Request) (*url.URL, error)) http.RoundTripper {
	return &http.Transport{
		Proxy:                 proxy,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   50,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// guard stands below authentication, so that every request passes it. It keeps
// plain http on this machine, rewinds a body that authentication sends a
// second time, and notes how long a server asks to be left alone.
type guard struct {
	inner     http.RoundTripper
	plainHTTP bool
}

func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !g.plainHTTP && !isLoopback(req.URL.Hostname()) {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper closes it; the refusal is the error to report
		}
		return nil, fmt.Errorf("%w: %s", errPlainHTTP, req.URL.Host)
	}
	if err := rewind(req); err != nil {
		return nil, err
	}
	resp, err := g.inner.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if note, ok := req.Context().Value(retryAfterKey{}).(*atomic.Int64); ok {
		note.Store(int64(retryAfter(resp.Header.Get("Retry-After"))))
	}
	return resp, nil
}

// sentBody marks a body that was handed to a connection.
type sentBody struct{ io.ReadCloser }

// rewind gives a request that comes by again a fresh body. The bearer
// transport repeats a request after it renewed its token, with the body that
// the first attempt has read.
func rewind(req *http.Request) error {
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	if _, sent := req.Body.(sentBody); sent {
		if req.GetBody == nil {
			return errors.New("the body cannot be sent again")
		}
		body, err := req.GetBody()
		if err != nil {
			return err
		}
		req.Body = body
	}
	req.Body = sentBody{req.Body}
	return nil
}

// retryAfterKey is the context key of the duration, in ns, that the last
// answer asked to wait.
type retryAfterKey struct{}

// retryAfter reads the header's form in seconds (RFC 9110, 10.2.3).
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}

// isLoopback reports whether host, a name or an address without brackets, is
// this machine.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// isInternal reports whether host is an address literal of this machine, a
// private network or a link. The legacy spellings (127.1, 0x7f000001) count as
// internal, since resolvers differ about them.
func isInternal(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		address = address.Unmap()
		return address.IsLoopback() || address.IsPrivate() || address.IsLinkLocalUnicast() ||
			address.IsLinkLocalMulticast() || address.IsUnspecified()
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil
}

// checkHop refuses to follow a registry to an address inside the network that
// this machine stands in: a hostile one could reach other services by it.
func checkHop(from, to *url.URL) error {
	if from.Hostname() != to.Hostname() && isInternal(to.Hostname()) && !isInternal(from.Hostname()) {
		return fmt.Errorf("%s sends on to the internal address %s", from.Host, to.Host)
	}
	return nil
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("more than 10 redirects")
	}
	return checkHop(via[0].URL, req.URL)
}

// withRetryAfter returns a context in which guard leaves its notes.
func withRetryAfter(ctx context.Context) (context.Context, *atomic.Int64) {
	note := new(atomic.Int64)
	return context.WithValue(ctx, retryAfterKey{}, note), note
}
