package script

import "testing"

// The ways in which scripts start a server besides the plain one, each with a
// fault that is found through it and a twin in which nothing is.
func TestWaysToStart(t *testing.T) {
	const plain = "exec python3 server.py --port 8000 --weights weights"
	way := func(text string) folder { return altered(plain, text) }
	skew := func(name, text string) vector {
		return vector{name: name, folder: way(text + " --bogus"), check: "C19", says: "--bogus"}
	}
	packaged := way("exec torchrun --nproc_per_node 1 -m app.main --weights weights").with("app/__init__.py", "#\n").with("app/main.py", serverSource)
	clean := map[string]folder{
		"signal ignored for a while": way("trap '' TERM\npython3 -c 'import transformers'\ntrap - TERM\n" + plain),
		"exec of all arguments":      way("set -- python3 server.py --weights weights\nexec \"$@\""),
		"words of a variable":        way("CMD=\"python3 server.py --weights weights\"\nexec $CMD"),
		"eval":                       way("CMD=\"python3 server.py --weights weights\"\neval \"exec $CMD\""),
		"shell -c":                   way("exec bash -c \"python3 server.py --weights weights\""),
		"shell -c with exec":         way("exec sh -c 'exec python3 server.py --weights weights'"),
		"env":                        way("exec env OMP_NUM_THREADS=4 python3 server.py --weights weights"),
		"nice":                       way("exec nice -n 5 ionice -c 2 stdbuf -oL python3 server.py --weights weights"),
		"log":                        way("exec > >(tee /tmp/log) 2>&1\nexec python3 server.py --weights weights"),
		"time limit of a check":      way("timeout 60 python3 -c 'import transformers'\n" + plain),
		"conda run":                  way("exec conda run --no-capture-output -n base python3 server.py --weights weights"),
		"torchrun":                   way("exec torchrun --nproc_per_node 1 server.py --weights weights"),
		"torchrun of a module":       packaged,
		"torch.distributed.run":      way("exec python3 -m torch.distributed.run --nproc_per_node=1 server.py --weights weights"),
		"accelerate launch":          way("exec accelerate launch --num_processes 1 server.py --weights weights"),
		"deepspeed":                  way("exec deepspeed --num_gpus 1 server.py --weights weights"),
		"function":                   way("serve() { local port=$1; shift; exec python3 server.py --port \"$port\" \"$@\"; }\nserve 8000 --weights weights"),
		"sourced settings":           way("source ./env.sh\nexec python3 server.py --weights \"$W\"").with("env.sh", "W=weights\n"),
		"sourced by a name":          way(". env.sh\nexec python3 server.py --weights \"$W\"").with("env.sh", "W=weights\n"),
		"default of a variable":      way(": \"${PORT:=8000}\"\nexec python3 server.py --weights \"${WEIGHTS_DIR:-weights}\" --port \"$PORT\""),
		"demanded, and given":        way("exec python3 server.py --weights \"${SUBMISSION_DIR:?}/weights\""),
		"trap of the end":            way("trap 'rm -rf \"$PKG\"' EXIT\n" + plain),
		"array of words":             way("run=(python3 -u server.py)\nrun+=(--weights weights)\nexec \"${run[@]}\""),
		"assignment in front":        way("OMP_NUM_THREADS=2 exec python3 server.py --weights weights"),
		"subshell that succeeds":     way("(cd weights && ls >/dev/null)\n" + plain),
		"while read":                 way("while read -r line; do export \"$line\"; done < settings\n"+plain).with("settings", "A=1\nB=2\n"),
		"quoted requirement":         altered("transformers\n", "'transformers[torch]>=4.5'\n"),
		"program of a target":        way("exec \"$PKG/bin/serve-it\" --anything"),
		"joined lines":               way("exec python3 server.py \\\n  --port 8000 \\\n  --weights weights"),
		"prlimit, numactl, taskset":  way("exec numactl --cpunodebind 0 taskset -c 0-3 python3 server.py --weights weights"),
		"read-only and exported":     way("declare -rx W=weights\nexec python3 server.py --weights \"$W\""),
		"command":                    way("command -v python3 >/dev/null\ncommand exec python3 server.py --weights weights"),
		"here-document with a dash":  way("cat > /tmp/x <<-EOF\n\ta\n\tEOF\n" + plain),
		"arithmetic that is not 0":   way("n=1; ((n++))\n" + plain),
		"pipe whose left side fails": altered("set -euo pipefail", "set -eu").with("serve.sh", altered("set -euo pipefail", "set -eu\nfalse | cat")["serve.sh"]),
	}
	runClean(t, clean)
	runVectors(t, []vector{
		skew("exec of all arguments", "set -- python3 server.py --weights weights --bogus\nexec \"$@\""),
		skew("words of a variable", "CMD=\"python3 server.py --weights weights\"\nexec $CMD"),
		skew("shell -c", "exec bash -c 'python3 server.py --weights weights \"$@\"' x"),
		skew("conda run", "exec conda run -n base python3 server.py --weights weights"),
		skew("micromamba run", "exec micromamba run -p /opt/env python3 server.py --weights weights"),
		skew("uv run", "exec uv run --offline --no-sync python3 server.py --weights weights"),
		skew("poetry run", "exec poetry run python server.py --weights weights"),
		skew("torchrun", "exec torchrun --nproc_per_node 1 server.py --weights weights"),
		skew("torch.distributed.run", "exec python3 -m torch.distributed.run --nproc_per_node=1 server.py --weights weights"),
		skew("deepspeed", "exec deepspeed server.py --weights weights"),
		skew("accelerate launch", "exec accelerate launch server.py --weights weights"),
		skew("array of words", "run=(python3 -u server.py)\nexec \"${run[@]}\" --weights weights"),
		{name: "torchrun of a module", folder: packaged.with("app/main.py", "import argparse\np = argparse.ArgumentParser()\np.add_argument('--port')\np.parse_args()\n"), check: "C19", says: "app/main.py: unrecognized arguments: --weights"},
		{name: "exec of no arguments", folder: way("exec \"$@\""), check: "C18", says: "starts no server"},
		{name: "time limit", folder: way("exec timeout 300 python3 server.py --weights weights"), check: "C18", line: 8, says: "timeout ends it"},
		{name: "ignored signal", folder: way("trap '' INT TERM\n" + plain), check: "C18", line: 9, says: "ignores SIGTERM", warning: true},
		{name: "cleared environment", folder: way("exec env -i PATH=\"$PATH\" python3 server.py --weights weights"), check: "C21", line: 8, says: "buffered", warning: true},
		{name: "variable taken away", folder: way("exec env -u PYTHONUNBUFFERED python3 server.py --weights weights"), check: "C21", line: 8, says: "buffered", warning: true},
		{name: "sourced with CR LF", folder: way("source ./env.sh\nexec python3 server.py --weights weights").with("env.sh", "W=weights\r\n"), check: "C18", line: 1, says: "CR LF"},
		{name: "called with CR LF", folder: way("bash setup.sh\n"+plain).with("setup.sh", "echo a\r\n"), check: "C18", line: 1, says: "CR LF"},
		{name: "sourced by a name under sh", folder: goodFolder().with("serve.sh", "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n: wheels\n. env.sh\nexec python3 -u server.py --weights weights\n").with("env.sh", "W=1\n"), check: "C20", line: 4, says: ". env.sh"},
		{name: "space after a backslash", folder: way("echo a \\ \n  : b\n" + plain), check: "C18", line: 8, says: "space after it"},
		{name: "installs nothing", folder: altered("transformers\n", "$NOTHING\n").with("serve.sh", altered("transformers\n", "${NOTHING:-}\n")["serve.sh"]), check: "C18", says: "installs nothing"},
		{name: "extras without quotes", folder: altered("python3 -m pip", "shopt -s nullglob\npython3 -m pip").with("serve.sh", altered("python3 -m pip install --no-index --find-links wheels --target \"$PKG\" transformers", "shopt -s nullglob\npython3 -m pip install --no-index --find-links wheels --target \"$PKG\" transformers MarkupSafe[x]")["serve.sh"]), check: "C18", line: 7, says: "no file"},
		{name: "sudo", folder: way("exec sudo python3 server.py --weights weights"), options: func(o *Options) { o.Image.Programs["sudo"] = false }, check: "C20", line: 8, says: "calls sudo"},
		{name: "last test of a function", folder: way("check() { [ -n \"${X:-}\" ] && echo x; }\ncheck\n" + plain), check: "C18", says: "ends with status 1"},
		{name: "last command of a pipe", folder: way("false | sort\n" + plain), check: "C18", says: "ends with status"},
	})
}
