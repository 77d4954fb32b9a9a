// Package contenttest is the conformance suite of content.Store: what every
// store promises, asked of a store through its interface alone.
package contenttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"slipway/manifest"
	"slipway/manifest/content"
)

// Run asks the stores that open returns. Each subtest opens one of its own,
// which is empty or at least holds nothing that another subtest put there.
func Run(t *testing.T, open func(t *testing.T) content.Store) {
	for _, test := range []struct {
		name string
		ask  func(t *testing.T, store content.Store)
	}{
		{"put and read", putAndRead},
		{"absent", absent},
		{"read from an offset", readFromOffset},
		{"empty blob", emptyBlob},
		{"put twice", putTwice},
		{"put at once", putAtOnce},
		{"faulty sources", faultySources},
		{"heal after a fault", healAfterFault},
		{"resolve and tag", resolveAndTag},
		{"tag again", tagAgain},
		{"tag of an absent manifest", tagAbsent},
		{"cancelled", cancelled},
	} {
		t.Run(test.name, func(t *testing.T) { test.ask(t, open(t)) })
	}
}

// Bytes returns a source that yields data.
func Bytes(data []byte) content.Source {
	return func(_ context.Context, offset int64) (io.ReadCloser, error) {
		if offset < 0 || offset > int64(len(data)) {
			return nil, fmt.Errorf("offset %d is outside %d bytes", offset, len(data))
		}
		return io.NopCloser(bytes.NewReader(data[offset:])), nil
	}
}

// Push puts a small artifact whose content depends on seed, blobs before the
// manifest, and returns the manifest's descriptor.
func Push(t *testing.T, store content.Store, seed string) manifest.Descriptor {
	t.Helper()
	put := func(blob manifest.Descriptor, data []byte) {
		t.Helper()
		if err := store.Put(t.Context(), blob, Bytes(data)); err != nil {
			t.Fatalf("put %s: %v", blob.MediaType, err)
		}
	}
	config := []byte(`{"seed":"` + seed + `"}`)
	weights := []byte("weights of " + seed)
	artifact := manifest.Artifact{
		Config: manifest.DescribeBytes(manifest.MediaTypeConfig, config),
		Layers: []manifest.Descriptor{manifest.DescribeBytes(manifest.LayerMediaType(manifest.KindWeight, manifest.EncodingRaw), weights)},
	}
	put(artifact.Config, config)
	put(artifact.Layers[0], weights)
	data, err := artifact.Encode()
	if err != nil {
		t.Fatal(err)
	}
	blob := manifest.DescribeBytes(manifest.MediaTypeManifest, data)
	put(blob, data)
	return blob
}

func layer(data []byte) manifest.Descriptor {
	return manifest.DescribeBytes(manifest.LayerMediaType(manifest.KindWeight, manifest.EncodingRaw), data)
}

// pattern returns n bytes without a short period.
func pattern(n int) []byte {
	data := make([]byte, n)
	state := uint32(n) + 1
	for i := range data {
		state = state*1664525 + 1013904223
		data[i] = byte(state >> 24)
	}
	return data
}

func mustHave(t *testing.T, store content.Store, blob manifest.Descriptor, want bool) {
	t.Helper()
	got, err := store.Has(t.Context(), blob)
	if err != nil {
		t.Fatalf("has: %v", err)
	}
	if got != want {
		t.Fatalf("has is %v, want %v", got, want)
	}
}

func mustRead(t *testing.T, store content.Store, blob manifest.Descriptor, offset int64, want []byte) {
	t.Helper()
	reader, err := store.Open(t.Context(), blob, offset)
	if err != nil {
		t.Fatalf("open from %d: %v", offset, err)
	}
	defer reader.Close()
	got, err := io.ReadAll(reader)
	if err != nil {
		t.Fatalf("read from %d: %v", offset, err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("read from %d: %d bytes that differ from the %d put", offset, len(got), len(want))
	}
}

func putAndRead(t *testing.T, store content.Store) {
	for _, size := range []int{1, 2, 511, 70_000, 1 << 20} {
		data := pattern(size)
		blob := layer(data)
		mustHave(t, store, blob, false)
		if err := store.Put(t.Context(), blob, Bytes(data)); err != nil {
			t.Fatalf("put %d bytes: %v", size, err)
		}
		mustHave(t, store, blob, true)
		mustRead(t, store, blob, 0, data)
	}
}

func absent(t *testing.T, store content.Store) {
	blob := layer([]byte("never put"))
	mustHave(t, store, blob, false)
	for _, offset := range []int64{0, 3} {
		reader, err := store.Open(t.Context(), blob, offset)
		if err == nil {
			reader.Close()
		}
		if !errors.Is(err, content.ErrNotFound) {
			t.Errorf("open from %d: error is %v, want ErrNotFound", offset, err)
		}
	}
	for _, name := range []string{"never-tagged", blob.Digest.String()} {
		if _, err := store.Resolve(t.Context(), name); !errors.Is(err, content.ErrNotFound) {
			t.Errorf("resolve %s: error is %v, want ErrNotFound", name, err)
		}
	}
}

func readFromOffset(t *testing.T, store content.Store) {
	data := pattern(100_003)
	blob := layer(data)
	if err := store.Put(t.Context(), blob, Bytes(data)); err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{0, 1, 65_536, blob.Size - 1, blob.Size} {
		mustRead(t, store, blob, offset, data[offset:])
	}
	for _, offset := range []int64{-1, blob.Size + 1} {
		if reader, err := store.Open(t.Context(), blob, offset); err == nil {
			reader.Close()
			t.Errorf("open from %d: no error", offset)
		}
	}
}

// emptyBlob lets a store refuse a blob of no bytes, as some registries do, but
// not half take it.
func emptyBlob(t *testing.T, store content.Store) {
	blob := layer(nil)
	if err := store.Put(t.Context(), blob, Bytes(nil)); err != nil {
		t.Logf("refused: %v", err)
		mustHave(t, store, blob, false)
		return
	}
	mustHave(t, store, blob, true)
	mustRead(t, store, blob, 0, nil)
}

func putTwice(t *testing.T, store content.Store) {
	data := pattern(4_096)
	for range 2 {
		if err := store.Put(t.Context(), layer(data), Bytes(data)); err != nil {
			t.Fatal(err)
		}
	}
	mustRead(t, store, layer(data), 0, data)
}

func putAtOnce(t *testing.T, store content.Store) {
	data := pattern(300_000)
	errs := make([]error, 4)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = store.Put(t.Context(), layer(data), Bytes(data)) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	mustRead(t, store, layer(data), 0, data)
}

var errSource = errors.New("the disk went away")

// faults are sources that do not yield the blob, and the error that tells.
func faults(data []byte) map[string]struct {
	source    content.Source
	integrity bool
} {
	flipped := bytes.Clone(data)
	flipped[len(flipped)/2] ^= 1
	broken := func(_ context.Context, offset int64) (io.ReadCloser, error) {
		half := bytes.NewReader(data[min(offset, int64(len(data)/2)) : len(data)/2])
		return io.NopCloser(io.MultiReader(half, failing{})), nil
	}
	closed := func(context.Context, int64) (io.ReadCloser, error) { return nil, errSource }
	type fault = struct {
		source    content.Source
		integrity bool
	}
	return map[string]fault{
		"wrong bytes":    {Bytes(flipped), true},
		"one byte short": {Bytes(data[:len(data)-1]), true},
		"no bytes":       {Bytes(nil), true},
		"one byte long":  {Bytes(append(bytes.Clone(data), 0)), true},
		"breaks off":     {broken, false},
		"does not open":  {closed, false},
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errSource }

func faultySources(t *testing.T, store content.Store) {
	data := pattern(200_000)
	blob := layer(data)
	for name, fault := range faults(data) {
		t.Run(name, func(t *testing.T) { putFaulty(t, store, blob, fault.source, fault.integrity) })
	}
	// What a wrong source did yield is not there under its own digest either.
	flipped := bytes.Clone(data)
	flipped[len(flipped)/2] ^= 1
	mustHave(t, store, layer(flipped), false)
}

func putFaulty(t *testing.T, store content.Store, blob manifest.Descriptor, source content.Source, integrity bool) {
	err := store.Put(t.Context(), blob, source)
	if err == nil {
		t.Fatal("put: no error")
	}
	if !strings.Contains(err.Error(), blob.Digest.Short()) {
		t.Errorf("error does not name the blob: %v", err)
	}
	if _, ok := errors.AsType[*content.IntegrityError](err); ok != integrity {
		t.Errorf("error is %v, an IntegrityError: %v, want %v", err, ok, integrity)
	}
	if !integrity && !errors.Is(err, errSource) {
		t.Errorf("error %v does not wrap the source's", err)
	}
	mustHave(t, store, blob, false)
	if reader, err := store.Open(t.Context(), blob, 0); !errors.Is(err, content.ErrNotFound) {
		if err == nil {
			reader.Close()
		}
		t.Errorf("open after the fault: error is %v, want ErrNotFound", err)
	}
}

func healAfterFault(t *testing.T, store content.Store) {
	data := pattern(150_000)
	for name, fault := range faults(data) {
		if err := store.Put(t.Context(), layer(data), fault.source); err == nil {
			t.Fatalf("%s: no error", name)
		}
	}
	if err := store.Put(t.Context(), layer(data), Bytes(data)); err != nil {
		t.Fatalf("put after the faults: %v", err)
	}
	mustRead(t, store, layer(data), 0, data)
}

func mustResolve(t *testing.T, store content.Store, name string, want manifest.Descriptor) {
	t.Helper()
	got, err := store.Resolve(t.Context(), name)
	if err != nil {
		t.Fatalf("resolve %s: %v", name, err)
	}
	if got.MediaType != want.MediaType || got.Digest != want.Digest || got.Size != want.Size {
		t.Fatalf("resolve %s: got %+v, want %+v", name, got, want)
	}
}

func resolveAndTag(t *testing.T, store content.Store) {
	blob := Push(t, store, "one")
	mustHave(t, store, blob, true)
	mustResolve(t, store, blob.Digest.String(), blob)
	if _, err := store.Resolve(t.Context(), "v1"); !errors.Is(err, content.ErrNotFound) {
		t.Fatalf("resolve before tag: error is %v, want ErrNotFound", err)
	}
	for _, name := range []string{"v1", "V1", "release_1.0-rc.1"} {
		if err := store.Tag(t.Context(), blob, name); err != nil {
			t.Fatalf("tag %s: %v", name, err)
		}
		mustResolve(t, store, name, blob)
	}
	reader, err := store.Open(t.Context(), blob, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	data, err := content.ReadAll(reader, blob, manifest.MaxManifestBytes)
	if err != nil {
		t.Fatal(err)
	}
	mustRead(t, store, blob, 7, data[7:])
}

func tagAgain(t *testing.T, store content.Store) {
	first, second := Push(t, store, "first"), Push(t, store, "second")
	for _, blob := range []manifest.Descriptor{first, second, second, first} {
		if err := store.Tag(t.Context(), blob, "latest"); err != nil {
			t.Fatal(err)
		}
		mustResolve(t, store, "latest", blob)
	}
	mustResolve(t, store, second.Digest.String(), second)
}

func tagAbsent(t *testing.T, store content.Store) {
	blob := manifest.DescribeBytes(manifest.MediaTypeManifest, []byte("{}"))
	if err := store.Tag(t.Context(), blob, "v1"); err == nil {
		t.Fatal("tag: no error")
	}
	if _, err := store.Resolve(t.Context(), "v1"); !errors.Is(err, content.ErrNotFound) {
		t.Fatalf("resolve: error is %v, want ErrNotFound", err)
	}
}

func cancelled(t *testing.T, store content.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	data := pattern(1_000)
	if err := store.Put(ctx, layer(data), Bytes(data)); !errors.Is(err, context.Canceled) {
		t.Errorf("put: error is %v, want context.Canceled", err)
	}
	mustHave(t, store, layer(data), false)

	// A context that ends while the source is read.
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	source := func(context.Context, int64) (io.ReadCloser, error) {
		half := bytes.NewReader(data[:len(data)/2])
		return io.NopCloser(io.MultiReader(half, cancelling{cancel}, bytes.NewReader(data[len(data)/2:]))), nil
	}
	if err := store.Put(ctx, layer(data), source); !errors.Is(err, context.Canceled) {
		t.Errorf("put cut short: error is %v, want context.Canceled", err)
	}
	mustHave(t, store, layer(data), false)
}

// cancelling is an empty part of a source that cancels when it is reached.
type cancelling struct{ cancel context.CancelFunc }

func (c cancelling) Read([]byte) (int, error) {
	c.cancel()
	return 0, io.EOF
}
