package cuda

import (
	"bytes"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"slipway/internal/generate/kernels/stamp"
	"slipway/manifest"
)

// TestOutputsAreCurrent fails where a source, a header, a flag or an output has
// changed without the others.
func TestOutputsAreCurrent(t *testing.T) {
	if err := stamp.Check(os.DirFS(".")); err != nil {
		t.Errorf("%v\n  %s", err, manifest.Hint(err))
	}
}

// TestImages looks for every operation's kernel in both forms.
func TestImages(t *testing.T) {
	kernels := map[string]string{
		"embed": "rows", "silu_mul": "rows", "select_rows": "rows", "rotary": "rows",
		"add_norm": "norm", "head_norm_rope": "norm", "linear": "linear", "attention": "attention",
		"delta_convolve": "delta", "delta_rule": "delta", "sample": "sample",
	}
	images := map[string]Image{}
	total := 0
	for _, image := range Images() {
		images[image.Name] = image
		total += len(image.Cubin) + len(image.PTX)
	}
	for kernel, source := range kernels {
		image := images[source]
		if !bytes.HasPrefix(image.Cubin, []byte("\x7fELF")) || !bytes.Contains(image.Cubin, []byte(".text."+kernel+"\x00")) {
			t.Errorf("%s: no kernel %s in the cubin", source, kernel)
		}
		if !bytes.Contains(image.PTX, []byte(".entry "+kernel+"(")) || image.PTX[len(image.PTX)-1] != 0 {
			t.Errorf("%s: no kernel %s in the PTX, or it does not end with a zero byte", source, kernel)
		}
	}
	if total > 2<<20 {
		t.Errorf("%d bytes of kernels, at most %d are meant to be committed", total, 2<<20)
	}
}

// TestCheckBites changes one file at a time.
func TestCheckBites(t *testing.T) {
	load := func() fstest.MapFS {
		files := fstest.MapFS{}
		for _, pattern := range []string{"*.cu", "*.cuh", "build/*"} {
			names, err := fs.Glob(os.DirFS("."), pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				files[name] = &fstest.MapFile{Data: data}
			}
		}
		return files
	}
	for _, tc := range []struct {
		name   string
		change func(fstest.MapFS)
		want   string // part of the error; empty: none
	}{
		{"nothing", func(fstest.MapFS) {}, ""},
		{"source", func(f fstest.MapFS) { f["linear.cu"].Data = append(f["linear.cu"].Data, '\n') }, "linear.cu"},
		{"header", func(f fstest.MapFS) { f["reduce.cuh"].Data = append(f["reduce.cuh"].Data, '\n') }, "reduce.cuh"},
		{"cubin", func(f fstest.MapFS) { f["build/norm.sm_90a.cubin"].Data[100] ^= 1 }, "build/norm.sm_90a.cubin"},
		{"PTX", func(f fstest.MapFS) { f["build/norm.compute_80.ptx"].Data[100] ^= 1 }, "build/norm.compute_80.ptx"},
		{"no output", func(f fstest.MapFS) { delete(f, "build/delta.compute_80.ptx") }, "build/delta.compute_80.ptx"},
		{"new source", func(f fstest.MapFS) { f["vision.cu"] = &fstest.MapFile{} }, "build/vision.sm_90a.cubin"},
		{"old output", func(f fstest.MapFS) { f["build/vision.sm_90a.cubin"] = &fstest.MapFile{} }, "output of no source"},
		{"no header", func(f fstest.MapFS) { delete(f, "abi.cuh") }, "abi.cuh"},
		{"flags", func(f fstest.MapFS) {
			f[stamp.File].Data = bytes.ReplaceAll(f[stamp.File].Data, []byte("-std=c++17"), []byte("-std=c++14"))
		}, "-std=c++17"},
		{"no compiler", func(f fstest.MapFS) {
			f[stamp.File].Data = bytes.Replace(f[stamp.File].Data, []byte("compiler "), nil, 1)
		}, "compiler"},
	} {
		files := load()
		tc.change(files)
		err := stamp.Check(files)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
}
