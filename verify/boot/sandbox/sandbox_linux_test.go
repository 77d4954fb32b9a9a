package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/verify/boot/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	if part := parts[os.Getenv(partVariable)]; part != nil {
		os.Exit(part())
	}
	os.Exit(m.Run())
}

// patience is how long anything here may take before a test gives up on it.
const patience = 30 * time.Second

// submission makes a folder with files that anybody may read.
func submission(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// skip skips a test that this machine cannot run, or fails it where
// REQUIRE_SANDBOX=1 promises that it can.
func skip(t *testing.T, why any) {
	t.Helper()
	if os.Getenv("REQUIRE_SANDBOX") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func open(t *testing.T, o sandbox.Options) *sandbox.Sandbox {
	t.Helper()
	if o.Submission == "" {
		o.Submission = submission(t, nil)
	}
	s, err := sandbox.Open(context.Background(), o)
	if errors.Is(err, sandbox.ErrUnsupported) {
		skip(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// script runs a shell script inside and returns what it printed and how it ended.
func script(t *testing.T, s *sandbox.Sandbox, text string, env ...string) (string, error) {
	t.Helper()
	var output bytes.Buffer
	p, err := s.Start(sandbox.Command{Argv: []string{"/bin/sh", "-c", text}, Env: append([]string{"PATH=/usr/local/bin:/usr/bin:/bin"}, env...), Output: &output})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Exited():
	case <-time.After(patience):
		t.Fatalf("the script did not end: %s", text)
	}
	return strings.TrimSpace(output.String()), p.Err()
}
