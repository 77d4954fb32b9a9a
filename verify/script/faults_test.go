package script

import (
	"slices"
	"strings"
	"testing"

	"slipway/verify/image"
	"slipway/verify/script/shell"
)

func silent(o *Options) { o.Image = nil }

func TestTextFaults(t *testing.T) {
	runVectors(t, []vector{
		{name: "CRLF", folder: goodFolder().with("serve.sh", strings.ReplaceAll(goodScript, "\n", "\r\n")), check: "C18", line: 1, says: "CR LF"},
		{name: "CRLF in a server", folder: goodFolder().with("server.py", "#!/usr/bin/env python3\r\n"+serverSource), check: "C18", line: 1, says: "CR LF"},
		{name: "byte order mark", folder: goodFolder().with("serve.sh", "\xef\xbb\xbf"+goodScript), check: "C18", line: 1, says: "byte order mark"},
		{name: "no shebang", folder: altered("#!/bin/bash\n", ""), check: "C18", line: 1, says: "no #! line"},
		{name: "interpreter of a build machine", folder: altered("#!/bin/bash", "#!/home/ubuntu/venv/bin/bash"), check: "C18", line: 1, says: "not on the grader's machine"},
		{name: "interpreter with an option, by env", folder: altered("#!/bin/bash", "#!/usr/bin/env bash -e"), check: "C18", line: 1, says: `called "bash -e"`},
		{name: "interpreter with an option", folder: altered("#!/bin/bash", "#!/bin/bash -e"), check: "C18", line: 1, says: "does not see the -e", warning: true},
		{name: "option of the first line", folder: altered("#!/bin/bash\nset -euo pipefail", "#!/bin/bash -e\nfalse"), check: "C18", line: 2, says: "ends with status 1"},
		{name: "interpreter absent", folder: altered("#!/bin/bash", "#!/usr/bin/env zsh"), options: func(o *Options) { o.Image.Programs["zsh"] = false }, check: "C18", line: 1, says: "zsh is not on"},
		{name: "syntax", folder: altered("exec python3", "if true; then\nexec python3"), check: "C18", says: "no valid shell script"},
		{name: "bash under sh", folder: goodFolder().with("serve.sh", "#!/bin/sh\nargs=(--weights weights)\npip install --no-index -f wheels -t /tmp/p transformers\nexec python3 -u server.py \"${args[@]}\"\n"), check: "C18", line: 2, says: "asks for sh"},
		{name: "test of bash under sh", folder: goodFolder().with("serve.sh", "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n: wheels\nif [[ -d weights ]]; then :; fi\nexec python3 -u server.py --weights weights\n"), check: "C18", line: 4, says: "asks for sh: [["},
		{name: "source under sh", folder: altered("#!/bin/bash\nset -euo pipefail\n", "#!/bin/sh\nset -eu\nsource /submission/env.sh\n").with("env.sh", "export X=1\n"), check: "C18", line: 3, says: "asks for sh: source"},
		{name: "pipefail under sh", folder: altered("#!/bin/bash", "#!/bin/sh"), check: "C18", line: 2, says: "pipefail", warning: true},
		{name: "read", folder: altered("exec python3", "read -p 'go on? ' answer || true\nexec python3"), check: "C18", line: 8, says: "waits for an answer"},
		{name: "no exec", folder: altered("exec python3", "python3"), check: "C18", line: 8, says: "without exec"},
		{name: "background", folder: altered("exec python3 server.py --port 8000 --weights weights", "python3 server.py --weights weights &\nwait"), check: "C18", line: 8, says: "in the background"},
		{name: "background and gone", folder: altered("exec python3 server.py --port 8000 --weights weights", "nohup python3 server.py --weights weights > /tmp/log 2>&1 &"), check: "C18", line: 8, says: "and ends", warning: true},
		{name: "pipe", folder: altered("exec python3 server.py --port 8000 --weights weights", "python3 server.py --weights weights 2>&1 | tee /tmp/log"), check: "C18", line: 8, says: "pipes"},
		{name: "version as redirection", folder: altered("transformers\n", "transformers>=4.5\n"), check: "C18", line: 6, says: "redirection"},
		{name: "version without =", folder: altered("transformers\n", "transformers>4\n"), check: "C18", line: 6, says: "redirection"},
		{name: "upper bound", folder: altered("transformers\n", "transformers<5\n"), check: "C18", line: 6, says: "redirection"},
		{name: "joined requirements", folder: altered("transformers\nexport", "transformers \\\nexport"), check: "C18", line: 6, says: "words of the next command, from export on"},
		{name: "joined export", folder: altered("exec python3", "export OMP_NUM_THREADS=4 \\\nexec python3"), check: "C18", line: 8, says: "export cannot take"},
		{name: "set -e", folder: altered("exec python3", "n=0; ((n++))\nexec python3"), check: "C18", line: 8, says: "ends with status 1"},
		{name: "set -e and a test", folder: altered("exec python3", "f() { [ -n \"${DEBUG:-}\" ] && echo debugging; }\nf\nexec python3"), check: "C18", line: 8, says: "ends with status 1"},
		{name: "no server", folder: goodFolder().with("serve.sh", "#!/bin/sh\necho ready\n"), check: "C18", says: "starts no server"},
		{name: "exit", folder: altered("exec python3", "exit 0\nexec python3"), check: "C18", line: 8, says: "ends with status 0"},
		{name: "missing", folder: goodFolder().with("serve.sh", ""), check: "C18", says: "is missing"},
	})
	s := goodFolder().submission()
	for i := range s.Files {
		s.Files[i].Executable = false
	}
	if a := Analyse(s, graderOptions()); len(a.Findings) != 1 || a.Findings[0].Warning || a.Findings[0].Hint != "chmod +x serve.sh" {
		t.Error(listed(a))
	}
	runClean(t, map[string]folder{"env -S": altered("#!/bin/bash", "#!/usr/bin/env -S bash")})
	program := Analyse(goodFolder().with("serve.sh", "#!/usr/bin/env python3\nimport os\nos.execvp('true', ['true'])\n").submission(), graderOptions())
	if len(program.Findings) != 1 || !program.Findings[0].Warning || !strings.Contains(program.Undecided, "no shell script") {
		t.Error(listed(program))
	}
}

func TestTrapForwardsSignals(t *testing.T) {
	f := altered("exec python3 server.py --port 8000 --weights weights", "python3 server.py --weights weights &\npid=$!\ntrap 'kill $pid' TERM INT\nwait $pid")
	if a := Analyse(f.submission(), graderOptions()); len(a.Findings) > 0 {
		t.Error(listed(a))
	}
}

func TestArgumentFaults(t *testing.T) {
	runVectors(t, []vector{
		{name: "skew", folder: altered("exec python3", "python3 code/export.py weights /tmp/model --skip-mv\nexec python3"), check: "C19", line: 8, says: "code/export.py: unrecognized arguments: --skip-mv"},
		{name: "server", folder: altered("--port 8000", "--port 8000 --max-batch 16"), check: "C19", line: 8, says: "--max-batch"},
		{name: "required", folder: altered(" --weights weights", ""), check: "C19", line: 8, says: "--weights is not given"},
		{name: "ambiguous", folder: altered("--port 8000", "--p 8000").with("server.py", strings.Replace(serverSource, `"--dtype"`, `"--prefix", "--dtype"`, 1)), check: "C19", line: 8, says: "could be"},
		{name: "choice", folder: altered("--port 8000", "--dtype float8"), check: "C19", line: 8, says: `--dtype does not take "float8"`},
		{name: "no value", folder: altered("--port 8000 --weights weights", "--weights weights --port"), check: "C19", line: 8, says: "lacks its value"},
		{name: "value of a switch", folder: altered("--port 8000", "--text-only=yes"), check: "C19", line: 8, says: "takes no value"},
		{name: "one word too many", folder: altered("--port 8000", "8000"), check: "C19", line: 8, says: "words without an option"},
		{name: "one word too few", folder: altered("exec python3", "python3 code/export.py weights\nexec python3"), check: "C19", line: 8, says: "requires 2 words"},
		{name: "module", folder: altered("exec python3 server.py", "exec python3 -m app.main --bogus").with("app/main.py", serverSource), check: "C19", line: 8, says: "app/main.py: unrecognized arguments: --bogus"},
		{name: "in a fallback", folder: altered("exec python3", "nvidia-smi || python3 code/export.py weights /tmp/m --skip-mv\nexec python3"), check: "C19", line: 8, says: "--skip-mv", warning: true},
		{name: "removed from vllm", folder: altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c\nexec vllm serve weights --port 8000 --enforce-eager --enable-reasoning"), check: "C19", line: 9, says: "--enable-reasoning"},
		{name: "unknown to vllm", folder: altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c\nexec vllm serve weights --port 8000 --enforce-eager --skip-mv"), check: "C19", line: 9, says: "--skip-mv", warning: true},
		{name: "absent script", folder: altered("server.py", "serve.py"), check: "C20", line: 8, says: "serve.py, which is not there"},
	})
	open := strings.Replace(serverSource, "parse_args()", "parse_known_args()", 1)
	if a := Analyse(altered("--port 8000", "--bogus 1").with("server.py", open).submission(), graderOptions()); len(a.Findings) > 0 {
		t.Errorf("parse_known_args: %s", listed(a))
	}
	vllm := altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c USER=x\nexec vllm serve weights --port=8000 --enforce-eager --max_model_len 4096 --no-enable-prefix-caching --limit-mm-per-prompt.image 0")
	if a := Analyse(vllm.submission(), graderOptions()); len(a.Findings) > 0 {
		t.Errorf("vllm: %s", listed(a))
	}
}

func TestPathFaults(t *testing.T) {
	small := func(o *Options) { o.Image.Mounts = []image.Mount{{Path: "/tmp", Bytes: 1000}} }
	runVectors(t, []vector{
		{name: "noexec target", folder: altered("/tmp/pkg.XXXXXX", "/dev/shm/pkg.XXXXXX"), check: "C20", says: "noexec"},
		{name: "noexec target, named", folder: altered(`"$PKG" transformers`, `/dev/shm/pylibs transformers`), check: "C20", line: 6, says: "/dev/shm is mounted noexec"},
		{name: "noexec, nobody says", folder: altered(`"$PKG" transformers`, `/dev/shm/pylibs transformers`), options: silent, check: "C20", line: 6, says: "/dev/shm", warning: true},
		{name: "small target", folder: goodFolder(), options: small, check: "C20", line: 6, says: "too small"},
		{name: "noexec cache", folder: altered("exec python3", "export TRITON_CACHE_DIR=/dev/shm/triton\nexec python3"), check: "C20", line: 9, says: "TRITON_CACHE_DIR"},
		{name: "noexec libraries", folder: altered("exec python3", "export LD_LIBRARY_PATH=/dev/shm/pylibs\nexec python3"), check: "C20", line: 9, says: "LD_LIBRARY_PATH has /dev/shm/pylibs"},
		{name: "small copy", folder: altered("exec python3", "cp -r weights /dev/shm/weights\nexec python3").with("weights/model.safetensors", "size 100000000"), check: "C20", line: 8, says: "cp writes 100 MB to /dev/shm/weights"},
		{name: "started from noexec", folder: goodFolder().with("serve.sh", "#!/bin/sh\ncp \"$SUBMISSION_DIR/run\" /dev/shm/run\nexec /dev/shm/run wheels\n").with("run", "\x7fELF"), check: "C20", line: 3, says: "lies on a mount"},
		{name: "moved virtual environment", folder: altered("exec python3 server.py", "exec venv/bin/serve").with("venv/bin/serve", "#!/home/builder/venv/bin/python3\nimport server\n"), check: "C18", line: 1, says: "/home/builder/venv/bin/python3"},
		{name: "noexec path", folder: altered(`export PYTHONPATH="$PKG`, `export PYTHONPATH="/dev/shm/x`), check: "C20", line: 8, says: "/dev/shm/x"},
		{name: "build path", folder: altered("--weights weights", "--weights /home/ubuntu/model"), check: "C20", line: 8, says: "/home/ubuntu/model"},
		{name: "path of another image", folder: altered("--weights weights", "--weights /app/model"), check: "C20", line: 8, says: "names /app/model", warning: true},
		{name: "path of another image, optional", folder: altered("--weights weights", "--weights /opt/model"), check: "C20", line: 8, says: "names /opt/model", warning: true},
		{name: "path in settings", folder: altered("--weights weights", "--weights weights --host settings.json").with("settings.json", "{\"a\": 1,\n \"b\": [\"/home/ubuntu/model\"]}"), check: "C20", line: 2, says: "names /home/ubuntu/model", warning: true},
		{name: "build path in a variable", folder: altered("exec python3", "export MODEL_DIR=/workspace/output/model\nexec python3"), check: "C20", line: 9, says: "/workspace/output/model"},
		{name: "build path in Python", folder: goodFolder().with("server.py", serverSource+"MODEL = \"/home/ubuntu/model\"\n"), check: "C20", line: 10, says: "/home/ubuntu/model", warning: true},
		{name: "mkdir", folder: altered("exec python3", "mkdir -p logs\nexec python3"), check: "C20", line: 8, says: "mkdir writes logs"},
		{name: "redirect", folder: altered("--weights weights", "--weights weights > server.log 2>&1"), check: "C20", line: 8, says: "writes server.log"},
		{name: "target in the submission", folder: altered(`"$PKG" transformers`, `"$SUBMISSION_DIR/lib" transformers`), check: "C20", line: 6, says: "writes lib"},
		{name: "chmod", folder: altered("exec python3", "chmod +x server.py\nexec python3"), check: "C20", line: 8, says: "chmod writes server.py"},
		{name: "not executable", folder: goodFolder().with("serve.sh", "#!/bin/sh\nexec \"$SUBMISSION_DIR/run\"\n").with("run", "exec python3 -u server.py"), check: "C18", line: 2, says: "is not executable"},
		{name: "absent program", folder: altered("exec python3", "nvcc --version\nexec python3"), check: "C20", line: 8, says: "calls nvcc"},
		{name: "absent helper", folder: altered("exec python3", ". ./env.sh\nexec python3"), check: "C20", line: 8, says: "env.sh"},
		{name: "from another folder", folder: altered("cd \"$(dirname \"$0\")\"\n", ""), check: "C20", line: 7, says: "own folder", warning: true},
		{name: "twice into one folder", folder: altered("export PYTHONPATH", "pip install --no-index -f wheels --target \"$PKG\" MarkupSafe\nexport PYTHONPATH"), check: "C20", line: 7, says: "second time", warning: true},
	})
	runClean(t, map[string]folder{
		"settings":         altered("--weights weights", "--weights weights --host settings.json").with("settings.json", `{"b": "weights", "_name_or_path": "/home/ubuntu/model"}`),
		"settings unnamed": goodFolder().with("settings.json", `{"b": "/home/ubuntu/model"}`),
		"image's python":   altered("exec python3", "exec /opt/venv/bin/python3"),
	})
	writable := func(o *Options) {
		o.Image.Mounts = append(o.Image.Mounts, image.Mount{Path: "/submission", ReadOnly: truth(false)})
	}
	o := graderOptions()
	writable(&o)
	if a := Analyse(altered("exec python3", "mkdir -p logs\nexec python3").submission(), o); len(a.Findings) > 0 {
		t.Errorf("writable submission: %s", listed(a))
	}
}

func TestEnvironmentFaults(t *testing.T) {
	hub := "import transformers\n" + serverSource
	runVectors(t, []vector{
		{name: "hub", folder: altered("HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 ", "").with("server.py", hub), check: "C21", line: 8, says: "HF_HUB_OFFLINE", warning: true},
		{name: "buffered", folder: altered(" PYTHONUNBUFFERED=1", ""), check: "C21", line: 8, says: "buffered", warning: true},
		{name: "libraries", folder: altered("exec python3", "export LD_LIBRARY_PATH=/usr/local/cuda/lib64\nexec python3"), check: "C21", line: 9, says: "/usr/local/cuda/lib64", warning: true},
		{name: "unset", folder: altered("exec python3", "echo $MODEL_DIR\nexec python3"), check: "C21", line: 8, says: "MODEL_DIR"},
		{name: "demanded", folder: altered("exec python3", ": \"${HF_TOKEN:?set it}\"\nexec python3"), check: "C21", line: 8, says: "HF_TOKEN"},
		{name: "argument", folder: altered("exec python3", "port=$1\nexec python3"), check: "C21", line: 8, says: "argument $1"},
		{name: "port", folder: altered("--port 8000", "--port 8080"), check: "C21", line: 8, says: "another port"},
		{name: "loopback", folder: altered("--port 8000", "--host 127.0.0.1"), check: "C21", line: 8, says: "loopback", warning: true},
		{name: "port in Python", folder: goodFolder().with("server.py", serverSource+"import uvicorn\nuvicorn.run(app, host='0.0.0.0', port=9000)\n"), check: "C21", line: 11, says: "another port", warning: true},
		{name: "loopback in Python", folder: goodFolder().with("server.py", serverSource+"import uvicorn\nuvicorn.run(app, host='127.0.0.1', port=args.port)\n"), check: "C21", line: 11, says: "loopback", warning: true},
		{name: "cache", folder: altered("exec python3 server.py --port 8000 --weights weights", "exec vllm serve weights --enforce-eager"), options: func(o *Options) { o.Image.Home = "" }, check: "C21", line: 8, says: "without saying where", warning: true},
	})
}

func TestNetworkFaults(t *testing.T) {
	runVectors(t, []vector{
		{name: "index", folder: altered("--no-index ", ""), check: "C22", line: 6, says: "--no-index"},
		{name: "uv", folder: altered("exec python3", "uv pip install --target /tmp/u fastapi\nexec python3"), check: "C22", line: 8, says: "uv pip install"},
		{name: "curl", folder: altered("exec python3", "curl -LO https://example.com/model.bin\nexec python3"), check: "C22", line: 8, says: "curl"},
		{name: "apt", folder: altered("exec python3", "apt-get update\nexec python3"), check: "C22", line: 8, says: "apt-get update"},
		{name: "git", folder: altered("exec python3", "git clone https://example.com/x /tmp/x\nexec python3"), check: "C22", line: 8, says: "git clone"},
		{name: "hub", folder: altered("exec python3", "huggingface-cli download Qwen/Qwen3-0.6B --local-dir /tmp/m\nexec python3"), check: "C22", line: 8, says: "huggingface-cli download"},
		{name: "repository", folder: altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c\nexec vllm serve --enforce-eager --model Qwen/Qwen3-0.6B"), check: "C22", line: 9, says: "Qwen/Qwen3-0.6B"},
		{name: "repository as a word", folder: altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c\nexec vllm serve Qwen/Qwen3-0.6B --enforce-eager"), check: "C22", line: 9, says: "Qwen/Qwen3-0.6B"},
		{name: "repository in Python", folder: goodFolder().with("server.py", serverSource+"import transformers\nt = transformers.AutoTokenizer.from_pretrained('Qwen/Qwen3-0.6B')\n"), check: "C22", line: 11, says: "Qwen/Qwen3-0.6B"},
		{name: "requirements", folder: altered("transformers\n", "-r requirements.txt\n").with("requirements.txt", "transformers @ https://example.com/t.whl\n"), check: "C22", line: 6, says: "requirements.txt names an address"},
		{name: "no wheel", folder: altered("transformers\n", "transformers accelerate\n"), check: "C22", line: 6, says: "accelerate"},
		{name: "no wheels", folder: altered("--find-links wheels", "--find-links wheelhouse"), check: "C22", line: 6, says: "wheelhouse, where none are"},
	})
	f := altered("transformers\n", "transformers || pip install --target /tmp/q transformers\n")
	runVectors(t, []vector{{name: "in a fallback", folder: f, check: "C22", line: 6, says: "--no-index", warning: true}})
	local := altered("exec python3 server.py --port 8000 --weights weights", "python3 server.py --weights weights &\nuntil curl -sf http://127.0.0.1:8000/health; do sleep 1; done\ntrap 'kill %1' TERM\nwait")
	if a := Analyse(local.submission(), graderOptions()); len(a.Findings) > 0 {
		t.Errorf("curl of itself: %s", listed(a))
	}
}

func TestFallbackFaults(t *testing.T) {
	vllm := func(body string) folder {
		return goodFolder().with("serve.sh", "#!/bin/bash\ncd \"$(dirname \"$0\")\"\nexport HF_HUB_OFFLINE=1 XDG_CACHE_HOME=/tmp/c\npip install --no-index -f wheels -t /tmp/p transformers\n"+body)
	}
	runVectors(t, []vector{
		{name: "drops a flag", folder: vllm("vllm serve weights --enforce-eager --language-model-only || vllm serve weights --enforce-eager\n"), check: "C24", line: 5, says: "without --language-model-only"},
		{name: "drops a flag under if", folder: vllm("if python3 -c 'import vllm'; then exec vllm serve weights --enforce-eager --language-model-only; fi\nexec vllm serve weights --enforce-eager\n"), check: "C24", line: 6, says: "without --language-model-only"},
		{name: "another model", folder: altered("exec python3", "nvidia-smi || exec python3 server.py --port 8000 --weights wheels\nexec python3"), check: "C24", line: 8, says: "another model"},
		{name: "another server", folder: altered("exec python3", "python3 -c 'import vllm' || exec python3 code/export.py a b\nexec python3"), check: "C24", line: 8, says: "another server"},
		{name: "another value", folder: altered("exec python3", "D=bfloat16; nvidia-smi || D=float16\nexec python3 server.py --weights weights --dtype $D\nexec python3"), check: "C24", line: 9, says: "changes --dtype", warning: true},
		{name: "once more", folder: altered("exec python3 server.py --port 8000 --weights weights", "python3 server.py --weights weights || exec python3 server.py --weights weights"), check: "C24", line: 8, says: "a second time", warning: true},
		{name: "after two failures", folder: altered("exec python3", "nvidia-smi || rocm-smi || exec python3 code/export.py a b\nexec python3"), check: "C24", line: 8, says: "another server"},
		{name: "case", folder: altered("exec python3", "case $(nvidia-smi -L) in *H100*) ;; *) exec python3 code/export.py a b ;; esac\nexec python3"), check: "C24", line: 8, says: "another server"},
		{name: "two servers", folder: altered("exec python3", "python3 server.py --port 8001 --weights weights &\nexec python3"), check: "C24", line: 9, says: "while another runs", warning: true},
		{name: "two servers on a port", folder: altered("exec python3", "python3 server.py --port 8000 --weights weights &\nexec python3"), check: "C24", line: 9, says: "in the background and holds the port"},
	})
}

func TestStartFaults(t *testing.T) {
	flashinfer := altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c USER=x\nexec vllm serve weights --enforce-eager").
		with("wheels/flashinfer_python-0.4.0-py3-none-any.whl", "size 1000")
	large := goodFolder()
	for _, name := range strings.Fields("torch triton nvidia_cudnn_cu12 nvidia_cublas_cu12") {
		large["wheels/"+name+"-1-py3-none-any.whl"] = "size 1100000000"
	}
	runVectors(t, []vector{
		{name: "flashinfer", folder: flashinfer, check: "C15", line: 9, says: "flashinfer"},
		{name: "flashinfer, nobody says", folder: flashinfer, options: silent, check: "C15", line: 9, says: "flashinfer"},
		{name: "no compiler", folder: goodFolder().with("server.py", serverSource+"import torch\nf = torch.compile(g)\n"), options: func(o *Options) {
			o.Image.Programs["gcc"] = false
		}, check: "C15", line: 11, says: "torch.compile"},
		{name: "compiler, nobody says", folder: goodFolder().with("server.py", serverSource+"import torch\nf = torch.compile(g)\n"), options: func(o *Options) {
			delete(o.Image.Programs, "gcc")
		}, check: "C15", line: 11, says: "nobody says", warning: true},
		{name: "vllm compiles", folder: altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c\nexec vllm serve weights"), check: "C15", line: 9, says: "captures graphs", warning: true},
		{name: "large wheels", folder: large, check: "C31", line: 6, says: "large part of a Python", warning: true},
		{name: "too long", folder: large, options: func(o *Options) { o.StartSeconds = 60 }, check: "C31", line: 6, says: "longer than its limit"},
		{name: "large weights", folder: goodFolder().with("weights/model.safetensors", "size 200000000000"), check: "C31", line: 6, says: "large part of its limit", warning: true},
	})
	for _, extra := range []string{"flashinfer_cubin-0.4.0", "flashinfer_jit_cache-0.4.0"} {
		f := flashinfer.with("wheels/"+extra+"-py3-none-any.whl", "size 1000")
		if a := Analyse(f.submission(), graderOptions()); len(a.Findings) > 0 {
			t.Errorf("%s: %s", extra, listed(a))
		}
	}
}

func TestPackageFaults(t *testing.T) {
	mapped := "import torch\nfrom transformers import AutoModelForCausalLM\nm = AutoModelForCausalLM.from_pretrained('weights', device_map='cuda')\n" + serverSource
	f := goodFolder().with("server.py", mapped)
	complete := func(o *Options) { o.Image.Complete, o.Image.Distributions = true, map[string]string{"torch": "2.7"} }
	partly := func(o *Options) { o.Image.Distributions = map[string]string{"torch": "2.7"} }
	without := func(o *Options) { partly(o); o.Image.Absent = []string{"accelerate"} }
	mxfp4 := goodFolder().with("server.py", "import torch\nimport transformers\n"+serverSource).with("weights/config.json", `{"quantization_config":{"quant_method":"mxfp4"}}`).with("wheels/accelerate-1.15.0-py3-none-any.whl", "size 1000")
	templated := server("import transformers\nt.apply_chat_template([])\n")
	runVectors(t, []vector{
		{name: "accelerate for a dictionary", folder: goodFolder().with("server.py", "import torch\nimport transformers\nkw = {'device_map': 'cuda'}\nm = transformers.AutoModel.from_pretrained('weights', **kw)\n"+serverSource), options: without, check: "C09", line: 4, says: "accelerate"},
		{name: "accelerate for a device that another module sets", folder: goodFolder().with("server.py", "import torch, model\ntorch.set_default_device('cuda')\n"+serverSource).with("model.py", "import transformers\ndef load(): return transformers.AutoModel.from_pretrained('weights')\n"), options: without, check: "C09", line: 2, says: "accelerate"},
		{name: "accelerate, perhaps", folder: goodFolder().with("server.py", "import torch\nimport transformers\nkw = {**{'device_map': 'cuda'}}\nm = transformers.AutoModel.from_pretrained('weights', **kw)\n"+serverSource), options: without, check: "C09", line: 4, says: "accelerate", warning: true},
		{name: "accelerate, nobody says", folder: f, options: silent, check: "C09", line: 3, says: "accelerate"},
		{name: "accelerate, complete image", folder: f, options: complete, check: "C09", line: 3, says: "accelerate"},
		{name: "accelerate, image of which more may be", folder: f, options: partly, check: "C09", line: 3, says: "accelerate", warning: true},
		{name: "accelerate, known to be absent", folder: f, options: without, check: "C09", line: 3, says: "accelerate"},
		{name: "a config's quantization", folder: mxfp4, options: complete, check: "C09", says: "kernels"},
		{name: "a config's quantization, nobody says", folder: mxfp4, options: silent, check: "C09", says: "kernels", warning: true},
		{name: "import", folder: goodFolder().with("server.py", "import torch\nimport einops\n"+serverSource), options: complete, check: "C09", line: 2, says: "einops"},
		{name: "in an imported file", folder: goodFolder().with("server.py", "from lib import chat\n"+serverSource).with("lib/chat.py", "import transformers\nt.apply_chat_template([])\n"), options: complete, check: "C09", line: 2, says: "jinja2"},
		{name: "old jinja2", folder: templated.with("wheels/jinja2-3.0.3-py3-none-any.whl", "size 1000"), check: "C09", line: 11, says: "3.1 or later"},
		{name: "old jinja2 of the image", folder: templated, options: func(o *Options) { o.Image.Distributions = map[string]string{"jinja2": "2.11.3"} }, check: "C09", line: 11, says: "3.1 or later"},
		{name: "hidden module", folder: goodFolder().with("server.py", "import json\n"+serverSource).with("json.py", "x = 1\n"), check: "C23", says: "hides Python's own module json"},
		{name: "relative import", folder: altered("exec python3 server.py", "exec python3 -m app.main").with("app/__init__.py", "#\n").with("app/main.py", "from .chat import x\n"+serverSource), check: "C23", line: 1, says: "imports .chat"},
		{name: "nothing installed", folder: goodFolder().with("serve.sh", "#!/bin/sh\ncd \"$SUBMISSION_DIR\" || exit 1\nexec python3 -u server.py --weights weights\n"), check: "C09", says: "installs none of the 4 wheels", warning: true},
	})
	runClean(t, map[string]folder{"new jinja2": templated.with("wheels/jinja2-3.1.6-py3-none-any.whl", "size 1000")})
	good := f.with("wheels/accelerate-1.15.0-py3-none-any.whl", "size 1000").with("wheels/torch-2.7.0-cp312-cp312-any.whl", "size 1000")
	for _, change := range []func(*Options){complete, partly, func(*Options) {}} {
		o := graderOptions()
		change(&o)
		if a := Analyse(good.submission(), o); len(a.Findings) > 0 {
			t.Error(listed(a))
		}
	}
	o := graderOptions()
	complete(&o)
	o.Image.Distributions["accelerate"] = "1.0"
	if a := Analyse(f.submission(), o); len(a.Findings) > 0 {
		t.Error(listed(a))
	}
}

// The scripts whose starts failed: two faults of arguments and mounts, and a
// fallback that serves without the option that the task demands.
func TestFailedStarts(t *testing.T) {
	const text = `#!/usr/bin/env bash
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
MODEL=/dev/shm/model
PYLIBS=/dev/shm/pylibs
log() { echo "[serve.sh] $*"; }
log "dequantizing weights to $MODEL ..."
python3 "$HERE/code/export.py" "$HERE" "$MODEL" --skip-mv &
DQ=$!
mkdir -p "$PYLIBS"
python3 -m pip install --no-index --find-links "$HERE/wheels" --target "$PYLIBS" transformers >/tmp/pip.log 2>&1 || { tail -50 /tmp/pip.log; exit 1; }
wait $DQ || exit 1
export PYTHONPATH="$PYLIBS${PYTHONPATH:+:${PYTHONPATH}}" HF_HUB_OFFLINE=1 USER=grader
ARGS=(--model "$MODEL" --host 0.0.0.0 --port "${PORT:-8000}" --enforce-eager --language-model-only)
if ! python3 -c "import vllm" 2>/dev/null; then
  log "falling back"
  exec python3 -m vllm.entrypoints.openai.api_server --model "$MODEL" --host 0.0.0.0 --port 8000 --enforce-eager
fi
exec python3 -m vllm.entrypoints.openai.api_server "${ARGS[@]}"
`
	a := Analyse(goodFolder().with("serve.sh", text).submission(), graderOptions())
	for line, want := range map[int]string{8: "code/export.py: unrecognized arguments: --skip-mv", 11: "/dev/shm is mounted noexec", 19: "PYTHONPATH has /dev/shm/pylibs", 17: "without --language-model-only"} {
		if !slices.ContainsFunc(a.Findings, func(f shell.Finding) bool { return !f.Warning && f.Line == line && strings.Contains(f.Problem, want) }) {
			t.Errorf("no %q at line %d in\n%s", want, line, listed(a))
		}
	}
	fixed := strings.NewReplacer("--skip-mv", "--skip-mtp", "/dev/shm/", "/tmp/", "exec python3 -m vllm.entrypoints.openai.api_server --model \"$MODEL\" --host 0.0.0.0 --port 8000 --enforce-eager\n", "exit 1\n").Replace(text)
	if a := Analyse(goodFolder().with("serve.sh", fixed).submission(), graderOptions()); len(a.Findings) > 0 || a.Main < 0 {
		t.Error(listed(a))
	}
}
