//go:build unix

package verify

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A15: a named pipe is refused, and nobody waits for its other end.
func TestNamedPipe(t *testing.T) {
	for _, name := range []string{"weights/pipe", "weights/z.safetensors"} {
		vector{fails: fails("paths"), names: name, disk: func(t *testing.T, root string) {
			if err := syscall.Mkfifo(filepath.Join(root, name), 0o644); err != nil {
				t.Skip(err)
			}
		}}.run(t)
	}
}
