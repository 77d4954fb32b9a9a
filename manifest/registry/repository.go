// Package registry makes a repository of an OCI registry a content.Store. A
// push that was cut goes on where the registry kept it, a blob is committed
// only after the bytes that were sent had its digest, and what is read is
// checked against digest and size. Plain http stays on this machine unless it
// is allowed; passwords, tokens and signed addresses appear in no error.
package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"slipway/manifest"
)

const (
	defaultChunkSize = 16 << 20
	smallChunkSize   = 4 << 20   // what every registry with chunks takes
	maxChunkSize     = 128 << 20 // a chunk is held in memory
	largeBlob        = 64 << 20  // blobs above are sent in chunks
)

// Options are what a Repository may do, and where it keeps things.
type Options struct {
	PlainHTTP    bool   // allow plain http to hosts other than this machine
	DockerConfig string // folder of docker's config.json; "" = anonymous
	CacheDir     string // where unfinished uploads are recorded; "" = nowhere
	UserAgent    string

	// Progress is told how many bytes of a blob are sent. It is called from
	// several goroutines, and the number falls when a blob has to start again.
	Progress func(blob manifest.Descriptor, sent int64)
	// Warn is told in one line what works, but worse than it should.
	Warn func(text string)
	// Proxy chooses the proxy of a request; nil = none.
	Proxy func(*http.Request) (*url.URL, error)
}

// Repository is one repository of a registry. It is safe for concurrent use.
type Repository struct {
	ref     Reference
	options Options
	repo    name.Repository
	base    http.RoundTripper
	clients chan map[string]*http.Client // by scope; taken out while one is made

	sleep     func(context.Context, time.Duration) error
	chunkSize int64
	largeBlob int64
}

// Open returns the repository that ref names, without a word to the registry;
// ref's tag or digest plays no part.
func Open(ref Reference, options Options) (*Repository, error) {
	return open(ref, options, newTransport(options.Proxy))
}

func open(ref Reference, options Options, connections http.RoundTripper) (*Repository, error) {
	if err := checkHost(ref.Host); err != nil {
		return nil, err
	}
	if err := checkRepository(ref.Host, ref.Repository); err != nil {
		return nil, fmt.Errorf("registry %s: %w", ref.Host, err)
	}
	registry, err := newRegistry(ref.Host, options)
	if err != nil {
		return nil, err
	}
	r := &Repository{
		ref: ref, options: options, repo: registry.Repo(ref.Repository),
		base: newBase(options, connections), clients: make(chan map[string]*http.Client, 1),
		sleep: sleep, chunkSize: defaultChunkSize, largeBlob: largeBlob,
	}
	r.clients <- map[string]*http.Client{}
	return r, nil
}

// newRegistry marks the hosts that http may be tried on after https. For the
// ones that go-containerregistry would try it on by itself (private addresses,
// .local), guard refuses.
func newRegistry(host string, options Options) (name.Registry, error) {
	choice := name.StrictValidation
	bare, _ := splitPort(host)
	if options.PlainHTTP || isLoopback(trimBrackets(bare)) {
		choice = name.Insecure
	}
	return name.NewRegistry(host, choice)
}

func newBase(options Options, connections http.RoundTripper) http.RoundTripper {
	return transport.NewUserAgent(guard{connections, options.PlainHTTP}, options.UserAgent)
}

func trimBrackets(host string) string {
	if len(host) > 1 && host[0] == '[' {
		return host[1 : len(host)-1]
	}
	return host
}

// client returns a client that may do action (transport.PullScope or
// PushScope), made with a ping and the credentials for the host.
func (r *Repository) client(ctx context.Context, action string) (*http.Client, error) {
	var made map[string]*http.Client
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case made = <-r.clients:
	}
	defer func() { r.clients <- made }()
	if client, found := made[action]; found {
		return client, nil
	}
	auth, err := credentials(ctx, r.options.DockerConfig, r.ref.Host)
	if err != nil {
		return nil, permanentError{err}
	}
	authenticated, err := transport.NewWithContext(ctx, r.repo.Registry, auth, r.base, []string{r.repo.Scope(action)})
	if err != nil {
		return nil, pingError(err)
	}
	made[action] = &http.Client{Transport: authenticated, CheckRedirect: checkRedirect}
	return made[action], nil
}

// call is one request to the registry.
type call struct {
	action, method string
	url            string
	header         http.Header
	body           *loan // nil: none
}

// send returns the answer whatever its status; the caller closes its body.
func (r *Repository) send(ctx context.Context, c call) (*http.Response, error) {
	client, err := r.client(ctx, c.action)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, nil)
	if err != nil {
		return nil, permanentError{err}
	}
	for key, values := range c.header {
		req.Header[key] = values
	}
	if c.body != nil {
		req.ContentLength = int64(len(c.body.data))
		req.GetBody = c.body.open
		if req.Body, err = c.body.open(); err != nil {
			return nil, permanentError{err}
		}
	}
	return client.Do(req)
}

// url returns an address in the repository. The transport replaces the scheme
// by the one that the registry answered to.
func (r *Repository) url(rest string) string {
	return "https://" + r.repo.RegistryStr() + "/v2/" + r.repo.RepositoryStr() + "/" + rest
}

func (r *Repository) progress(blob manifest.Descriptor, sent int64) {
	if r.options.Progress != nil {
		r.options.Progress(blob, sent)
	}
}

func (r *Repository) warn(format string, args ...any) {
	if r.options.Warn != nil {
		r.options.Warn(fmt.Sprintf(format, args...))
	}
}
