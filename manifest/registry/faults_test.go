package registry

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// TestTemporaryAnswers answers each request once with a fault; every
// operation has to come through.
func TestTemporaryAnswers(t *testing.T) {
	for _, test := range []struct {
		status     int
		retryAfter string
		least      time.Duration
	}{
		{500, "", firstDelay},
		{502, "", firstDelay},
		{408, "", firstDelay},
		{429, "7", 7 * time.Second},
		{503, "9", 9 * time.Second},
		{429, "99999", maxRetryAfter},
		{403, "3", 3 * time.Second},
	} {
		for _, large := range []int64{0, 1 << 30} {
			var mutex sync.Mutex
			seen := map[string]bool{}
			host := serve(t, embedded.Options{}, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					mutex.Lock()
					key := fmt.Sprint(req.Method, strings.Contains(req.URL.Path, "/manifests/"))
					first := !seen[key] && req.URL.Path != "/v2/"
					seen[key] = true
					mutex.Unlock()
					if first {
						w.Header().Set("Retry-After", test.retryAfter)
						w.WriteHeader(test.status)
						return
					}
					next.ServeHTTP(w, req)
				})
			})
			r, pauses := chunked(t, host, Options{})
			r.largeBlob = large
			blob := contenttest.Push(t, r, "x")
			if err := r.Tag(t.Context(), blob, "v1"); err != nil {
				t.Fatalf("%d: %v", test.status, err)
			}
			if got, err := r.Resolve(t.Context(), "v1"); err != nil || got.Digest != blob.Digest {
				t.Fatalf("%d: %v, %v", test.status, got, err)
			}
			if len(*pauses) < 5 {
				t.Errorf("%d: %d pauses, want one for each kind of request", test.status, len(*pauses))
			}
			for _, pause := range *pauses {
				if pause < test.least {
					t.Errorf("%d: paused %v, want at least %v", test.status, pause, test.least)
				}
			}
		}
	}
}

// TestLastingAnswers must not be tried again, and say what to do.
func TestLastingAnswers(t *testing.T) {
	data := pattern(3 * testChunk)
	for _, test := range []struct {
		method string
		status int
		large  int64
		hint   string
	}{
		{http.MethodPost, 403, 0, "run: slipway login HOST"},
		{http.MethodPost, 403, 1 << 30, "run: slipway login HOST"},
		{http.MethodPost, 401, 0, "run: slipway login HOST"},
		{http.MethodPost, 404, 0, ""},
		{http.MethodPost, 404, 1 << 30, ""},
		{http.MethodPatch, 403, 0, "run: slipway login HOST"},
		{http.MethodPatch, 413, 1 << 30, "lower max_shard in the weights block: the registry, or a proxy before it, takes no blob of this size"},
		{http.MethodPut, 403, 0, "run: slipway login HOST"},
	} {
		var asked atomic.Int64
		host := serve(t, embedded.Options{}, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method == test.method {
					asked.Add(1)
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(test.status)
					fmt.Fprint(w, `{"errors":[{"code":"DENIED","message":"quota of\nteam is used up"}]}`)
					return
				}
				next.ServeHTTP(w, req)
			})
		})
		r, pauses := chunked(t, host, Options{})
		r.largeBlob = test.large
		err := r.Put(t.Context(), describe(data), contenttest.Bytes(data))
		want := fmt.Sprintf("push layer sha256:%s: %d %s: quota of team is used up", describe(data).Digest.Short(), test.status, http.StatusText(test.status))
		if err == nil || err.Error() != want {
			t.Errorf("%s %d: error is %v, want %s", test.method, test.status, err, want)
		}
		if hint := strings.ReplaceAll(manifest.Hint(err), host, "HOST"); hint != test.hint {
			t.Errorf("%s %d: hint is %q, want %q", test.method, test.status, hint, test.hint)
		}
		if asked.Load() != 1 || len(*pauses) != 0 {
			t.Errorf("%s %d: asked %d times, paused %v", test.method, test.status, asked.Load(), *pauses)
		}
	}
}

// TestAnswersThatLie has a registry that holds the blob give wrong answers.
func TestAnswersThatLie(t *testing.T) {
	data := pattern(5000)
	blob := describe(data)
	get := func(t *testing.T, r *Repository, offset int64) error {
		reader, err := r.Open(t.Context(), blob, offset)
		if err != nil {
			return err
		}
		defer reader.Close()
		_, err = io.Copy(io.Discard, reader)
		return err
	}
	from0 := func(t *testing.T, r *Repository) error { return get(t, r, 0) }
	from9 := func(t *testing.T, r *Repository) error { return get(t, r, 9) }
	has := func(t *testing.T, r *Repository) error { _, err := r.Has(t.Context(), blob); return err }
	for _, test := range []struct {
		name   string
		ask    func(*testing.T, *Repository) error
		answer func(w http.ResponseWriter, req *http.Request)
		want   string
	}{
		{"flipped byte", from0, respond(200, nil, flip(data)), "its bytes have digest"},
		{"short body", from0, respond(200, http.Header{"Content-Length": {"5000"}}, data[:4999]), "unexpected EOF"},
		{"short body without a length", from0, respond(200, http.Header{"Transfer-Encoding": {"chunked"}}, data[:4999]), "ends after 4999 of 5000 bytes"},
		{"short length", from0, respond(200, nil, data[:4999]), "ends after 4999 of 5000 bytes"},
		{"long length", from0, respond(200, nil, append(bytes.Clone(data), 1)), "longer than its 5000 bytes"},
		{"long body without a length", from0, respond(200, http.Header{"Transfer-Encoding": {"chunked"}}, append(bytes.Clone(data), 1)), "longer than its 5000 bytes"},
		{"no content", from0, respond(204, nil, nil), "204 No Content"},
		{"short part", from9, respond(206, http.Header{"Content-Range": {"bytes 9-4999/5000"}, "Transfer-Encoding": {"chunked"}}, data[9:4000]), "ends after 4000 of 5000 bytes"},
		{"long part", from9, respond(206, http.Header{"Content-Range": {"bytes 9-4999/5000"}}, append(bytes.Clone(data[9:]), 1)), "longer than its 5000 bytes"},
		{"other part", from9, respond(206, http.Header{"Content-Range": {"bytes 8-4999/5000"}}, data[8:]), `sent range "bytes 8-4999/5000" for bytes 9 to 4999`},
		{"part of another size", from9, respond(206, http.Header{"Content-Range": {"bytes 9-4999/6000"}}, data[9:]), "sent range"},
		{"part without range", from9, respond(206, nil, data[9:]), "sent range"},
		{"other digest on GET", from0, respond(200, http.Header{"Docker-Content-Digest": {manifest.DigestBytes(nil).String()}}, data), "the registry says digest sha256:e3b0"},
		{"other digest on HEAD", has, respond(200, http.Header{"Docker-Content-Digest": {manifest.DigestBytes(nil).String()}}, data), "the registry says digest sha256:e3b0"},
		{"other size on HEAD", has, respond(200, http.Header{"Content-Length": {"4999"}}, nil), "ends after 4999 of 5000 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lie := false
			host := serve(t, embedded.Options{}, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if lie && strings.Contains(req.URL.Path, "/blobs/") {
						test.answer(w, req)
						return
					}
					next.ServeHTTP(w, req)
				})
			})
			r, _ := repository(t, host, Options{})
			if err := r.Put(t.Context(), blob, contenttest.Bytes(data)); err != nil {
				t.Fatal(err)
			}
			if err := test.ask(t, r); err != nil {
				t.Fatalf("the honest registry: %v", err)
			}
			lie = true
			if err := test.ask(t, r); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q", err, test.want)
			}
		})
	}
}

func flip(data []byte) []byte {
	other := bytes.Clone(data)
	other[len(other)/2] ^= 1
	return other
}

// respond answers with a body. A Content-Length that promises more than the
// body ends the connection early; Transfer-Encoding leaves the length out.
func respond(status int, header http.Header, body []byte) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, req *http.Request) {
		for key, values := range header {
			w.Header()[key] = values
		}
		if header.Get("Transfer-Encoding") != "" {
			w.Header().Del("Transfer-Encoding")
			w.WriteHeader(status)
			w.(http.Flusher).Flush()
		} else {
			w.WriteHeader(status)
		}
		if req.Method != http.MethodHead {
			_, _ = w.Write(body)
		}
	}
}

func TestManifestsThatLie(t *testing.T) {
	var answer func(http.ResponseWriter, *http.Request)
	host := serve(t, embedded.Options{}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if answer != nil && strings.Contains(req.URL.Path, "/manifests/") {
				answer(w, req)
				return
			}
			next.ServeHTTP(w, req)
		})
	})
	r, _ := repository(t, host, Options{})
	blob := contenttest.Push(t, r, "x")
	if err := r.Tag(t.Context(), blob, "v1"); err != nil {
		t.Fatal(err)
	}
	data := readBack(t, r, blob)
	typed := func(more ...string) http.Header {
		h := http.Header{"Content-Type": {manifest.MediaTypeManifest + "; charset=utf-8"}}
		for i := 0; i < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		return h
	}
	for _, test := range []struct {
		name, ask, want string
		answer          func(http.ResponseWriter, *http.Request)
	}{
		{"honest", "v1", "", respond(200, typed(), data)},
		{"other digest in the header", "v1", "the registry says digest sha256:e3b0", respond(200, typed("Docker-Content-Digest", manifest.DigestBytes(nil).String()), data)},
		{"other bytes for a digest", blob.Digest.String(), "its bytes have digest", respond(200, typed(), flip(data))},
		{"no media type", "v1", "does not say the manifest's media type", respond(200, http.Header{"Content-Type": {""}}, data)},
		{"too large", "v1", "manifest is larger than", respond(200, typed(), make([]byte, manifest.MaxManifestBytes+1))},
	} {
		answer = test.answer
		got, err := r.Resolve(t.Context(), test.ask)
		if test.want == "" {
			if err != nil || got.Digest != blob.Digest || got.MediaType != manifest.MediaTypeManifest {
				t.Errorf("%s: %+v, %v", test.name, got, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error is %v, want %q", test.name, err, test.want)
		}
	}
}

// TestRangeIgnored reads from inside a blob of a registry without ranges.
func TestRangeIgnored(t *testing.T) {
	host := serve(t, embedded.Options{}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			req.Header.Del("Range")
			next.ServeHTTP(w, req)
		})
	})
	var warnings []string
	r, _ := repository(t, host, Options{Warn: func(text string) { warnings = append(warnings, text) }})
	data := pattern(5000)
	if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err != nil {
		t.Fatal(err)
	}
	reader, err := r.Open(t.Context(), describe(data), 4321)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	got, err := io.ReadAll(reader)
	if err != nil || !bytes.Equal(got, data[4321:]) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "ignores ranges") {
		t.Errorf("warnings are %q", warnings)
	}
}

// TestRedirectKeepsSecrets follows a blob to another server, which must not
// see the credentials.
func TestRedirectKeepsSecrets(t *testing.T) {
	data := pattern(5000)
	var leaked atomic.Value
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if header := req.Header.Get("Authorization"); header != "" {
			leaked.Store(header)
		}
		http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(data))
	}))
	defer storage.Close()
	address, err := url.Parse(storage.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{address.Host, "localhost:" + address.Port()} {
		host := serve(t, embedded.Options{Username: "ada", Password: "secret"}, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/blobs/sha256:") {
					http.Redirect(w, req, "http://"+name+"/bucket/key?signature=abc", http.StatusTemporaryRedirect)
					return
				}
				next.ServeHTTP(w, req)
			})
		})
		folder := t.TempDir()
		if err := Login(t.Context(), host, "ada", "secret", Options{DockerConfig: folder}); err != nil {
			t.Fatal(err)
		}
		r, _ := repository(t, host, Options{DockerConfig: folder})
		if got := readBack(t, r, describe(data)); !bytes.Equal(got, data) {
			t.Error("the blob differs")
		}
		reader, err := r.Open(t.Context(), describe(data), 100)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, data[100:]) {
			t.Errorf("from 100: %d bytes, %v", len(got), err)
		}
		reader.Close()
	}
	if leaked.Load() != nil {
		t.Errorf("the other server saw %q", leaked.Load())
	}
}

func TestCheckHop(t *testing.T) {
	for _, test := range []struct {
		from, to string
		allowed  bool
	}{
		{"https://registry.example.com/", "https://storage.example.net/x", true},
		{"https://registry.example.com/", "https://registry.example.com/x", true},
		{"https://registry.example.com/", "https://8.8.8.8/x", true},
		{"https://registry.example.com/", "https://10.0.0.5:9000/x", false},
		{"https://registry.example.com/", "https://169.254.169.254/x", false},
		{"https://registry.example.com/", "https://127.0.0.1/x", false},
		{"https://registry.example.com/", "https://127.1/x", false},
		{"https://registry.example.com/", "https://0x7f000001/x", false},
		{"https://registry.example.com/", "https://[::ffff:10.0.0.1]/x", false},
		{"https://registry.example.com/", "https://[fd00::1]/x", false},
		{"https://8.8.4.4/", "https://192.168.0.1/x", false},
		{"https://10.0.0.4/", "https://10.0.0.5:9000/x", true},
		{"http://127.0.0.1:5000/", "http://127.0.0.1:9000/x", true},
	} {
		from, err1 := url.Parse(test.from)
		to, err2 := url.Parse(test.to)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if err := checkHop(from, to); (err == nil) != test.allowed {
			t.Errorf("%s to %s: %v, want allowed %v", test.from, test.to, err, test.allowed)
		}
	}
}

// tokenServer is a registry with bearer tokens, each good for a number of
// upload requests.
type tokenServer struct {
	next  http.Handler
	uses  int
	mutex sync.Mutex
	serial, left,
	renewed int
	password string
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path == "/token" {
		s.issue(w, req)
		return
	}
	s.mutex.Lock()
	good := req.Header.Get("Authorization") == fmt.Sprintf("Bearer token-%d", s.serial)
	if good && (req.Method == http.MethodPatch || req.Method == http.MethodPut) {
		if s.left--; s.left < 0 {
			good = false
		}
	}
	s.mutex.Unlock()
	if !good {
		_, _ = io.CopyN(io.Discard, req.Body, 10) // part of the body is gone when the answer comes
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="test"`, req.Host))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.next.ServeHTTP(w, req)
}

func (s *tokenServer) issue(w http.ResponseWriter, req *http.Request) {
	if _, password, _ := req.BasicAuth(); password != s.password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.mutex.Lock()
	s.serial++
	s.renewed++
	s.left = s.uses
	serial := s.serial
	s.mutex.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]string{"token": fmt.Sprintf("token-%d", serial)})
}

// TestTokenExpires lets the token end in the middle of an upload.
func TestTokenExpires(t *testing.T) {
	for _, large := range []int64{0, 1 << 30} {
		for _, uses := range []int{1, 2, 3} {
			server := &tokenServer{uses: uses, password: "secret"}
			network := line{}
			host := serve(t, embedded.Options{}, func(next http.Handler) http.Handler {
				server.next = network.middleware(next)
				return server
			})
			folder := t.TempDir()
			if err := Login(t.Context(), host, "ada", "secret", Options{DockerConfig: folder}); err != nil {
				t.Fatal(err)
			}
			r, pauses := chunked(t, host, Options{DockerConfig: folder})
			r.largeBlob = large
			data := pattern(10 * testChunk)
			if err := r.Put(t.Context(), describe(data), contenttest.Bytes(data)); err != nil {
				t.Fatalf("large above %d, %d uses: %v", large, uses, err)
			}
			mustHave(t, r, describe(data), true)
			if network.count() != int64(len(data)) || len(*pauses) != 0 {
				t.Errorf("large above %d, %d uses: %d bytes reached the registry and %d pauses were made, want %d and none", large, uses, network.count(), len(*pauses), len(data))
			}
		}
	}
}

// TestSecretsStayOut makes operations fail in many ways and looks for secrets
// in what is said.
func TestSecretsStayOut(t *testing.T) {
	const password = "hunter2-hunter2"
	secrets := []string{password, base64.StdEncoding.EncodeToString([]byte("ada:" + password)), "token-", "signature"}
	data := pattern(3 * testChunk)
	for _, status := range []int{0, 301, 400, 401, 403, 404, 500} {
		server := &tokenServer{uses: 100, password: password}
		faulty := false
		host := serve(t, embedded.Options{}, func(next http.Handler) http.Handler {
			server.next = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				switch {
				case !faulty:
					next.ServeHTTP(w, req)
				case status == 0:
					panic(http.ErrAbortHandler)
				default:
					w.Header().Set("Location", "http://127.0.0.1:1/?signature=abc")
					w.WriteHeader(status)
				}
			})
			return server
		})
		folder := t.TempDir()
		if err := Login(t.Context(), host, "ada", password, Options{DockerConfig: folder}); err != nil {
			t.Fatal(err)
		}
		r, _ := chunked(t, host, Options{DockerConfig: folder})
		mustHave(t, r, describe(data), false)
		faulty = true
		_, err1 := r.Has(t.Context(), describe(data))
		_, err2 := r.Open(t.Context(), describe(data), 0)
		_, err3 := r.Resolve(t.Context(), "v1")
		err4 := r.Put(t.Context(), describe(data), contenttest.Bytes(data))
		err5 := Login(t.Context(), host, "ada", "wrong-"+password, Options{DockerConfig: folder})
		for _, err := range []error{err1, err2, err3, err4, err5} {
			for _, secret := range secrets {
				if err != nil && strings.Contains(err.Error()+manifest.Hint(err), secret) {
					t.Errorf("status %d: error tells %q: %v", status, secret, err)
				}
			}
		}
		if err2 == nil || err5 == nil {
			t.Errorf("status %d: no error", status)
		}
		if status == 404 && !errors.Is(err2, content.ErrNotFound) {
			t.Errorf("error is %v, want ErrNotFound", err2)
		}
	}
}
