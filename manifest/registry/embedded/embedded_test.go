package embedded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifest"
)

func newRegistry(t *testing.T, dir string) *Registry {
	t.Helper()
	r, err := New(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// ask sends one request; header is key, value, key, value ...
func ask(t *testing.T, r http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w
}

func mustAsk(t *testing.T, r http.Handler, want int, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	w := ask(t, r, method, path, body, header...)
	if w.Code != want {
		t.Fatalf("%s %s: status %d, want %d: %s", method, path, w.Code, want, w.Body)
	}
	return w
}

// code returns the code of an answer in the form of the specification.
func code(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var answer struct {
		Errors []struct{ Code, Message string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Errors) != 1 || answer.Errors[0].Message == "" {
		t.Fatalf("status %d with body %q", w.Code, w.Body)
	}
	return answer.Errors[0].Code
}

func digest(text string) string { return manifest.DigestBytes([]byte(text)).String() }

func put(t *testing.T, r http.Handler, name, body string) {
	t.Helper()
	mustAsk(t, r, 201, "POST", "/v2/"+name+"/blobs/uploads/?digest="+digest(body), body)
}

func TestUploadInChunks(t *testing.T) {
	r := newRegistry(t, t.TempDir())
	w := mustAsk(t, r, 202, "POST", "/v2/a/b/blobs/uploads/", "")
	at := w.Header().Get("Location")
	if got := w.Header().Get("Range"); got != "0-0" {
		t.Errorf("empty session says %q", got)
	}
	for _, step := range []struct {
		body, contentRange string
		status             int
		held               string
	}{
		{"hello", "0-4", 202, "0-4"},
		{"hello", "0-4", 416, "0-4"},
		{"xx", "6-7", 416, "0-4"},
		{" ", "", 202, "0-5"},
		{"worl", "6-10", 400, "0-5"},
		{"worldly", "6-10", 400, "0-5"},
		{"world", "x", 400, "0-5"},
		{"world", "10-6", 400, "0-5"},
		{"world", "6-10", 202, "0-10"},
	} {
		var header []string
		if step.contentRange != "" {
			header = []string{"Content-Range", step.contentRange}
		}
		w := ask(t, r, "PATCH", at, step.body, header...)
		if w.Code != step.status {
			t.Fatalf("PATCH %q %s: status %d, want %d: %s", step.body, step.contentRange, w.Code, step.status, w.Body)
		}
		if w.Code == 416 && (w.Header().Get("Range") != step.held || w.Header().Get("Location") != at) {
			t.Errorf("416 comes with %v", w.Header())
		}
		if got := mustAsk(t, r, 204, "GET", at, "").Header().Get("Range"); got != step.held {
			t.Errorf("after PATCH %q %s: %s is held, want %s", step.body, step.contentRange, got, step.held)
		}
	}
	mustAsk(t, r, 404, "HEAD", "/v2/a/b/blobs/"+digest("hello world"), "")
	w = mustAsk(t, r, 201, "PUT", at+"?digest="+digest("hello world!"), "!")
	if got, want := w.Header().Get("Location"), "/v2/a/b/blobs/"+digest("hello world!"); got != want {
		t.Errorf("Location is %s, want %s", got, want)
	}
	mustAsk(t, r, 404, "GET", at, "")
	w = mustAsk(t, r, 200, "GET", "/v2/a/b/blobs/"+digest("hello world!"), "")
	if w.Body.String() != "hello world!" || w.Header().Get("Docker-Content-Digest") != digest("hello world!") {
		t.Errorf("got %q with %v", w.Body, w.Header())
	}
	mustAsk(t, r, 404, "HEAD", "/v2/a/c/blobs/"+digest("hello world!"), "") // blobs belong to a repository
}

// brokenBody breaks off after its text.
type brokenBody struct{ io.Reader }

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestSessionSurvives breaks a body off, and goes on with another Registry on
// the same folder.
func TestSessionSurvives(t *testing.T) {
	dir := t.TempDir()
	r := newRegistry(t, dir)
	at := mustAsk(t, r, 202, "POST", "/v2/a/blobs/uploads/", "").Header().Get("Location")
	req := httptest.NewRequest("PATCH", at, brokenBody{strings.NewReader("hello ")})
	req.Header.Set("Content-Range", "0-10")
	req.ContentLength = 11
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	if w.Code != 400 {
		t.Fatalf("status %d, want 400", w.Code)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = newRegistry(t, dir)
	if got := mustAsk(t, r, 204, "GET", at, "").Header().Get("Range"); got != "0-5" {
		t.Fatalf("%s is held, want 0-5", got)
	}
	mustAsk(t, r, 202, "PATCH", at, "world", "Content-Range", "6-10")
	mustAsk(t, r, 201, "PUT", at+"?digest="+digest("hello world"), "")
	if got := mustAsk(t, r, 200, "GET", "/v2/a/blobs/"+digest("hello world"), "").Body.String(); got != "hello world" {
		t.Errorf("got %q", got)
	}
}

func TestDigestDiffers(t *testing.T) {
	dir := t.TempDir()
	r := newRegistry(t, dir)
	if got := code(t, mustAsk(t, r, 400, "POST", "/v2/a/blobs/uploads/?digest="+digest("x"), "y")); got != "DIGEST_INVALID" {
		t.Errorf("code is %s", got)
	}
	at := mustAsk(t, r, 202, "POST", "/v2/a/blobs/uploads/?mount="+digest("x")+"&from=b", "").Header().Get("Location")
	if got := code(t, mustAsk(t, r, 400, "PUT", at+"?digest="+digest("x"), "y")); got != "DIGEST_INVALID" {
		t.Errorf("code is %s", got)
	}
	mustAsk(t, r, 404, "GET", at, "")
	at = mustAsk(t, r, 202, "POST", "/v2/a/blobs/uploads/", "").Header().Get("Location")
	mustAsk(t, r, 400, "PUT", at, "") // no digest: the session stays
	mustAsk(t, r, 204, "DELETE", at, "")
	mustAsk(t, r, 404, "PATCH", at, "x")
	var files []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) > 0 {
		t.Errorf("files %v are left, %v", files, err)
	}
}

func TestRanges(t *testing.T) {
	r := newRegistry(t, t.TempDir())
	put(t, r, "a", "0123456789")
	put(t, r, "a", "")
	path := "/v2/a/blobs/" + digest("0123456789")
	for header, want := range map[string]struct {
		status             int
		body, contentRange string
	}{
		"":             {200, "0123456789", ""},
		"bytes=3-":     {206, "3456789", "bytes 3-9/10"},
		"bytes=3-4":    {206, "34", "bytes 3-4/10"},
		"bytes=-2":     {206, "89", "bytes 8-9/10"},
		"bytes=10-":    {416, "", "bytes */10"},
		"lines=1-2":    {416, "", ""},
		"bytes=5-1000": {206, "56789", "bytes 5-9/10"},
	} {
		w := ask(t, r, "GET", path, "", "Range", header)
		if w.Code != want.status || want.status < 400 && w.Body.String() != want.body || w.Header().Get("Content-Range") != want.contentRange {
			t.Errorf("%q: status %d, body %q, Content-Range %q", header, w.Code, w.Body, w.Header().Get("Content-Range"))
		}
	}
	if w := mustAsk(t, r, 200, "HEAD", path, ""); w.Header().Get("Content-Length") != "10" || w.Body.Len() != 0 {
		t.Errorf("HEAD answers %v and %d bytes", w.Header(), w.Body.Len())
	}
	if w := mustAsk(t, r, 200, "HEAD", "/v2/a/blobs/"+digest(""), ""); w.Header().Get("Content-Length") != "0" {
		t.Errorf("HEAD of no bytes answers %v", w.Header())
	}
}

// image returns a manifest of one config and one layer.
func image(config, layer, more string) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"c/c","digest":%q,"size":%d},"layers":[{"mediaType":"l/l","digest":%q,"size":%d}]%s}`,
		manifest.MediaTypeManifest, digest(config), len(config), digest(layer), len(layer), more)
}

func TestManifests(t *testing.T) {
	r := newRegistry(t, t.TempDir())
	put(t, r, "a", "config")
	put(t, r, "a", "layer")
	good := image("config", "layer", "")
	index := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":%q,"digest":%q,"size":%d}]}`, manifest.MediaTypeManifest, digest(good), len(good))
	for _, test := range []struct {
		name, ref, mediaType, body string
		status                     int
		code                       string
	}{
		{"index of what is not there", "v1", manifest.MediaTypeIndex, index, 400, "MANIFEST_BLOB_UNKNOWN"},
		{"by tag", "v1", manifest.MediaTypeManifest, good, 201, ""},
		{"by digest", digest(good), manifest.MediaTypeManifest, good, 201, ""},
		{"index without a media type", "V1", manifest.MediaTypeIndex, index, 201, ""},
		{"other digest", digest("x"), manifest.MediaTypeManifest, good, 400, "DIGEST_INVALID"},
		{"other media type", "v1", manifest.MediaTypeIndex, good, 400, "MANIFEST_INVALID"},
		{"absent layer", "v1", manifest.MediaTypeManifest, image("config", "other", ""), 400, "MANIFEST_BLOB_UNKNOWN"},
		{"absent config", "v1", manifest.MediaTypeManifest, image("other", "layer", ""), 400, "MANIFEST_BLOB_UNKNOWN"},
		{"other size", "v1", manifest.MediaTypeManifest, strings.Replace(good, `"size":5`, `"size":6`, 1), 400, "SIZE_INVALID"},
		{"layer without a digest", "v1", manifest.MediaTypeManifest, strings.Replace(good, `"digest"`, `"digits"`, 2), 400, "MANIFEST_INVALID"},
		{"not JSON", "v1", manifest.MediaTypeManifest, "{", 400, "MANIFEST_INVALID"},
		{"neither of the two", "v1", manifest.MediaTypeManifest, "{}", 400, "MANIFEST_INVALID"},
		{"too large", "v1", manifest.MediaTypeManifest, good + strings.Repeat(" ", manifest.MaxManifestBytes), 413, "SIZE_INVALID"},
	} {
		w := ask(t, r, "PUT", "/v2/a/manifests/"+test.ref, test.body, "Content-Type", test.mediaType)
		if w.Code != test.status || test.code != "" && code(t, w) != test.code {
			t.Errorf("%s: status %d, body %s", test.name, w.Code, w.Body)
		}
	}
	for _, ref := range []string{"v1", digest(good)} {
		w := mustAsk(t, r, 200, "GET", "/v2/a/manifests/"+ref, "")
		if w.Body.String() != good || w.Header().Get("Content-Type") != manifest.MediaTypeManifest || w.Header().Get("Docker-Content-Digest") != digest(good) {
			t.Errorf("%s: %s with %v", ref, w.Body, w.Header())
		}
		if w := mustAsk(t, r, 200, "HEAD", "/v2/a/manifests/"+ref, ""); w.Body.Len() != 0 || w.Header().Get("Content-Length") != fmt.Sprint(len(good)) {
			t.Errorf("HEAD %s: %d bytes with %v", ref, w.Body.Len(), w.Header())
		}
	}
	if got := mustAsk(t, r, 200, "GET", "/v2/a/manifests/V1", "").Body.String(); got != index {
		t.Errorf("V1 is %s", got)
	}
	mustAsk(t, r, 404, "GET", "/v2/a/manifests/v2", "")
	mustAsk(t, r, 404, "GET", "/v2/a/manifests/"+digest("x"), "")
}

func TestListings(t *testing.T) {
	r := newRegistry(t, t.TempDir())
	mustAsk(t, r, 404, "GET", "/v2/a/tags/list", "")
	put(t, r, "a", "config")
	put(t, r, "a", "layer")
	subject := image("config", "layer", "")
	for _, tag := range []string{"b", "a", "c"} {
		mustAsk(t, r, 201, "PUT", "/v2/a/manifests/"+tag, subject, "Content-Type", manifest.MediaTypeManifest)
	}
	for query, want := range map[string]string{"": `["a","b","c"]`, "?n=2": `["a","b"]`, "?n=2&last=b": `["c"]`, "?last=c": `[]`, "?n=0": `[]`} {
		w := mustAsk(t, r, 200, "GET", "/v2/a/tags/list"+query, "")
		if got := w.Body.String(); got != `{"name":"a","tags":`+want+`}` {
			t.Errorf("%s: %s", query, got)
		}
		if link := w.Header().Get("Link"); (link == `</v2/a/tags/list?last=b&n=2>; rel="next"`) != (query == "?n=2") {
			t.Errorf("%s: Link is %q", query, link)
		}
	}
	mustAsk(t, r, 400, "GET", "/v2/a/tags/list?n=-1", "")

	if got := mustAsk(t, r, 200, "GET", "/v2/a/referrers/"+digest(subject), "").Body.String(); !strings.Contains(got, `"manifests":[]`) {
		t.Errorf("referrers before any: %s", got)
	}
	more := fmt.Sprintf(`,"subject":{"mediaType":%q,"digest":%q,"size":%d},"annotations":{"k":"v"}`, manifest.MediaTypeManifest, digest(subject), len(subject))
	signature := image("config", "layer", more+`,"artifactType":"sig/sig"`)
	plain := image("config", "layer", more)
	for _, body := range []string{signature, plain} {
		w := mustAsk(t, r, 201, "PUT", "/v2/a/manifests/"+digest(body), body, "Content-Type", manifest.MediaTypeManifest)
		if got := w.Header().Get("OCI-Subject"); got != digest(subject) {
			t.Errorf("OCI-Subject is %q", got)
		}
	}
	for query, want := range map[string]map[string]string{
		"":                      {digest(signature): "sig/sig", digest(plain): "c/c"},
		"?artifactType=sig/sig": {digest(signature): "sig/sig"},
		"?artifactType=none":    {},
	} {
		w := mustAsk(t, r, 200, "GET", "/v2/a/referrers/"+digest(subject)+query, "")
		var index struct {
			MediaType string
			Manifests []referrer
		}
		if err := json.Unmarshal(w.Body.Bytes(), &index); err != nil {
			t.Fatal(err)
		}
		if w.Header().Get("Content-Type") != manifest.MediaTypeIndex || len(index.Manifests) != len(want) || (query != "") != (w.Header().Get("OCI-Filters-Applied") != "") {
			t.Errorf("%s: %s with %v", query, w.Body, w.Header())
		}
		for _, got := range index.Manifests {
			if want[got.Digest.String()] != got.ArtifactType || got.Annotations["k"] != "v" || got.Size == 0 {
				t.Errorf("%s: %+v", query, got)
			}
		}
	}
}

// TestPaths asks for names that follow no grammar; the folder must stay as it
// is.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "registry")
	r := newRegistry(t, inside)
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/":                            404,
		"/v1/":                         404,
		"/v2/a":                        404,
		"/v2/a/tags":                   404,
		"/v2/_catalog":                 404,
		"/v2//tags/list":               400,
		"/v2/A/tags/list":              400,
		"/v2/../registry/tags/list":    400,
		"/v2/a/../../secret/tags/list": 400,
		"/v2/_blobs/tags/list":         400,
		"/v2/a/_blobs/tags/list":       400,
		"/v2/a%2f..%2fb/tags/list":     400,
		"/v2/" + strings.Repeat("a", 256) + "/tags/list": 400,
		"/v2/a/blobs/sha256:abc":                         400,
		"/v2/a/blobs/sha512:" + strings.Repeat("a", 128): 400,
		"/v2/a/blobs/..":                                 400,
		"/v2/a/blobs/uploads/..":                         404,
		"/v2/a/blobs/uploads/" + strings.Repeat("0", 32): 404,
		"/v2/a/manifests/..":                             400,
		"/v2/a/manifests/.x":                             400,
		"/v2/a/manifests/" + strings.Repeat("x", 129):    400,
		"/v2/a/referrers/x":                              400,
		"/v2/a/blobs/uploads/..%2f..%2f..%2fsecret":      404,
		"/v2/blobs/uploads/tags/list":                    404,
		"/v2/a/blobs/" + digest("x"):                     404,
		"/v2/blobs/blobs/" + digest("x"):                 404,
	} {
		w := ask(t, r, "GET", path, "")
		if w.Code != want {
			t.Errorf("%s: status %d, want %d: %s", path, w.Code, want, w.Body)
		}
		code(t, w)
	}
	mustAsk(t, r, 200, "GET", "/v2/", "")
	for path, methods := range map[string]string{
		"/v2/a/blobs/" + digest("x"): "GET, HEAD", "/v2/a/manifests/v1": "GET, HEAD, PUT",
		"/v2/a/tags/list": "GET", "/v2/a/referrers/" + digest("x"): "GET", "/v2/a/blobs/uploads/": "POST",
	} {
		if w := mustAsk(t, r, 405, "DELETE", path, ""); w.Header().Get("Allow") != methods {
			t.Errorf("%s: Allow is %q", path, w.Header().Get("Allow"))
		}
	}
	if entries, err := os.ReadDir(inside); err != nil || len(entries) > 0 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

// TestLinkOutside puts a link into the folder that leads out of it.
func TestLinkOutside(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	r := newRegistry(t, dir)
	if err := os.Symlink(outside, filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if w := ask(t, r, "POST", "/v2/a/blobs/uploads/?digest="+digest("x"), "x"); w.Code != 500 || strings.Contains(w.Body.String(), outside) {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside are %v, %v", entries, err)
	}
}

func TestAuthentication(t *testing.T) {
	r, err := New(t.TempDir(), Options{Username: "ada", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, test := range []struct {
		user, password string
		want           int
	}{{"", "", 401}, {"ada", "wrong", 401}, {"eve", "secret", 401}, {"ada\x00secret", "", 401}, {"ada", "secret", 200}} {
		req := httptest.NewRequest("GET", "/v2/", nil)
		if test.user != "" {
			req.SetBasicAuth(test.user, test.password)
		}
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != test.want || (w.Header().Get("WWW-Authenticate") != "") != (test.want == 401) {
			t.Errorf("%q: status %d with %v", test.user, w.Code, w.Header())
		}
	}
}

func TestStart(t *testing.T) {
	address, stop, err := Start(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + address + "/v2/")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || !bytes.Equal(body, []byte("{}")) {
		t.Errorf("status %d, body %q, %v", resp.StatusCode, body, err)
	}
	stop()
	if resp, err := http.Get("http://" + address + "/v2/"); err == nil {
		resp.Body.Close()
		t.Error("it still answers")
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"a/b/blobs/uploads/", "a/blobs/" + digest("x"), "a/manifests/v1", "a/tags/list", "a/referrers/" + digest("x"), "../x/tags/list"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		to, err := parseTarget(path)
		if err != nil {
			return
		}
		if !filepath.IsLocal(filepath.FromSlash(to.blobs())) || strings.Contains("/"+to.name, "/_") || strings.Contains(to.tag+to.upload, "/") {
			t.Fatalf("%q is %+v", path, to)
		}
	})
}
