//go:build unix

package verify

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A15: a named pipe is refused, and nobody waits for its other end.
func TestNamedPipe(t *testing.T) {
	for _, name := range []string{"weights/pipe", "weights/z.safetensors"} {
		vector{fails: fails("paths"), names: name + "  is a named pipe", disk: func(t *testing.T, root string) {
			if err := syscall.Mkfifo(filepath.Join(root, name), 0o644); err != nil {
				t.Skip(err)
			}
		}}.run(t)
	}
}

// A15: a socket is refused.
func TestSocket(t *testing.T) {
	vector{fails: fails("paths"), names: "weights/z.safetensors  is a socket", disk: func(t *testing.T, root string) {
		short, err := os.MkdirTemp("", "") // a socket's path has at most 108 bytes
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(short) })
		at := filepath.Join(short, "s")
		listener, err := net.Listen("unix", at)
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		if err := os.Rename(at, filepath.Join(root, "weights/z.safetensors")); err != nil {
			t.Skip(err)
		}
	}}.run(t)
}

// A15: a device is refused. Only root may make one; an artifact's are tested with
// the reader of artifacts.
func TestDevice(t *testing.T) {
	vector{fails: fails("paths"), names: "weights/z.safetensors  is a device", disk: func(t *testing.T, root string) {
		const null = 1<<8 | 3 // Linux's /dev/null
		if err := syscall.Mknod(filepath.Join(root, "weights/z.safetensors"), syscall.S_IFCHR|0o644, null); err != nil {
			t.Skip(err)
		}
	}}.run(t)
}

// A15: a hard link in a folder is the file itself under another name: it is read,
// counted and judged as a copy would be, and what it is called decides the same.
// A link of an artifact is tested with the reader of artifacts, which refuses it.
func TestHardLink(t *testing.T) {
	second := func(make func(from, to string) error) (linked string) {
		t.Helper()
		root := newFixture().write(t)
		if err := make(filepath.Join(root, ternaryShard), filepath.Join(root, "weights/z.safetensors")); err != nil {
			t.Skip(err)
		}
		r := run(t, root, Options{Profile: toyProfile(), Workers: 2})
		if r.Err() == nil {
			t.Errorf("a second shard of the same tensors passes\n%s", text(t, r))
		}
		data, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	copied := func(from, to string) error {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	}
	if a, b := second(os.Link), second(copied); a != b {
		t.Errorf("a hard link is judged otherwise than a copy:\n%s\n%s", a, b)
	}
}
