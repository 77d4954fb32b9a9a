package probe

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets a test start this program again inside a name space of its own,
// where it says how a folder behaves.
func TestMain(m *testing.M) {
	if folder := os.Getenv("PROBE_TRY"); folder != "" {
		readOnly, noexec := try(folder)
		switch {
		case readOnly == nil:
			os.Stdout.WriteString("takes no file")
		case *readOnly:
			os.Stdout.WriteString("read-only")
		case noexec == nil:
			os.Stdout.WriteString("unknown")
		case *noexec:
			os.Stdout.WriteString("noexec")
		default:
			os.Stdout.WriteString("free")
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestTry(t *testing.T) {
	for options, want := range map[string]string{"rw": "free", "noexec": "noexec", "ro": "read-only"} {
		t.Run(options, func(t *testing.T) {
			folder := t.TempDir()
			command := exec.Command("unshare", "-rm", "sh", "-c", `mount -t tmpfs -o "$1" none "$2" && exec "$3"`, "sh", options, folder, os.Args[0])
			command.Env = append(os.Environ(), "PROBE_TRY="+folder)
			out, err := command.CombinedOutput()
			if err != nil && (strings.Contains(string(out), "unshare") || strings.Contains(string(out), "mount") || len(out) == 0) {
				t.Skipf("mounts are not to be had here: %s", out)
			}
			if string(out) != want {
				t.Errorf("%q (%v), want %q", out, err, want)
			}
		})
	}
}
