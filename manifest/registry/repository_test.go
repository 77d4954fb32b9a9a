package registry

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/content/contenttest"
	"slipway/manifest/registry/embedded"
)

// serve starts an embedded registry behind middleware and returns its host.
func serve(t *testing.T, options embedded.Options, middleware func(http.Handler) http.Handler) string {
	t.Helper()
	handler, err := embedded.New(t.TempDir(), options)
	if err != nil {
		t.Fatal(err)
	}
	var wrapped http.Handler = handler
	if middleware != nil {
		wrapped = middleware(handler)
	}
	server := httptest.NewUnstartedServer(wrapped)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // faults are what the tests are about
	server.Start()
	t.Cleanup(func() {
		server.Close()
		if err := handler.Close(); err != nil {
			t.Error(err)
		}
	})
	return strings.TrimPrefix(server.URL, "http://")
}

// repository opens a repository whose pauses pass at once and are recorded.
func repository(t *testing.T, host string, options Options) (*Repository, *[]time.Duration) {
	t.Helper()
	r, err := Open(Reference{Host: host, Repository: "team/model"}, options)
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	var pauses []time.Duration
	r.sleep = func(ctx context.Context, d time.Duration) error {
		mutex.Lock()
		defer mutex.Unlock()
		pauses = append(pauses, d)
		return context.Cause(ctx)
	}
	return r, &pauses
}

func describe(data []byte) manifest.Descriptor {
	return manifest.DescribeBytes("application/vnd.cncf.model.weight.v1.raw", data)
}

func pattern(n int) []byte {
	data := make([]byte, n)
	state := uint32(n) + 7
	for i := range data {
		state = state*1664525 + 1013904223
		data[i] = byte(state >> 24)
	}
	return data
}

func readBack(t *testing.T, store content.Store, blob manifest.Descriptor) []byte {
	t.Helper()
	reader, err := store.Open(t.Context(), blob, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	data, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestConformance runs the suite once with blobs sent whole and once with
// every blob sent in chunks.
func TestConformance(t *testing.T) {
	for name, largeBlob := range map[string]int64{"whole": largeBlob, "chunks": -1} {
		t.Run(name, func(t *testing.T) {
			contenttest.Run(t, func(t *testing.T) content.Store {
				r, _ := repository(t, serve(t, embedded.Options{}, nil), Options{CacheDir: t.TempDir()})
				r.largeBlob, r.chunkSize = largeBlob, 64<<10
				return r
			})
		})
	}
}

func TestConformanceBasicAuth(t *testing.T) {
	contenttest.Run(t, func(t *testing.T) content.Store {
		host := serve(t, embedded.Options{Username: "ada", Password: "secret"}, nil)
		folder := t.TempDir()
		if err := Login(t.Context(), host, "ada", "secret", Options{DockerConfig: folder}); err != nil {
			t.Fatal(err)
		}
		r, _ := repository(t, host, Options{DockerConfig: folder})
		return r
	})
}

func TestSchemes(t *testing.T) {
	refused := errors.New("nothing listens")
	for _, test := range []struct {
		host      string
		plainHTTP bool
		want      []string // schemes that reach the network
	}{
		{"registry.example.com", false, []string{"https"}},
		{"10.1.2.3:5000", false, []string{"https"}},
		{"192.168.7.7", false, []string{"https"}},
		{"box.local", false, []string{"https"}},
		{"[fe80::1]:5000", false, []string{"https"}},
		{"localhost.example.com:5000", false, []string{"https"}},
		{"localhost", false, []string{"https", "http"}},
		{"localhost:5000", false, []string{"https", "http"}},
		{"127.0.0.1:5000", false, []string{"https", "http"}},
		{"127.8.8.8", false, []string{"https", "http"}},
		{"[::1]:5000", false, []string{"https", "http"}},
		{"registry.example.com", true, []string{"https", "http"}},
		{"10.1.2.3:5000", true, []string{"https", "http"}},
	} {
		seen := map[string]bool{}
		var mutex sync.Mutex
		record := roundTripper(func(req *http.Request) (*http.Response, error) {
			mutex.Lock()
			defer mutex.Unlock()
			seen[req.URL.Scheme] = true
			return nil, refused
		})
		r, err := open(Reference{Host: test.host, Repository: "a/b"}, Options{PlainHTTP: test.plainHTTP}, record)
		if err != nil {
			t.Fatal(err)
		}
		r.sleep = func(context.Context, time.Duration) error { return nil }
		_, err = r.Has(t.Context(), describe([]byte("x")))
		if !errors.Is(err, refused) {
			t.Errorf("%s: error is %v, want the network's", test.host, err)
		}
		var got []string
		for _, scheme := range []string{"https", "http"} {
			if seen[scheme] {
				got = append(got, scheme)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s, plain http %v: asked %v, want %v", test.host, test.plainHTTP, got, test.want)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestPlainRegistryHint asks a plain registry under a name that is not this
// machine's: the error has to say what to do.
func TestPlainRegistryHint(t *testing.T) {
	host := serve(t, embedded.Options{}, nil)
	toServer := &http.Transport{}
	toServer.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, host)
	}
	r, err := open(Reference{Host: "registry.internal:5000", Repository: "a/b"}, Options{}, toServer)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Has(t.Context(), describe([]byte("x")))
	if err == nil || !strings.Contains(manifest.Hint(err), "--plain-http") {
		t.Fatalf("error is %v with hint %q, want one about --plain-http", err, manifest.Hint(err))
	}
	r, err = open(Reference{Host: "registry.internal:5000", Repository: "a/b"}, Options{PlainHTTP: true}, toServer)
	if err != nil {
		t.Fatal(err)
	}
	if has, err := r.Has(t.Context(), describe([]byte("x"))); has || err != nil {
		t.Fatalf("with plain http: %v, %v", has, err)
	}
}

// TestMemory pushes and pulls a blob far larger than the bound on the heap,
// client and registry together.
func TestMemory(t *testing.T) {
	const size, bound = 256 << 20, 96 << 20
	r, _ := repository(t, serve(t, embedded.Options{}, nil), Options{})
	var peak uint64
	watch := func() {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		peak = max(peak, stats.HeapInuse)
	}
	r.options.Progress = func(manifest.Descriptor, int64) { watch() }
	hash := manifest.NewHash()
	if _, err := io.Copy(hash, zeros(size)); err != nil {
		t.Fatal(err)
	}
	blob := manifest.Descriptor{MediaType: "application/vnd.cncf.model.weight.v1.raw", Digest: manifest.FinishHash(hash), Size: size}
	source := func(_ context.Context, offset int64) (io.ReadCloser, error) {
		return io.NopCloser(zeros(size - offset)), nil
	}
	runtime.GC()
	watch()
	start := peak
	if err := r.Put(t.Context(), blob, source); err != nil {
		t.Fatal(err)
	}
	reader, err := r.Open(t.Context(), blob, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if n, err := io.Copy(io.Discard, reader); n != size || err != nil {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	watch()
	if grown := int64(peak) - int64(start); grown > bound {
		t.Errorf("the heap grew by %d MiB, more than %d", grown>>20, bound>>20)
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

// TestSessionFileIsPrivate looks at what an unfinished upload leaves behind.
func TestSessionFileIsPrivate(t *testing.T) {
	cut := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodPut {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, req)
		})
	}
	cache := t.TempDir()
	r, _ := repository(t, serve(t, embedded.Options{}, cut), Options{CacheDir: cache})
	r.largeBlob, r.chunkSize = 0, 1000
	data := pattern(2500)
	err := r.Put(t.Context(), describe(data), contenttest.Bytes(data))
	if statusOf(err) != http.StatusForbidden {
		t.Fatalf("error is %v, want 403", err)
	}
	files, err := filepath.Glob(filepath.Join(cache, "uploads", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("session files %v, %v", files, err)
	}
	info, err := os.Stat(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("session file has mode %v", info.Mode())
	}
}
