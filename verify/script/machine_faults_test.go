package script

import (
	"strings"
	"testing"

	"slipway/verify/image"
)

// What a server needs of the machine besides its files, each fault beside a twin.
func TestMachineFaults(t *testing.T) {
	served := func(line string) folder {
		return altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c USER=x\n"+line)
	}
	exported := func(f folder, text string) folder {
		return f.with("serve.sh", altered("exec python3", "export "+text+"\nexec python3")["serve.sh"])
	}
	wheel := func(f folder, names ...string) folder {
		for _, name := range names {
			f = f.with("wheels/"+name+"-py3-none-any.whl", "size 1000")
		}
		return f
	}
	headers := func(o *Options) { o.Image.Python.Headers = truth(false) }
	small := func(o *Options) { o.Image.GPU = &image.GPU{MemoryBytes: 1 << 30} }
	compiles := server("import torch\nf = torch.compile(g)\n")
	flashinfer := wheel(server("import flashinfer\n"), "flashinfer_python-0.4.0")
	nvcc := func(o *Options) { o.Image.Programs["nvcc"] = true }
	fp8 := wheel(server("import transformers\n"), "accelerate-1.0", "kernels-0.12.0").with("weights/config.json", `{"quantization_config": {"quant_method": "fp8"}}`)
	offline := func(text string) folder {
		return altered("HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 ", "").with("server.py", text+serverSource)
	}
	large := served("exec vllm serve weights --enforce-eager").with("weights/model.safetensors", "size 1000000000")
	activated := altered("exec python3", ". venv/bin/activate\nexec python3").with("venv/bin/activate", "VIRTUAL_ENV=/opt/make/venv\nexport VIRTUAL_ENV\n")
	runVectors(t, []vector{
		{name: "cache of Python", folder: server("import os\nos.environ['TRITON_CACHE_DIR'] = '/dev/shm/triton'\n"), check: "C20", line: 11, says: "TRITON_CACHE_DIR is /dev/shm/triton"},
		{name: "default of a cache", folder: server("import os\nos.environ.setdefault('TRITON_CACHE_DIR', '/dev/shm/triton')\n"), check: "C20", line: 11, says: "TRITON_CACHE_DIR is /dev/shm/triton"},
		{name: "user", folder: compiles, check: "C21", line: 11, says: "asks for the user's name", warning: true},
		{name: "user, asked", folder: server("import getpass\nu = getpass.getuser()\n"), check: "C21", line: 11, says: "user 1000", warning: true},
		{name: "user of vllm", folder: altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c\nexec vllm serve weights --enforce-eager"), check: "C21", line: 9, says: "vllm asks for the user's name", warning: true},
		{name: "headers", folder: exported(compiles, "USER=x"), options: headers, check: "C15", line: 11, says: "no Python.h"},
		{name: "headers of a kernel", folder: server("import triton\n@triton.jit\ndef kernel(): pass\n"), options: headers, check: "C15", line: 11, says: "no Python.h"},
		{name: "headers of vllm", folder: served("exec vllm serve weights --enforce-eager"), options: headers, check: "C15", line: 9, says: "no Python.h"},
		{name: "kernels of another flashinfer", folder: wheel(flashinfer, "flashinfer_cubin-0.3.1"), check: "C15", says: "of another version"},
		{name: "ninja off PATH", folder: wheel(flashinfer, "ninja-1.11"), options: nvcc, check: "C15", says: "needs ninja and nvcc"},
		{name: "kernels of the hub", folder: fp8, check: "C22", says: "from the model hub", warning: true},
		{name: "offline too late", folder: offline("import os\nimport transformers\nos.environ['HF_HUB_OFFLINE'] = '1'\n"), check: "C21", line: 8, says: "sets it at line 3, after", warning: true},
		{name: "memory", folder: large, options: small, check: "C24", line: 9, says: "larger than the memory", warning: true},
		{name: "system library", folder: wheel(goodFolder(), "opencv_python-4.10"), check: "C12", says: "libGL.so.1", warning: true},
		{name: "vocabulary", folder: server("from openai_harmony import load_harmony_encoding\ne = load_harmony_encoding('HarmonyGptOss')\n"), check: "C22", line: 11, says: "vocabulary"},
		{name: "moved virtual environment", folder: activated, check: "C20", line: 9, says: "was made as /opt/make/venv"},
	})
	ninja := wheel(flashinfer, "ninja-1.11")
	ninja["serve.sh"] = strings.Replace(ninja["serve.sh"], "exec python3", "export PATH=\"$PKG/bin:$PATH\"\nexec python3", 1)
	clean := map[string]folder{
		"cache of Python":   server("import os\nos.environ['TRITON_CACHE_DIR'] = '/tmp/triton'\nos.environ['X'] = '/dev/shm/x'\n"),
		"user":              exported(compiles, "USER=grader"),
		"cache and no user": exported(compiles, "TORCHINDUCTOR_CACHE_DIR=/tmp/i"),
		"kernels":           wheel(flashinfer, "flashinfer_cubin-0.4.0"),
		"kernels for CUDA":  wheel(flashinfer, "flashinfer_jit_cache-0.4.0+cu129"),
		"kernels shipped":   fp8.with("hub/models--kernels-community--finegrained-fp8/x", "1"),
		"offline":           offline("import os\nos.environ['HF_HUB_OFFLINE'] = '1'\nimport transformers\n"),
		"system library":    wheel(goodFolder(), "opencv_python_headless-4.10"),
		"vocabulary":        exported(server("from openai_harmony import load_harmony_encoding\ne = load_harmony_encoding('HarmonyGptOss')\n"), "TIKTOKEN_ENCODINGS_BASE=/submission/ranks").with("ranks/o200k_base.tiktoken", "size 1000"),
	}
	runClean(t, clean)
	o := graderOptions()
	nvcc(&o)
	if a := Analyse(ninja.submission(), o); len(a.Findings) > 0 {
		t.Error(listed(a))
	}
	o = graderOptions()
	small(&o)
	if a := Analyse(large.with("weights/model.safetensors", "size 900000000").submission(), o); len(a.Findings) > 0 {
		t.Error(listed(a))
	}
}

// What a wheel's directory says of its size and modules takes the place of a guess.
func TestStartOfReadWheels(t *testing.T) {
	f := goodFolder()
	s := f.submission()
	s.Wheels = []Wheel{{Path: "wheels/transformers-4.57.1-py3-none-any.whl", Distribution: "transformers", Unpacked: 30e9, Modules: 15000}}
	a := Analyse(s, graderOptions())
	if text := listed(a); !strings.Contains(text, "4 wheels of 4000 bytes to install, 30.0 GB unpacked, at 150 MB a second and 0.3 s each, and 15000 modules to compile: 211 s") || !strings.Contains(text, "C31 warning serve.sh:6") {
		t.Error(text)
	}
	s = f.with("serve.sh", strings.Replace(goodScript, "pip install", "pip install --no-compile", 1)).submission()
	s.Wheels = []Wheel{{Path: "wheels/transformers-4.57.1-py3-none-any.whl", Distribution: "transformers", Unpacked: 30e9, Modules: 15000}}
	if text := listed(Analyse(s, graderOptions())); !strings.Contains(text, "30.0 GB unpacked, at 150 MB a second and 0.3 s each: 201 s") {
		t.Error(text)
	}
}

// A .pth file counts in site-packages and not in a folder of PYTHONPATH.
func TestHooksOfWheels(t *testing.T) {
	const at = "wheels/nvidia_cutlass_dsl-4.4.0-py3-none-any.whl"
	members := map[string]string{"nvidia_cutlass_dsl.pth": "nvidia_cutlass_dsl\n", "nvidia_cutlass_dsl-4.4.0.dist-info/METADATA": "Name: nvidia-cutlass-dsl\n"}
	target := altered("transformers\n", "transformers nvidia-cutlass-dsl\n").with(at, "size 1000")
	plain := target.with("serve.sh", strings.Replace(target["serve.sh"], ` --target "$PKG"`, "", 1))
	added := target.with("server.py", "import site\nsite.addsitedir('/tmp/p')\n"+serverSource)
	for name, v := range map[string]struct {
		folder folder
		warns  bool
	}{"target": {target, true}, "site-packages": {plain, false}, "addsitedir": {added, false}} {
		s := v.folder.submission()
		s.Wheels = []Wheel{wheelOf(t, at, members, v.folder["serve.sh"])}
		a := Analyse(s, graderOptions())
		if warns := strings.Contains(listed(a), "C11 warning "+at+":0: brings nvidia_cutlass_dsl.pth"); warns != v.warns {
			t.Error(name, listed(a))
		}
	}
}
