package report

import (
	"slices"
	"testing"

	"slipway/manifest"
	"slipway/manifest/content"
)

func TestKindOf(t *testing.T) {
	for p, want := range map[string]FileKind{
		"weights/model-00001-of-00002.safetensors": WeightFiles, "weights/tokenizer.json": TokenizerFiles, "merges.txt": TokenizerFiles,
		"wheels/torch-2.9.0-cp312-cp312-manylinux_2_28_x86_64.whl": WheelFiles, "runtime/serve": RuntimeFiles, "runtime/source.tar": RuntimeFiles,
		"serve.sh": CodeFiles, "code/server.py": CodeFiles, "quantization_manifest.json": DeclarationFiles, "weights/config.json": DeclarationFiles,
		"DATA.md": DocumentFiles, "provenance/fit.log": DocumentFiles, "LICENSE": OtherFiles, "code/table.bin": OtherFiles,
	} {
		if got := KindOf(p); got != want {
			t.Errorf("%s is %q, want %q", p, got, want)
		}
	}
}

func TestSizesByKind(t *testing.T) {
	var files []content.TreeFile
	for _, f := range []manifest.File{{Path: "DATA.md", Size: 5}, {Path: "a.safetensors", Size: 7}, {Path: "b.safetensors", Size: 8}} {
		files = append(files, content.TreeFile{File: f})
	}
	want := []KindSize{{WeightFiles, 2, 15}, {DocumentFiles, 1, 5}}
	if got := SizesByKind(files); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
