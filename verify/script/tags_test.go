package script

import (
	"testing"

	"slipway/verify/image"
)

func TestUnsuited(t *testing.T) {
	grader := &image.Image{Python: &image.Python{Version: "3.12.3"}, Glibc: "2.35"}
	for _, v := range []struct {
		file string
		says string // "" where it can be installed
	}{
		{"numpy-2.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", ""},
		{"numpy-2.0-cp312-cp312-manylinux_2_35_x86_64.whl", ""},
		{"numpy-2.0-1-cp312-cp312-linux_x86_64.whl", ""},
		{"safetensors-0.5-cp38-abi3-manylinux_2_17_x86_64.whl", ""},
		{"x-1-py2.py3-none-any.whl", ""},
		{"x-1-py3-none-manylinux1_x86_64.whl", ""},
		{"x-1-py310-none-any.whl", ""},
		{"x-1-cp312-none-any.whl", ""},
		{"x-1-cp311.cp312-cp311.cp312-manylinux1_x86_64.whl", ""},
		{"x-1-py3-none-win_amd64.manylinux2014_x86_64.whl", ""},
		{"x.whl", ""},
		{"numpy-2.0-cp311-cp311-manylinux_2_17_x86_64.whl", "is not for Python 3.12"},
		{"numpy-2.0-cp312-cp312t-manylinux_2_17_x86_64.whl", "is not for Python 3.12"},
		{"numpy-2.0-cp313-abi3-manylinux_2_17_x86_64.whl", "is not for Python 3.12"},
		{"x-1-py2-none-any.whl", "is not for Python 3.12"},
		{"x-1-py313-none-any.whl", "is not for Python 3.12"},
		{"x-1-pp310-pypy310_pp73-manylinux_2_17_x86_64.whl", "is not for Python 3.12"},
		{"numpy-2.0-cp312-cp312-win_amd64.whl", "is not for Linux with glibc on amd64"},
		{"numpy-2.0-cp312-cp312-macosx_14_0_arm64.whl", "is not for Linux with glibc on amd64"},
		{"numpy-2.0-cp312-cp312-manylinux_2_17_aarch64.whl", "is not for Linux with glibc on amd64"},
		{"numpy-2.0-cp312-cp312-musllinux_1_2_x86_64.whl", "is not for Linux with glibc on amd64"},
		{"x-1-cp312-cp312-manylinux_2_39_x86_64.whl", "is for glibc 2.39 or later, and the grader has 2.35"},
	} {
		if says := unsuited("wheels/"+v.file, grader); says != v.says {
			t.Errorf("%s %q, not %q", v.file, says, v.says)
		}
	}
	if says := unsuited("numpy-2.0-cp311-cp311-manylinux_2_39_x86_64.whl", nil); says != "" {
		t.Errorf("a machine that nobody describes: %q", says)
	}
}

// What pip makes of wheels for other machines, each beside a twin that is for this.
func TestTagFaults(t *testing.T) {
	asks := altered("transformers\n", "transformers numpy\n")
	byPath := altered("--no-index --find-links wheels --target \"$PKG\" transformers", "--no-index --target \"$PKG\" wheels/*.whl")
	const wrong, right = "wheels/numpy-2.0-cp311-cp311-manylinux_2_17_x86_64.whl", "wheels/numpy-2.0-cp312-cp312-manylinux_2_17_x86_64.whl"
	gpu := func(driver string) func(*Options) {
		return func(o *Options) { o.Image.GPU = &image.GPU{Driver: driver} }
	}
	torch := goodFolder().with("wheels/torch-2.9.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl", "size 1000")
	runVectors(t, []vector{
		{name: "by name", folder: asks.with(wrong, "size 1000"), check: "C22", line: 6, says: "is not for Python 3.12"},
		{name: "by path", folder: byPath.with(wrong, "size 1000"), check: "C07", says: "pip refuses it"},
		{name: "unasked", folder: goodFolder().with(wrong, "size 1000"), check: "C07", says: "is not for Python 3.12", warning: true},
		{name: "unasked, of another system", folder: goodFolder().with("wheels/x-1-py3-none-win_amd64.whl", "size 1000"), options: silent, check: "C07", says: "amd64", warning: true},
		{name: "source archive", folder: asks.with("wheels/numpy-2.0.tar.gz", "size 1000"), check: "C22", line: 6, says: "a source archive is there", warning: true},
		{name: "driver", folder: torch, options: gpu("550.54.15"), check: "C13", says: "built for CUDA 13.0"},
		{name: "driver of CUDA 12", folder: goodFolder().with("wheels/torch-2.7.0+cu128-cp312-cp312-linux_x86_64.whl", "size 1000"), options: gpu("470.1"), check: "C13", says: "built for CUDA 12.8"},
	})
	runClean(t, map[string]folder{"by name": asks.with(right, "size 1000"), "by path": byPath.with(right, "size 1000"), "no driver": torch})
	for _, driver := range []string{"580.65.06", "no number"} {
		o := graderOptions()
		gpu(driver)(&o)
		if a := Analyse(torch.submission(), o); len(a.Findings) > 0 {
			t.Error(driver, listed(a))
		}
	}
}
