package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/content/contenttest"
)

// orasVersion is the release of oras that reads artifacts back.
const orasVersion = "v1.3.6"

// required reports whether the tests with programs of others must run; they
// are skipped where a program is missing otherwise.
func required() bool { return os.Getenv("REQUIRE_REGISTRY") == "1" }

// realRegistry starts Debian's docker-registry on a free port.
func realRegistry(t *testing.T) (host string) {
	t.Helper()
	program, err := exec.LookPath("docker-registry")
	if err != nil && required() {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip("docker-registry is not installed: apt-get install docker-registry")
	}
	host = freeAddress(t)
	folder := t.TempDir()
	config := filepath.Join(folder, "config.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", filepath.Join(folder, "data"), host)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	command := exec.Command(program, "serve", config)
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // killed below
		close(ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("docker-registry said: %s", output.String())
		}
	})
	waitFor(t, host, ended)
	return host
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// waitFor returns once the registry answers, and fails when it ended instead.
func waitFor(t *testing.T, host string, ended <-chan struct{}) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if resp, err := http.Get("http://" + host + "/v2/"); err == nil {
			resp.Body.Close()
			return
		}
		select {
		case <-ended:
			t.Fatal("docker-registry ended")
		case <-t.Context().Done():
			t.Fatal("docker-registry does not answer")
		case <-tick.C:
		}
	}
}

func TestRealRegistryConformance(t *testing.T) {
	host := realRegistry(t)
	for name, large := range map[string]int64{"whole": largeBlob, "chunks": -1} {
		t.Run(name, func(t *testing.T) {
			var opened atomic.Int64
			contenttest.Run(t, func(t *testing.T) content.Store {
				r, err := Open(Reference{Host: host, Repository: fmt.Sprintf("conformance/%s-%d", name, opened.Add(1))}, Options{CacheDir: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				r.sleep = func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }
				r.largeBlob, r.chunkSize = large, 64<<10
				return r
			})
		})
	}
}

// TestRealRegistryLargeBlob pushes a blob in chunks of the usual size, cuts
// the push in the middle, goes on with it, and pulls it back.
func TestRealRegistryLargeBlob(t *testing.T) {
	const size, stopAt = 80<<20 + 1, 50 << 20
	host := realRegistry(t)
	hash := manifest.NewHash()
	if _, err := io.Copy(hash, zeros(size)); err != nil {
		t.Fatal(err)
	}
	blob := manifest.Descriptor{MediaType: describe(nil).MediaType, Digest: manifest.FinishHash(hash), Size: size}
	source := func(_ context.Context, offset int64) (io.ReadCloser, error) {
		return io.NopCloser(zeros(size - offset)), nil
	}
	cache := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var sent atomic.Int64
	r, _ := repository(t, host, Options{CacheDir: cache, Progress: func(_ manifest.Descriptor, n int64) {
		if n >= stopAt {
			cancel()
		}
	}})
	if err := r.Put(ctx, blob, source); !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v, want context.Canceled", err)
	}
	connections := roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPatch {
			sent.Add(req.ContentLength)
		}
		return http.DefaultTransport.RoundTrip(req)
	})
	r, err := open(r.ref, Options{CacheDir: cache}, connections)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Put(t.Context(), blob, source); err != nil {
		t.Fatal(err)
	}
	if most := int64(size - stopAt + defaultChunkSize); sent.Load() > most {
		t.Errorf("the second push sent %d bytes, more than %d", sent.Load(), most)
	}
	for _, offset := range []int64{0, stopAt} {
		reader, err := r.Open(t.Context(), blob, offset)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, reader)
		if n != size-offset || err != nil {
			t.Errorf("read %d bytes from %d, %v", n, offset, err)
		}
		reader.Close()
	}
}

// TestRealRegistryOras reads with oras what this package pushed.
func TestRealRegistryOras(t *testing.T) {
	if !required() {
		t.Skip("downloads oras; REQUIRE_REGISTRY=1 runs it")
	}
	host := realRegistry(t)
	r, _ := repository(t, host, Options{})
	blob := contenttest.Push(t, r, "oras")
	if err := r.Tag(t.Context(), blob, "v1"); err != nil {
		t.Fatal(err)
	}
	data := readBack(t, r, blob)
	artifact, err := manifest.DecodeArtifact(data)
	if err != nil {
		t.Fatal(err)
	}
	oras := installOras(t)
	name := host + "/" + r.ref.Repository
	if got := oras("manifest", "fetch", "--plain-http", name+":v1"); !bytes.Equal(got, data) {
		t.Errorf("oras fetched manifest %s, want %s", got, data)
	}
	if got := oras("blob", "fetch", "--plain-http", "--output", "-", name+"@"+artifact.Layers[0].Digest.String()); string(got) != "weights of oras" {
		t.Errorf("oras fetched layer %q", got)
	}
	if got := oras("repo", "tags", "--plain-http", name); strings.TrimSpace(string(got)) != "v1" {
		t.Errorf("oras lists tags %q", got)
	}
}

func installOras(t *testing.T) func(args ...string) []byte {
	t.Helper()
	folder := t.TempDir()
	run := func(program string, args ...string) []byte {
		t.Helper()
		var complaint bytes.Buffer
		command := exec.CommandContext(t.Context(), program, args...)
		command.Dir = folder // outside any module
		command.Env = append(os.Environ(), "GOBIN="+folder, "GOFLAGS=-mod=mod", "GOWORK=off", "DOCKER_CONFIG="+folder)
		command.Stderr = &complaint
		output, err := command.Output()
		if err != nil {
			t.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, complaint.String())
		}
		return output
	}
	run("go", "install", "oras.land/oras/cmd/oras@"+orasVersion)
	return func(args ...string) []byte {
		t.Helper()
		return run(filepath.Join(folder, "oras"), args...)
	}
}
