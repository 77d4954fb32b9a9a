package content

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"slipway/manifest"
)

// flaky is a source whose reads break after every few bytes.
type flaky struct {
	*memory
	step  int   // bytes until a read breaks
	fail  error // what it breaks with
	opens atomic.Int32
}

func (f *flaky) Open(ctx context.Context, blob manifest.Descriptor, offset int64) (io.ReadCloser, error) {
	f.opens.Add(1)
	r, err := f.memory.Open(ctx, blob, offset)
	if err != nil || blob.Size != 5000 {
		return r, err
	}
	return io.NopCloser(io.MultiReader(io.LimitReader(r, int64(f.step)), brokenReader{f.fail})), nil
}

func bigArtifact(t *testing.T) *memory {
	m := newMemory()
	m.artifact(t, manifest.File{Path: "w", Mode: manifest.ModeFile}, []byte(strings.Repeat("0123456789", 500)), canonicalTar(t, map[string]string{"a": "x"}))
	return m
}

func TestCopyResumes(t *testing.T) {
	from := &flaky{memory: bigArtifact(t), step: 1000, fail: io.ErrUnexpectedEOF}
	to := newMemory()
	var moved int64
	d, err := Copy(t.Context(), from, "t", to, "u", CopyOptions{Workers: 1, Progress: func(_ manifest.Descriptor, n int64) { moved += n }})
	if err != nil {
		t.Fatal(err)
	}
	if to.tags["u"].Digest != d.Digest || len(to.blobs) != 4 || from.opens.Load() < 5 || moved < 5000 {
		t.Errorf("tag %v, %d blobs, %d opens, %d bytes", to.tags, len(to.blobs), from.opens.Load(), moved)
	}
	skipped := 0
	if _, err := Copy(t.Context(), from.memory, "t", to, "u", CopyOptions{Workers: 1, Skipped: func(manifest.Descriptor) { skipped++ }}); err != nil || skipped != 4 {
		t.Errorf("a repeated copy skipped %d blobs, %v", skipped, err)
	}
}

// What is read straight from a registry goes on like a copy does.
func TestOpenArtifactResumes(t *testing.T) {
	from := &flaky{memory: bigArtifact(t), step: 700, fail: io.ErrUnexpectedEOF}
	tree, err := OpenArtifact(t.Context(), from, "t", OriginReference, "shown")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	file, _ := tree.Lookup("w")
	r, err := tree.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil || len(data) != 5000 || from.opens.Load() < 8 {
		t.Errorf("%d bytes after %d opens: %v", len(data), from.opens.Load(), err)
	}
}

func TestCopyGivesUp(t *testing.T) {
	broken := errors.New("connection reset")
	from := &flaky{memory: bigArtifact(t), step: 0, fail: broken}
	to := newMemory()
	_, err := Copy(t.Context(), from, "t", to, "u", CopyOptions{Workers: 1})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "of") || len(to.tags) > 0 {
		t.Errorf("error %v, tags %v", err, to.tags)
	}
}

func TestCopyRefusesWrongBytes(t *testing.T) {
	from := bigArtifact(t)
	for digest, data := range from.blobs {
		if len(data) == 5000 {
			from.blobs[digest] = []byte(strings.Repeat("0123456788", 500))
		}
	}
	to := newMemory()
	_, err := Copy(t.Context(), from, "t", to, "u", CopyOptions{Remedy: "build again"})
	var integrity *IntegrityError
	if !errors.As(err, &integrity) || !strings.HasPrefix(err.Error(), "copy w: ") || manifest.Hint(err) != "build again" || len(to.tags) > 0 {
		t.Errorf("error %v, hint %q, tags %v", err, manifest.Hint(err), to.tags)
	}
}

func TestCopyStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	to := newMemory()
	from := &flaky{memory: bigArtifact(t), step: 10, fail: io.ErrUnexpectedEOF}
	if _, err := Copy(ctx, from, "t", to, "u", CopyOptions{Workers: 1}); err == nil || len(to.tags) > 0 {
		t.Errorf("a cancelled copy ended with %v, tags %v", err, to.tags)
	}
}
