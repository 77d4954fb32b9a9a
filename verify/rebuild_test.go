package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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

// goProgram is the least that the go command's mark can be read of: an
// executable for linux/amd64 with the build information of a package.
func goProgram(built string) []byte {
	const headers = 64 + 56
	mark := append([]byte("\xff Go buildinf:\x08\x02"), make([]byte, 16)...)
	for _, text := range []string{"go1.26.8", strings.Repeat("<", 16) + "path\t" + built + "\nmod\tslipway\t(devel)\t\n" + strings.Repeat(">", 16)} {
		mark = append(binary.AppendUvarint(mark, uint64(len(text))), text...)
	}
	const begin = headers + 8 // the mark lies on a multiple of 16
	out := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	little := binary.LittleEndian
	out = little.AppendUint16(out, 2)    // an executable
	out = little.AppendUint16(out, 0x3e) // for x86-64
	out = little.AppendUint32(out, 1)
	out = little.AppendUint64(out, 0x400000)
	out = little.AppendUint64(out, 64) // the program header
	out = little.AppendUint64(out, 0)  // no sections
	out = little.AppendUint32(out, 0)
	for _, v := range []uint16{64, 56, 1, 64, 0, 0} {
		out = little.AppendUint16(out, v)
	}
	out = little.AppendUint32(out, 1) // loaded
	out = little.AppendUint32(out, 6) // to read and write
	for _, v := range []uint64{begin, 0x400000, 0x400000, uint64(len(mark)), uint64(len(mark)), 16} {
		out = little.AppendUint64(out, v)
	}
	return append(append(out, make([]byte, begin-headers)...), mark...)
}

// sourceTar is an archive of sources that has what every build needs, and more.
func sourceTar(t *testing.T, more ...string) []byte {
	t.Helper()
	var files []manifest.File
	for _, name := range append([]string{"go.mod", "go.sum", "runtime/main.go", "runtime/runtime.lock"}, more...) {
		files = append(files, manifest.File{Path: name, Mode: manifest.ModeFile, Size: int64(len(name))})
	}
	manifest.SortFiles(files)
	var out bytes.Buffer
	if err := content.WriteTar(&out, files, func(f manifest.File) (io.ReadCloser, error) {
		if strings.Contains(f.Path, "random") {
			return io.NopCloser(strings.NewReader(strings.Repeat("\xff", len(f.Path)))), nil
		}
		return io.NopCloser(strings.NewReader(f.Path)), nil
	}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Only the runtime that was built again from its source, or that the caller
// knows, is exempt from what gate files says of archives and of unknown programs.
// Of what may be it the gate decides nothing; what cannot be it is no exception.
func TestOnlyTheProvenRuntimeIsExempt(t *testing.T) {
	program, source := goProgram(runtimePackage), sourceTar(t)
	large := make([]byte, maxUnknownBytes)
	builds := func(digest manifest.Digest) func(context.Context, io.Reader) (manifest.Digest, error) {
		return func(context.Context, io.Reader) (manifest.Digest, error) { return digest, nil }
	}
	again := builds(manifest.DigestBytes(program))
	both := func(program, source []byte) map[string][]byte {
		return map[string][]byte{runtimeProgram: program, runtimeSource: source}
	}
	pair := func(program, source []byte) []Runtime {
		return []Runtime{{manifest.DigestBytes(program), manifest.DigestBytes(source)}}
	}
	const none = "is none of it: "
	for _, tc := range []struct {
		name    string
		files   map[string][]byte
		rebuild func(context.Context, io.Reader) (manifest.Digest, error)
		known   []Runtime
		status  report.Status
		path    string // of the only finding
		says    string
	}{
		{"built again", both(program, source), again, nil, report.Pass, "", "built again"},
		{"known", both(program, source), nil, pair(program, source), report.Pass, "", "own lock names"},
		{"known with another source", both(program, source), nil, pair(program, large), report.Undecided, "", "slipway verify --rebuild"},
		{"not built", both(program, source), nil, nil, report.Undecided, "", "slipway verify --rebuild"},
		{"not what was built", both(program, source), builds(manifest.DigestBytes(source)), nil, report.Undecided, "", "was not proven"},
		{"without its source", map[string][]byte{runtimeProgram: program}, nil, nil, report.Undecided, "", "was not proven"},
		{"random bytes", map[string][]byte{runtimeProgram: append([]byte{1}, large...)}, nil, nil, report.Fail, runtimeProgram, "unknown type and larger"},
		{"random bytes under an executable's mark", both(append([]byte("\x7fELF"), large...), source), nil, nil, report.Fail, runtimeProgram, none + "it is no ELF executable"},
		{"another program of Go", both(append(goProgram("slipway/other"), large...), source), nil, nil, report.Fail, runtimeProgram, none},
		{"more after its end", both(append(program, large...), source), nil, nil, report.Fail, runtimeProgram, "come after the end"},
		{"larger than any", both(append(program, make([]byte, maxProgramBytes)...), source), nil, nil, report.Fail, runtimeProgram, none + "it has more than"},
		{"no archive", both(program, []byte("source")), nil, nil, report.Fail, runtimeSource, none + "it is no archive"},
		{"an archive of something else", both(program, sourceTar(t, "weights.bin")), nil, nil, report.Fail, runtimeSource, "weights.bin in it is no source"},
		{"the same, built again", both(program, sourceTar(t, "weights.bin")), again, nil, report.Fail, runtimeSource, "weights.bin in it is no source"},
		{"random bytes under a kernel's name", both(program, sourceTar(t, "runtime/kernels/cuda/build/model.sm_90a.cubin")), again, nil, report.Fail, runtimeSource, "model.sm_90a.cubin in it is no source"},
		{"random bytes under a source's name", both(program, sourceTar(t, "runtime/random.go")), again, nil, report.Fail, runtimeSource, "runtime/random.go in it is no source"},
		{"bytes after its end", both(program, append(slices.Clone(source), large...)), again, nil, report.Fail, runtimeSource, "bytes come after its end"},
		{"source alone", map[string][]byte{runtimeSource: source}, nil, nil, report.Fail, runtimeSource, "of a type that weights come in"},
		{"another archive", map[string][]byte{"runtime/other.tar": source}, nil, nil, report.Fail, "runtime/other.tar", "of a type that weights come in"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			for name, data := range tc.files {
				f.files[name] = data
			}
			r := run(t, f.write(t), Options{Profile: toyProfile(), Rebuild: tc.rebuild, Runtimes: func() []Runtime { return tc.known }})
			gate, _ := r.Gate("files")
			text := strings.Join(gate.Notes, " ")
			for _, finding := range gate.Findings {
				text += finding.Path + " " + finding.Problem
			}
			if gate.Status != tc.status || !strings.Contains(text, tc.says) || tc.path != "" && (len(gate.Findings) != 1 || gate.Findings[0].Path != tc.path) {
				t.Errorf("%s: %s, want %s at %s with %q", gate.Status, text, tc.status, tc.path, tc.says)
			}
		})
	}
}

// A profile that lets gate rebuild stay undecided lets gate files, whose question
// it is; one that does not wants both decided.
func TestAnUnprovenRuntimeIsOpenWhereRebuildIs(t *testing.T) {
	f := newFixture()
	f.files[runtimeProgram], f.files[runtimeSource] = goProgram(runtimePackage), sourceTar(t)
	for _, may := range []bool{true, false} {
		p := toyProfile()
		p.Gates, p.MayUndecided = []string{"files", "rebuild"}, nil
		if may {
			p.MayUndecided = []string{"rebuild"}
		}
		r := run(t, f.write(t), Options{Profile: p})
		if open := r.Open(); (len(open) == 0) != may {
			t.Errorf("rebuild may be undecided: %v, open: %v", may, open)
		}
	}
	r := run(t, f.write(t), Options{Profile: toyProfile(), Runtimes: func() []Runtime {
		return []Runtime{{manifest.DigestBytes(f.files[runtimeProgram]), manifest.DigestBytes(f.files[runtimeSource])}}
	}})
	if gate, _ := r.Gate("rebuild"); gate.Status != report.Pass {
		t.Errorf("the runtime is known, and gate rebuild %s: %v", gate.Status, gate.Notes)
	}
}
