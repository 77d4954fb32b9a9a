package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// The builder of this test makes of a source its digest, so that a program fits
// its source when it is, for once, the source itself.
func TestRebuild(t *testing.T) {
	honest := func(_ context.Context, source io.Reader) (manifest.Digest, error) {
		data, err := io.ReadAll(source)
		return manifest.DigestBytes(data), err
	}
	broken := func(context.Context, io.Reader) (manifest.Digest, error) {
		return manifest.Digest{}, errors.New("main.go:3: undefined: x")
	}
	for _, tc := range []struct {
		name    string
		files   map[string]string
		rebuild func(context.Context, io.Reader) (manifest.Digest, error)
		status  report.Status
		says    string
	}{
		{"as built", map[string]string{"serve": "a", "source.tar": "a"}, honest, report.Pass, "byte for byte"},
		{"another program", map[string]string{"serve": "b", "source.tar": "a"}, honest, report.Fail, "is not what runtime/source.tar builds"},
		{"no source", map[string]string{"serve": "a"}, honest, report.Fail, "without its source"},
		{"does not build", map[string]string{"serve": "a", "source.tar": "a"}, broken, report.Fail, "undefined: x"},
		{"machine without modules", map[string]string{"serve": "a", "source.tar": "a"}, func(context.Context, io.Reader) (manifest.Digest, error) {
			return manifest.Digest{}, fmt.Errorf("%w: offline", ErrCannotRebuild)
		}, report.Undecided, "offline"},
		{"nobody to build", map[string]string{"serve": "a", "source.tar": "a"}, nil, report.Undecided, "--rebuild"},
		{"no runtime", map[string]string{"source.tar": "a"}, honest, report.NotApplicable, "there is no runtime/serve"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.Mkdir(filepath.Join(folder, "runtime"), 0o755); err != nil {
				t.Fatal(err)
			}
			for name, data := range tc.files {
				if err := os.WriteFile(filepath.Join(folder, "runtime", name), []byte(data), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			tree, err := content.OpenFolder(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			r, err := Run(t.Context(), tree, Options{Profile: profiles.Profile{Name: "p", Gates: []string{"rebuild"}}, Rebuild: tc.rebuild})
			if err != nil {
				t.Fatal(err)
			}
			gate, _ := r.Gate("rebuild")
			text := strings.Join(gate.Notes, " ")
			for _, f := range gate.Findings {
				text += f.Problem
			}
			if gate.Status != tc.status || !strings.Contains(text, tc.says) {
				t.Errorf("%s: %s, want %s with %q", gate.Status, text, tc.status, tc.says)
			}
		})
	}
}

// Only the runtime that was built again from its source is exempt from what
// gate files says of archives and of unknown programs, without a word.
func TestOnlyTheProvenRuntimeIsExempt(t *testing.T) {
	source, program := []byte("source"), []byte("\x7fELF program")
	builds := func(digest manifest.Digest) func(context.Context, io.Reader) (manifest.Digest, error) {
		return func(context.Context, io.Reader) (manifest.Digest, error) { return digest, nil }
	}
	for _, tc := range []struct {
		name    string
		files   map[string][]byte
		rebuild func(context.Context, io.Reader) (manifest.Digest, error)
		level   report.Level // of the finding at each file
		says    string
	}{
		{"proven", map[string][]byte{runtimeProgram: program, runtimeSource: source}, builds(manifest.DigestBytes(program)), "", ""},
		{"not built", map[string][]byte{runtimeProgram: program, runtimeSource: source}, nil, report.Warning, "was not proven"},
		{"another", map[string][]byte{runtimeProgram: program, runtimeSource: source}, builds(manifest.DigestBytes(source)), report.Warning, "was not proven"},
		{"source alone", map[string][]byte{runtimeSource: source}, nil, report.Error, "of a type that weights come in"},
		{"another archive", map[string][]byte{"runtime/other.tar": source}, nil, report.Error, "of a type that weights come in"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			for name, data := range tc.files {
				f.files[name] = data
			}
			gate, _ := run(t, f.write(t), Options{Profile: toyProfile(), Rebuild: tc.rebuild}).Gate("files")
			found := 0
			for _, finding := range gate.Findings {
				if _, ours := tc.files[finding.Path]; ours && finding.Level == tc.level && strings.Contains(finding.Problem, tc.says) {
					found++
				}
			}
			if want := len(tc.files); found != want && tc.level != "" || tc.level == "" && len(gate.Findings) > 0 {
				t.Errorf("%d findings of %d: %+v", found, want, gate.Findings)
			}
		})
	}
}
