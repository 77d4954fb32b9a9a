package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/content/contenttest"
	"slipway/manifest/registry/embedded"
)

const testChunk = 1000 // bytes of a chunk in these tests

// line is a network between client and registry: it counts the bytes of
// upload bodies, and breaks the connection after some of them.
type line struct {
	next http.Handler

	mutex  sync.Mutex
	passed int64
	cutAt  int64 // breaks once that many bytes passed; -1: never
	loses  bool  // the registry forgets the session that broke
}

func (l *line) middleware(next http.Handler) http.Handler {
	l.next, l.cutAt = next, -1
	return l
}

func (l *line) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPatch && req.Method != http.MethodPut {
		l.next.ServeHTTP(w, req)
		return
	}
	body := &countedBody{ReadCloser: req.Body, line: l}
	req.Body = body
	l.next.ServeHTTP(w, req)
	if body.cut {
		if l.loses {
			l.next.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodDelete, req.URL.Path, nil))
		}
		panic(http.ErrAbortHandler) // the connection closes without an answer
	}
}

func (l *line) count() int64 {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.passed
}

type countedBody struct {
	io.ReadCloser
	line *line
	cut  bool
}

func (b *countedBody) Read(p []byte) (int, error) {
	b.line.mutex.Lock()
	defer b.line.mutex.Unlock()
	if b.line.cutAt >= 0 {
		left := b.line.cutAt - b.line.passed
		if left <= 0 {
			b.cut = true
			return 0, io.ErrUnexpectedEOF
		}
		p = p[:min(int64(len(p)), left)]
	}
	n, err := b.ReadCloser.Read(p)
	b.line.passed += int64(n)
	return n, err
}

func (l *line) cutAfter(n int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cutAt = n
}

// chunked opens a repository that sends everything in small chunks.
func chunked(t *testing.T, host string, options Options) (*Repository, *[]time.Duration) {
	r, pauses := repository(t, host, options)
	r.largeBlob, r.chunkSize = 0, testChunk
	return r, pauses
}

// TestPushCutAndRepeated cuts a push at nine tenths for good, and pushes again
// as another process would.
func TestPushCutAndRepeated(t *testing.T) {
	data := pattern(20*testChunk + 17)
	cut := int64(len(data)) * 9 / 10
	for _, test := range []struct {
		name  string
		loses bool
		cache bool
		most  int64 // bytes that are sent twice
	}{
		{"session kept", false, true, testChunk},
		{"session lost", true, true, cut},
		{"no cache folder", false, false, cut},
	} {
		t.Run(test.name, func(t *testing.T) {
			network := line{loses: test.loses}
			host := serve(t, embedded.Options{}, network.middleware)
			options := Options{}
			if test.cache {
				options.CacheDir = t.TempDir()
			}
			r, _ := chunked(t, host, options)
			network.cutAfter(cut)
			if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err == nil {
				t.Fatal("the push that was cut succeeded")
			}
			mustHave(t, r, describe(data), false)
			network.cutAfter(-1)
			r, _ = chunked(t, host, options)
			if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err != nil {
				t.Fatal(err)
			}
			if again := network.count() - int64(len(data)); again > test.most {
				t.Errorf("%d bytes were sent again, more than %d", again, test.most)
			}
			if got := readBack(t, r, describe(data)); !bytes.Equal(got, data) {
				t.Error("the blob differs")
			}
			if test.cache {
				mustBeEmpty(t, options.CacheDir+"/uploads")
			}
		})
	}
}

func mustHave(t *testing.T, store content.Store, blob manifest.Descriptor, want bool) {
	t.Helper()
	if has, err := store.Has(t.Context(), blob); err != nil || has != want {
		t.Fatalf("has is %v, %v; want %v", has, err, want)
	}
}

func mustBeEmpty(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) > 0 {
		t.Errorf("%s holds %v, %v", folder, entries, err)
	}
}

// TestBrokenConnection breaks the line once in the middle of a push; the push
// has to come through by itself.
func TestBrokenConnection(t *testing.T) {
	data := pattern(10*testChunk + 5)
	for _, test := range []struct {
		name  string
		large int64
		cut   int64
		loses bool
		pause int
	}{
		{"whole blob", 1 << 30, 4321, false, 1},
		{"first byte", 0, 1, false, 2}, // "0-0" also means none: one more try finds out
		{"first chunk", 0, 2, false, 1},
		{"inside a chunk", 0, 4321, false, 1},
		{"at the end of a chunk", 0, 4000, false, 1},
		{"last chunk", 0, int64(len(data)) - 1, false, 1},
		{"session lost", 0, 4321, true, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			network := line{loses: test.loses}
			r, pauses := chunked(t, serve(t, embedded.Options{}, network.middleware), Options{})
			r.largeBlob = test.large
			network.cutAfter(test.cut)
			r.sleep = func(_ context.Context, d time.Duration) error {
				*pauses = append(*pauses, d)
				network.cutAfter(-1)
				return nil
			}
			if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err != nil {
				t.Fatal(err)
			}
			if got := readBack(t, r, describe(data)); !bytes.Equal(got, data) {
				t.Error("the blob differs")
			}
			if len(*pauses) != test.pause {
				t.Errorf("pauses are %v, want %d", *pauses, test.pause)
			}
		})
	}
}

// TestChunkRefusals meets the ways in which registries differ about chunks.
func TestChunkRefusals(t *testing.T) {
	data := pattern(12<<20 + 3)
	const chunk = 6 << 20
	for _, test := range []struct {
		name    string
		patch   func(w http.ResponseWriter, req *http.Request, next http.Handler)
		patches int64 // requests that the push takes; 0: any number
	}{
		{"416 above 4 MiB", refuseAbove(4<<20, http.StatusRequestedRangeNotSatisfiable), 5},
		{"413 above 4 MiB", refuseAbove(4<<20, http.StatusRequestEntityTooLarge), 5},
		{"405 for every chunk", refuseChunks(http.StatusMethodNotAllowed), 0},
		{"404 for every chunk", refuseChunks(http.StatusNotFound), 0},
		{"400 for every chunk", refuseChunks(http.StatusBadRequest), 0},
		{"201 early", earlyEnd, 0},
		{"no Range", withRange(func(string) string { return "" }), 3},
		{"Range with a unit", withRange(func(s string) string { return "bytes=" + s }), 3},
		{"Range one too far", withRange(func(s string) string {
			held, _ := rangeEnd(s)
			return fmt.Sprintf("0-%d", held)
		}), 3},
		{"Range says less", withRange(func(string) string { return "0-99" }), 0},
		{"absolute Location", absoluteLocation, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			var patches atomic.Int64
			host := serve(t, embedded.Options{}, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if req.Method == http.MethodPatch {
						patches.Add(1)
						test.patch(w, req, next)
						return
					}
					next.ServeHTTP(w, req)
				})
			})
			r, _ := chunked(t, host, Options{})
			r.chunkSize = chunk
			if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err != nil {
				t.Fatal(err)
			}
			if got := readBack(t, r, describe(data)); !bytes.Equal(got, data) {
				t.Error("the blob differs")
			}
			if test.patches != 0 && patches.Load() != test.patches {
				t.Errorf("%d PATCH requests, want %d", patches.Load(), test.patches)
			}
		})
	}
}

func refuseAbove(limit int64, status int) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.ContentLength > limit {
			w.WriteHeader(status)
			return
		}
		next.ServeHTTP(w, req)
	}
}

// refuseChunks takes a blob in one PATCH only.
func refuseChunks(status int) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Header.Get("Content-Range") != "" {
			w.WriteHeader(status)
			return
		}
		next.ServeHTTP(w, req)
	}
}

// earlyEnd answers the first chunk as if it were the blob, and keeps nothing.
func earlyEnd(w http.ResponseWriter, req *http.Request, next http.Handler) {
	if req.Header.Get("Content-Range") != "" {
		w.WriteHeader(http.StatusCreated)
		return
	}
	next.ServeHTTP(w, req)
}

// headerWriter changes headers just before they are sent.
type headerWriter struct {
	http.ResponseWriter
	change func(http.Header)
}

func (w headerWriter) WriteHeader(status int) {
	w.change(w.Header())
	w.ResponseWriter.WriteHeader(status)
}

func withRange(change func(string) string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		next.ServeHTTP(headerWriter{w, func(h http.Header) { h.Set("Range", change(h.Get("Range"))) }}, req)
	}
}

func absoluteLocation(w http.ResponseWriter, req *http.Request, next http.Handler) {
	next.ServeHTTP(headerWriter{w, func(h http.Header) { h.Set("Location", "http://"+req.Host+h.Get("Location")+"?state=a%2Fb") }}, req)
}

func TestChunkMinLength(t *testing.T) {
	data := pattern(10 * testChunk)
	for _, test := range []struct {
		least   string
		patches int64
	}{{"", 10}, {"500", 10}, {"4000", 3}, {"junk", 10}, {"1099511627776", 1}} {
		var patches atomic.Int64
		host := serve(t, embedded.Options{}, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodPatch {
					patches.Add(1)
				}
				next.ServeHTTP(headerWriter{w, func(h http.Header) { h.Set("OCI-Chunk-Min-Length", test.least) }}, req)
			})
		})
		r, _ := chunked(t, host, Options{})
		if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err != nil {
			t.Fatal(err)
		}
		if patches.Load() != test.patches {
			t.Errorf("least %q: %d PATCH requests, want %d", test.least, patches.Load(), test.patches)
		}
	}
}

// TestLineThatNeverHolds has to give up after a bounded number of tries.
func TestLineThatNeverHolds(t *testing.T) {
	for _, loses := range []bool{false, true} {
		for _, large := range []int64{0, 1 << 30} {
			network := line{loses: loses}
			r, pauses := chunked(t, serve(t, embedded.Options{}, network.middleware), Options{})
			r.largeBlob = large
			network.cutAfter(0)
			data := pattern(5 * testChunk)
			if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err == nil {
				t.Fatal("no error")
			}
			if len(*pauses) != maxTries-1 {
				t.Errorf("%d pauses, want %d", len(*pauses), maxTries-1)
			}
			for i, pause := range *pauses {
				if least := firstDelay << i; pause < least || pause > 2*least {
					t.Errorf("pause %d is %v, want about %v", i, pause, least)
				}
			}
		}
	}
}

// TestSourceChanged resumes with a file that is no longer the one that was
// described: the registry must not get a PUT.
func TestSourceChanged(t *testing.T) {
	var puts atomic.Int64
	network := line{}
	host := serve(t, embedded.Options{}, func(next http.Handler) http.Handler {
		next = network.middleware(next)
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodPut {
				puts.Add(1)
			}
			next.ServeHTTP(w, req)
		})
	})
	data := pattern(10 * testChunk)
	options := Options{CacheDir: t.TempDir()}
	r, _ := chunked(t, host, options)
	network.cutAfter(5 * testChunk)
	if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err == nil {
		t.Fatal("the push that was cut succeeded")
	}
	network.cutAfter(-1)
	other := bytes.Clone(data)
	other[3] ^= 1 // in the part that the registry holds
	err := r.Put(t.Context(), describe(data), contenttest.Bytes(other))
	if _, ok := errors.AsType[*content.IntegrityError](err); !ok || !strings.Contains(err.Error(), "changed since build") {
		t.Fatalf("error is %v, want one about a changed source", err)
	}
	if manifest.Hint(err) != "build again" {
		t.Errorf("hint is %q", manifest.Hint(err))
	}
	if puts.Load() != 0 {
		t.Errorf("%d PUT requests, want none", puts.Load())
	}
	mustBeEmpty(t, options.CacheDir+"/uploads")
	if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err != nil {
		t.Fatal(err)
	}
}

// TestCommitLost loses the answer to the PUT: the blob is there, and the push
// has to find out.
func TestCommitLost(t *testing.T) {
	for _, chunkFirst := range []bool{true, false} {
		var lost atomic.Bool
		host := serve(t, embedded.Options{}, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				next.ServeHTTP(w, req)
				if req.Method == http.MethodPut && !lost.Swap(true) {
					panic(http.ErrAbortHandler)
				}
			})
		})
		r, _ := chunked(t, host, Options{})
		if !chunkFirst {
			r.largeBlob = 1 << 30
		}
		data := pattern(3 * testChunk)
		if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err != nil {
			t.Fatal(err)
		}
		mustHave(t, r, describe(data), true)
	}
}

// TestStaleSessions leaves files in the cache that are of no use: none may
// keep a push from succeeding.
func TestStaleSessions(t *testing.T) {
	host := serve(t, embedded.Options{}, nil)
	data := pattern(3 * testChunk)
	r, _ := chunked(t, host, Options{CacheDir: t.TempDir()})
	session := newSessionFile(r.options.CacheDir, r.ref, describe(data))
	good := fmt.Sprintf(`{"schema":1,"registry":%q,"repository":"team/model","digest":%q,"size":%d,"location":%%q,"sent":0}`, host, describe(data).Digest, len(data))
	for name, text := range map[string]string{
		"unknown session":  fmt.Sprintf(good, "http://"+host+"/v2/team/model/blobs/uploads/0123456789abcdef0123456789abcdef"),
		"other path":       fmt.Sprintf(good, "http://"+host+"/elsewhere"),
		"relative":         fmt.Sprintf(good, "/v2/"),
		"other repository": strings.Replace(fmt.Sprintf(good, "http://"+host+"/v2/"), "team/", "other/", 1),
		"cut":              good[:40],
		"empty":            "",
	} {
		if err := writePrivate(session.path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		blob := pattern(3 * testChunk)
		if err := r.upload(t.Context(), describe(blob), contenttest.Bytes(blob)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLocations answers the start of an upload with addresses that lead
// nowhere, or where an upload must not go.
func TestLocations(t *testing.T) {
	data := pattern(3 * testChunk)
	for location, want := range map[string]string{
		"":                        "has no Location",
		"http://[":                "has a malformed Location",
		"http://10.0.0.5:9000/x":  "sends on to the internal address 10.0.0.5:9000",
		"http://127.0.0.1:9000/x": "sends on to the internal address 127.0.0.1:9000",
	} {
		host := serve(t, embedded.Options{}, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				next.ServeHTTP(headerWriter{w, func(h http.Header) {
					if req.Method == http.MethodPost {
						h.Set("Location", location)
					}
				}}, req)
			})
		})
		connections := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, host)
		}}
		r, err := open(Reference{Host: "registry.example.com", Repository: "team/model"}, Options{PlainHTTP: true}, connections)
		if err != nil {
			t.Fatal(err)
		}
		r.largeBlob = 0
		if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", location, err, want)
		}
	}
}

// TestCacheFolderUnusable must warn once and push.
func TestCacheFolderUnusable(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var warnings []string
	r, _ := chunked(t, serve(t, embedded.Options{}, nil), Options{CacheDir: file, Warn: func(text string) { warnings = append(warnings, text) }})
	data := pattern(3 * testChunk)
	if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "cannot record the upload") {
		t.Errorf("warnings are %q", warnings)
	}
}

func TestSleepEndsWithContext(t *testing.T) {
	if err := sleep(t.Context(), 0); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
}

// TestProgress counts up to the blob's size, also for one that is there.
func TestProgress(t *testing.T) {
	data := pattern(5*testChunk + 1)
	for _, large := range []int64{0, 1 << 30} {
		var mutex sync.Mutex
		var told []int64
		r, _ := chunked(t, serve(t, embedded.Options{}, nil), Options{Progress: func(blob manifest.Descriptor, sent int64) {
			mutex.Lock()
			defer mutex.Unlock()
			if blob.Digest == describe(data).Digest {
				told = append(told, sent)
			}
		}})
		r.largeBlob = large
		for range 2 {
			if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err != nil {
				t.Fatal(err)
			}
			mutex.Lock()
			if len(told) == 0 || told[len(told)-1] != int64(len(data)) || !slices.IsSorted(told) {
				t.Errorf("progress was told as %v", told)
			}
			told = nil
			mutex.Unlock()
		}
	}
}
