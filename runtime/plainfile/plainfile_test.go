package plainfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	folder := t.TempDir()
	name := func(base string) string { return filepath.Join(folder, base) }
	for base, size := range map[string]int{"empty": 0, "full": 1000, "large": 1001} {
		if err := os.WriteFile(name(base), []byte(strings.Repeat("x", size)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(name("pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"full", "pipe"} {
		if err := os.Symlink(base, name("to-"+base)); err != nil {
			t.Fatal(err)
		}
	}
	for base, want := range map[string]string{
		"empty": "", "full": "", "to-full": "",
		"large":   "read " + name("large") + ": has more than 1000 bytes",
		"pipe":    "open " + name("pipe") + ": is not a regular file",
		"to-pipe": "open " + name("to-pipe") + ": is not a regular file",
		".":       "open " + name(".") + ": is not a regular file",
	} {
		data, err := Read(name(base), 1000)
		if want == "" && (err != nil || strings.Trim(string(data), "x") != "" || (len(data) == 1000) != (base != "empty")) {
			t.Errorf("%s: %d bytes, %v", base, len(data), err)
		}
		if want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: got %v, want %s", base, err, want)
		}
	}
	if data, err := Read("/dev/zero", 1000); err == nil {
		t.Errorf("a device: %d bytes", len(data))
	}
	if _, err := Read(name("missing"), 1000); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "open ") {
		t.Errorf("missing: %v", err)
	}
}
