package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// largeModel writes a bundle whose one shard is above smallWork, so that
// progress is shown. It takes no room on the disk.
func largeModel(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	const size = smallWork + 1<<20
	header, err := safetensors.EncodeHeader([]safetensors.Tensor{{Name: "model.norm.weight", DType: safetensors.U8, Shape: []int64{size}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	shard := filepath.Join(folder, "model.safetensors")
	text := "slipway = 1\nbundle \"sample\" {\n  profile = \"practice\"\n}\nweights \"language\" {\n  from = \".\"\n}\n"
	if err := errors.Join(
		os.WriteFile(shard, header, 0o644), os.Truncate(shard, int64(len(header))+size),
		os.WriteFile(filepath.Join(folder, "bundle.hcl"), []byte(text), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestProgressStaysOffStdout(t *testing.T) {
	folder := largeModel(t)
	for _, test := range []struct {
		name     string
		terminal bool
		mode     string
	}{
		{"terminal", true, "auto"}, {"terminal, plain", true, "plain"}, {"terminal, none", true, "none"},
		{"pipe", false, "auto"}, {"pipe, plain", false, "plain"}, {"pipe, none", false, "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := Run(context.Background(), Environment{
				Args:   []string{"--progress", test.mode, "build", folder, "--out", filepath.Join(t.TempDir(), "out")},
				Stdout: &stdout, Stderr: &stderr, Terminal: test.terminal,
			})
			if code != ExitDone || strings.Count(stdout.String(), "\n") != 2 || strings.ContainsAny(stdout.String(), "\r\x1b") {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, &stdout, &stderr)
			}
			if !test.terminal && strings.ContainsAny(stderr.String(), "\r\x1b") {
				t.Errorf("a pipe got %q", &stderr)
			}
		})
	}
}

func TestInterruptedBeforeItBegins(t *testing.T) {
	folder := largeModel(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupted"))
	for _, args := range [][]string{
		{"plan", folder},
		{"build", folder, "--out", filepath.Join(folder, "out")},
		{"build", folder, "--layout", filepath.Join(folder, "layout")},
		{"verify", "--profile", "practice", folder},
		{"push", filepath.Join(folder, "bundle.hcl"), "127.0.0.1:1/sample:one"},
		{"pull", "127.0.0.1:1/sample:one", filepath.Join(folder, "layout")},
		{"unpack", folder, filepath.Join(folder, "out")},
		{"inspect", "127.0.0.1:1/sample:one"},
		{"diff", folder, folder},
		{"rehearse", folder},
	} {
		var stdout, stderr bytes.Buffer
		code := Run(ctx, Environment{Args: args, Stdout: &stdout, Stderr: &stderr, TempDir: t.TempDir()})
		if want := "slipway " + args[0] + ": interrupted\n"; code != ExitInterrupted || !strings.HasSuffix(stderr.String(), want) {
			t.Errorf("%q: exit code %d, stderr %q", args, code, &stderr)
		}
	}
	for _, name := range []string{"out", "layout"} {
		if _, err := os.Lstat(filepath.Join(folder, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was left behind: %v", name, err)
		}
	}
}

func TestClassify(t *testing.T) {
	t.Chdir(t.TempDir())
	digest := "sha256:" + strings.Repeat("0", 64)
	if err := errors.Join(
		os.MkdirAll("folder", 0o755), os.MkdirAll("layout", 0o755), os.MkdirAll("odd@a:b", 0o755),
		os.WriteFile("layout/oci-layout", nil, 0o644), os.WriteFile("odd@a:b/oci-layout", nil, 0o644),
		os.WriteFile("file", nil, 0o644), os.WriteFile("folder:one", nil, 0o644),
	); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		text, path, name string
		kind             content.Origin
	}{
		{"file", "file", "", content.Origin("other")},
		{"absent.hcl", "absent.hcl", "", originPlan},
		{"folder", "folder", "", content.OriginFolder},
		{"folder/", "folder/", "", content.OriginFolder},
		{"folder:one", "folder:one", "", content.Origin("other")},
		{"folder:two", "folder:two", "", content.OriginReference},
		{"layout", "layout", "", content.OriginLayout},
		{"layout:one", "layout", "one", content.OriginLayout},
		{"layout@" + digest, "layout", digest, content.OriginLayout},
		{"odd@a:b", "odd@a:b", "", content.OriginLayout},
		{"odd@a:b:one", "odd@a:b", "one", content.OriginLayout},
		{"odd@a:b@" + digest, "odd@a:b", digest, content.OriginLayout},
		{"registry.example/layout:one", "registry.example/layout:one", "", content.OriginReference},
		{"localhost:5000/a@" + digest, "localhost:5000/a@" + digest, "", content.OriginReference},
	} {
		path, name, kind := classify(test.text)
		if path != test.path || name != test.name || kind != test.kind {
			t.Errorf("classify(%q) = %q, %q, %q; want %q, %q, %q", test.text, path, name, kind, test.path, test.name, test.kind)
		}
	}
}

func TestSize(t *testing.T) {
	for _, test := range []struct {
		bytes int64
		want  string
	}{
		{0, "0 bytes"}, {1023, "1023 bytes"}, {1024, "1.0 KiB"}, {1536, "1.5 KiB"},
		{1 << 20, "1.0 MiB"}, {5 << 30, "5.0 GiB"}, {3 << 40, "3.0 TiB"}, {1 << 52, "4096.0 TiB"},
	} {
		if got := size(test.bytes); got != test.want {
			t.Errorf("size(%d) = %q, want %q", test.bytes, got, test.want)
		}
	}
}
