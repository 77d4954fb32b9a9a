package image

import (
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
)

// learnCases are excerpts of the form that a grader's report of a self-check
// has, and what they reveal: the image, then the facts that are only noted.
var learnCases = []struct {
	name, log, image string
	noted            []string
}{
	{
		"native code on a noexec mount",
		`not healthy; end of its log: [serve.sh] wheels installed Traceback File "/dev/shm/pylibs/torch/__init__.py", line 371 ctypes.CDLL(path) File "/usr/lib/python3.12/ctypes/__init__.py", line 379, in __init__ OSError: /dev/shm/pylibs/torch/lib/libtorch_global_deps.so: failed to map segment from shared object`,
		`{"schema":1,"python":{"version":"3.12"},"mounts":[{"path":"/dev/shm","noexec":true}]}`, nil,
	},
	{"a whole description", "{\n  \"schema\": 1,\n  \"glibc\": \"2.39\"\n}\n", `{"schema":1,"glibc":"2.39"}`, nil},
	{
		"native code on a mount that is not described",
		`OSError: /scratch/libs/x.so: failed to map segment from shared object`,
		`{"schema":1}`, []string{"native code cannot be loaded from /scratch/libs: its mount is noexec, or address space is limited"},
	},
	{
		"native code that ran",
		`(EngineCore pid=271) INFO [default_loader.py:384] Loading weights took 2.27 seconds (EngineCore pid=271) /tmp/pylibs/vllm/model_executor/layers/fla/ops/utils.py:113: UserWarning: shape`,
		`{"schema":1,"mounts":[{"path":"/tmp","noexec":false}]}`, nil,
	},
	{
		"a library of the image wants another",
		`INFO:drafter:Loading drafter model from /submission/model... File "/submission/server.py", line 24 File "/opt/venv/lib/python3.12/site-packages/transformers/modeling_utils.py", line 4806 ValueError: Using a ` + "`device_map`" + ` requires ` + "`accelerate`. You can install it with `pip install accelerate`",
		`{"schema":1,"submission":"/submission","python":{"version":"3.12","path":"/opt/venv/bin/python3"},"distributions":{"transformers":""},"absent":["accelerate"]}`, nil,
	},
	{
		"the same in an environment of the submission's own",
		`File "/tmp/venv/lib/python3.12/site-packages/transformers/modeling_utils.py", line 4806 ValueError: requires ` + "`accelerate`",
		`{"schema":1}`, []string{"accelerate is missing in an environment of the submission's own"},
	},
	{
		"pip ran before",
		`Successfully installed torch-2.7.0+cu128 transformers-4.57.1 File "/opt/venv/lib/python3.12/site-packages/transformers/x.py"`,
		`{"schema":1,"python":{"version":"3.12","path":"/opt/venv/bin/python3"}}`,
		[]string{"pip installed distributions at start, torch-2.7.0+cu128 and others among them: whether the image has them is unknown"},
	},
	{
		"pip found them there",
		"Requirement already satisfied: typing_extensions>=4.10 in /usr/lib/python3/dist-packages (4.12.2)\nRequirement already satisfied: numpy in /usr/lib/python3/dist-packages (from x) (1.26.4)\nRequirement already satisfied: einops in /tmp/pylibs (0.8.0)\n",
		`{"schema":1,"distributions":{"numpy":"","typing-extensions":"4.12.2"}}`, nil,
	},
	{"an absent module", `ModuleNotFoundError: No module named 'PIL'`, `{"schema":1,"absent":["pillow"]}`, nil},
	{"an absent module of its own", `ModuleNotFoundError: No module named 'my_server'`, `{"schema":1}`, nil},
	{
		"an old module", "apply_chat_template requires jinja2>=3.1.0 to be installed. Your version is 3.0.3.",
		`{"schema":1}`, []string{"jinja2 3.0.3 is installed, which is too old"},
	},
	{"a missing backend", "AutoImageProcessor requires the PIL library but it was not found in your environment.", `{"schema":1,"absent":["pillow"]}`, nil},
	{
		"a died engine and ninja",
		`startup 285.3 s of 300 s; failed: HTTP 500: "EngineCore encountered an issue. See stack trace" FileNotFoundError: [Errno 2] No such file or directory: 'ninja'`,
		`{"schema":1,"programs":{"ninja":false}}`,
		[]string{"a start may take 300 s, and this one took 285.3 s", "the engine died at a request, after the start: what it compiles or loads then is not to be had"},
	},
	{"programs", "serve.sh: line 3: nvcc: command not found\n/bin/sh: 1: curl: not found\nfoo: not found\n", `{"schema":1,"programs":{"curl":false,"nvcc":false}}`, nil},
	{"a compiler", "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.", `{"schema":1,"programs":{"cc":false,"gcc":false}}`, nil},
	{
		"limits", "Server did not become healthy in 300s OSError: [Errno 28] No space left on device: '/dev/shm/model/x' ImportError: version `GLIBC_2.38' not found (required by x.so)",
		`{"schema":1}`,
		[]string{"/dev/shm is smaller than what was written there", "glibc is older than 2.38", "a start may take 300 s, and this one took longer"},
	},
	{"a read-only submission", "OSError: [Errno 30] Read-only file system: '/submission/cache'", `{"schema":1,"submission":"/submission","mounts":[{"path":"/submission","read_only":true}]}`, nil},
	{
		"a GPU", "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |\ndevice NVIDIA H100 80GB HBM3 and more",
		`{"schema":1,"gpu":{"name":"NVIDIA H100 80GB HBM3","driver":"550.54.15"}}`, nil,
	},
	{
		"an old driver", "The NVIDIA driver on your system is too old (found version 12020).",
		`{"schema":1}`, []string{"the driver supports CUDA up to version 12020 (as in 12020 for 12.2)"},
	},
	{"a home", "declare: HOME=/nonexistent", `{"schema":1,"home":"/nonexistent"}`, nil},
	{"another root", "/data/candidate/serve.sh: line 7: oops", `{"schema":1,"submission":"/data/candidate"}`, nil},
	{
		"a system that pip leaves alone", "error: externally-managed-environment",
		`{"schema":1}`, []string{"pip refuses to install into the system's Python (PEP 668)"},
	},
	{
		"contradiction", "/tmp/a.so: failed to map segment from shared object Loading weights took 2 s /tmp/p/vllm/a.py:1: UserWarning",
		`{"schema":1,"mounts":[{"path":"/tmp","noexec":true}]}`,
		[]string{"/tmp is not noexec (mount /tmp noexec: true is known, not false)"},
	},
	{
		"a server that is fine", "INFO: Started server process [12]\nINFO: Uvicorn running on http://0.0.0.0:8000\nGET /health 200\nusing /tmp/cache, home /root\nrequires attention: none\n",
		`{"schema":1}`, nil,
	},
	{"nothing", "", `{"schema":1}`, nil},
}

func TestLearn(t *testing.T) {
	for _, c := range learnCases {
		t.Run(c.name, func(t *testing.T) {
			got := Learn(c.log)
			encoded, err := manifest.EncodeCanonical(&got.Image)
			if err != nil {
				t.Fatal(err)
			}
			if string(encoded) != c.image {
				t.Errorf("image %s\nwant  %s", encoded, c.image)
			}
			var noted []string
			for _, e := range got.Evidence {
				if e.Noted {
					noted = append(noted, e.Fact)
				}
				if e.Quote == "" {
					t.Errorf("%s: no evidence", e.Fact)
				}
			}
			if !slices.Equal(noted, c.noted) {
				t.Errorf("noted %q\nwant  %q", noted, c.noted)
			}
			if _, err := Decode(encoded); err != nil {
				t.Errorf("what was learned does not decode: %v", err)
			}
		})
	}
}

func TestQuotesAreOfTheirLine(t *testing.T) {
	got := Learn("before\n" + strings.Repeat("x", 300) + " No module named 'yaml' " + strings.Repeat("y", 300) + "\nbehind\n")
	if len(got.Evidence) != 1 || strings.Contains(got.Evidence[0].Quote, "be") || !strings.Contains(got.Evidence[0].Quote, "No module named 'yaml'") || len(got.Evidence[0].Quote) > quoteBytes {
		t.Errorf("evidence %+v", got.Evidence)
	}
}

func FuzzLearn(f *testing.F) {
	for _, c := range learnCases {
		f.Add(c.log)
	}
	f.Add(lineBegin + clean + lineEnd)
	f.Add(lineBegin + clean[:200])
	f.Fuzz(func(t *testing.T, log string) {
		got := Learn(log)
		encoded, err := manifest.EncodeCanonical(&got.Image)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(encoded); err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		for _, e := range got.Evidence {
			if strings.ContainsAny(e.Quote, "\n\x1b") {
				t.Fatalf("quote %q", e.Quote)
			}
		}
	})
}
