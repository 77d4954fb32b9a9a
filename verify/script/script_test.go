package script

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"slipway/verify/image"
	"slipway/verify/script/shell"
)

// folder is a submission in memory: text by path. Files that begin with "#!",
// and serve.sh, are executable.
type folder map[string]string

func (f folder) with(p, text string) folder {
	g := maps.Clone(f)
	if g[p] = text; text == "" {
		delete(g, p)
	}
	return g
}

func (f folder) submission() Submission {
	var s Submission
	for _, p := range slices.Sorted(maps.Keys(f)) {
		file := shell.File{Path: p, Size: int64(len(f[p])), Executable: p == EntryPath || strings.HasPrefix(f[p], "#!"), Data: []byte(f[p])}
		var size int64
		if n, _ := fmt.Sscanf(f[p], "size %d", &size); n == 1 {
			file.Size, file.Data = size, nil
		}
		if strings.HasPrefix(f[p], "\x7fELF") {
			file.Head, file.Data, file.Executable = file.Data, nil, true
		}
		s.Files = append(s.Files, file)
	}
	return s
}

const serverSource = `import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--host", default="0.0.0.0")
parser.add_argument("--port", "-p", type=int, default=8000)
parser.add_argument("--weights", required=True)
parser.add_argument("--dtype", choices=["float16", "bfloat16"])
parser.add_argument("--skip-mtp", action="store_true")
parser.add_argument("--text-only", action="store_true")
args = parser.parse_args()
`

const exportSource = `import argparse
parser = argparse.ArgumentParser()
parser.add_argument("source")
parser.add_argument("target")
parser.add_argument("--skip-mtp", action="store_true")
parser.parse_args()
`

const goodScript = `#!/bin/bash
set -euo pipefail
cd "$(dirname "$0")"
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 PYTHONUNBUFFERED=1
PKG=$(mktemp -d /tmp/pkg.XXXXXX)
python3 -m pip install --no-index --find-links wheels --target "$PKG" transformers
export PYTHONPATH="$PKG${PYTHONPATH:+:$PYTHONPATH}"
exec python3 server.py --port 8000 --weights weights
`

func goodFolder() folder {
	return folder{
		"serve.sh": goodScript, "server.py": serverSource, "code/export.py": exportSource,
		"weights/model.safetensors":                     "size 1000000",
		"wheels/transformers-4.57.1-py3-none-any.whl":   "size 1000",
		"wheels/MarkupSafe-3.0.4-cp312-cp312-any.whl":   "size 1000",
		"wheels/typing_extensions-4-py3-none-any.whl":   "size 1000",
		"wheels/nvidia_nccl_cu12-2.26-py3-none-any.whl": "size 1000",
	}
}

func truth(b bool) *bool { return &b }

// graderImage is a machine of which much is known.
func graderImage() *image.Image {
	user := 1000
	return &image.Image{
		Schema: 1, Submission: "/submission", Home: "/home/grader", User: &user, CPUs: 4,
		Python:   &image.Python{Version: "3.12", Path: "/opt/venv/bin/python3"},
		Programs: map[string]bool{"gcc": true, "ninja": false, "nvcc": false, "curl": true},
		Mounts:   []image.Mount{{Path: "/dev/shm", NoExec: truth(true), Bytes: 64 << 20}, {Path: "/tmp", NoExec: truth(false), Bytes: 50e9}},
	}
}

func graderOptions() Options { return Options{Image: graderImage(), Port: 8000, StartSeconds: 300} }

func listed(a Analysis) string {
	var b strings.Builder
	for _, f := range a.Findings {
		level := "error"
		if f.Warning {
			level = "warning"
		}
		fmt.Fprintf(&b, "%s %s %s:%d: %s [want %s] [got %s] [hint %s]\n", f.Check, level, f.Path, f.Line, f.Problem, f.Want, f.Got, f.Hint)
	}
	for _, n := range a.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	if a.Undecided != "" {
		fmt.Fprintf(&b, "undecided: %s\n", a.Undecided)
	}
	return b.String()
}

// vector is a submission with one fault.
type vector struct {
	name    string
	folder  folder
	options func(*Options)
	check   string // of the one error, or of the warning
	line    int    // 0: any
	says    string // part of the problem
	warning bool
}

// line replaces a line of the good script, or puts one before it.
func altered(old, replacement string) folder {
	if !strings.Contains(goodScript, old) {
		panic(old)
	}
	return goodFolder().with("serve.sh", strings.Replace(goodScript, old, replacement, 1))
}

func runVectors(t *testing.T, vectors []vector) {
	t.Helper()
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			o := graderOptions()
			if v.options != nil {
				v.options(&o)
			}
			a := Analyse(v.folder.submission(), o)
			found := false
			for _, f := range a.Findings {
				hit := f.Check == v.check && strings.Contains(f.Problem, v.says) && (v.line == 0 || v.line == f.Line)
				found = found || hit && f.Warning == v.warning
				if !f.Warning && !hit {
					t.Errorf("another error: %s:%d: %s", f.Path, f.Line, f.Problem)
				}
			}
			if !found || a.Undecided != "" {
				t.Errorf("no %s %q at line %d:\n%s", v.check, v.says, v.line, listed(a))
			}
		})
	}
}

// Submissions that are well have no finding at all.
func TestGoodScripts(t *testing.T) {
	own, err := os.ReadFile("../../bundle/serve.sh")
	if err != nil {
		t.Fatal(err)
	}
	native := folder{"runtime/serve": "\x7fELF program", "weights/model.safetensors": "size 1000",
		"serve.sh": strings.Replace(string(own), "@SETTINGS@", `--device cpu --port 8000 --model abacus --thinking off --answer-reserve 512 "$@"`, 1)}
	waits := `cd "$(dirname "$0")" || exit 1
trap 'kill $PID 2>/dev/null' TERM INT EXIT
ulimit -n 65535 || true
export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4
exec 2>&1
for i in 1 2 3; do
  if [ -x /opt/venv/bin/python3 ]; then PY=/opt/venv/bin/python3; break; fi
  PY=python3
done
echo "using $PY ($($PY --version))"
$PY -m pip install --no-index --find-links wheels --target /tmp/p transformers
$PY -u server.py --weights weights --port 8000 &
PID=$!
for i in $(seq 1 300); do
  curl -sf http://127.0.0.1:8000/health >/dev/null && break
  kill -0 $PID 2>/dev/null || { echo dead; exit 1; }
  sleep 1
done
wait $PID
`
	once := `set -euo pipefail
ROOT=$(dirname "$(realpath "$0")")
T=${TMPDIR:-/tmp}/deps
if [[ ! -d "$T" ]]; then
  python3 -m pip install --quiet --no-deps --no-index --target "$T" "$ROOT"/wheels/*.whl
fi
export PYTHONPATH="$T:$ROOT"
nvidia-smi || true
command -v nvcc >/dev/null 2>&1 && echo has nvcc
GPUS=$(python3 -c 'import torch; print(torch.cuda.device_count())')
if (( GPUS > 1 )); then echo many; fi
exec python3 -u -m server --weights "$ROOT/weights" --host 0.0.0.0
`
	posix := `DIR=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
: "${PORT:=8000}"
while getopts p: o; do case $o in p) PORT=$OPTARG;; *) exit 2;; esac; done
[ -f "$DIR/weights/model.safetensors" ] || { echo missing >&2; exit 1; }
pip install --no-index -f "$DIR/wheels" -t /tmp/p transformers
set -- --weights "$DIR/weights" --port "$PORT"
exec /usr/bin/env PYTHONUNBUFFERED=1 python3 "$DIR/server.py" "$@"
`
	with := func(body string) folder { return goodFolder().with("serve.sh", "#!/bin/bash\n"+body) }
	for name, f := range map[string]folder{
		"typical":           goodFolder(),
		"waits":             with(waits),
		"installs once":     with(once),
		"POSIX":             goodFolder().with("serve.sh", "#!/bin/sh\n"+posix),
		"bundle's own":      native,
		"minimal":           {"serve.sh": "#!/bin/sh\nexec python3 -u \"$(dirname \"$0\")/server.py\"\n", "server.py": "print(1)\n"},
		"SUBMISSION_DIR":    altered(`cd "$(dirname "$0")"`, `cd "${SUBMISSION_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}"`),
		"array":             with("cd \"$(dirname -- \"$(readlink -f -- \"$0\")\")\"\nargs=(--port \"${PORT:=8000}\")\nargs+=(--weights weights)\nexport HF_HUB_OFFLINE=1\npip install --no-index -f wheels -t /tmp/p transformers\nexec python3 -u server.py \"${args[@]}\"\n"),
		"function":          with("log() { echo \"[serve] $*\" >&2; }\nmain() { log start; local w=$1; exec python3 -u \"$SUBMISSION_DIR/server.py\" --weights \"$w\"; }\n: wheels\npip install --no-index -f \"$SUBMISSION_DIR/wheels\" -t /tmp/p transformers\nmain \"$SUBMISSION_DIR/weights\"\n"),
		"venv":              with("python3 -m venv /tmp/venv\n. /tmp/venv/bin/activate\n/tmp/venv/bin/pip install --no-index --find-links=/submission/wheels transformers\nexec /tmp/venv/bin/python -u /submission/server.py --weights=/submission/weights -p8000\n"),
		"export to tmp":     altered("exec python3", "python3 code/export.py weights /tmp/model --skip-mtp\nexec python3"),
		"abbreviated":       altered("--weights weights", "--wei weights --skip"),
		"guarded log":       altered("exec python3", "mkdir -p logs 2>/dev/null || true\nexec python3"),
		"log in tmp":        altered("exec python3", "mkdir -p /tmp/logs\nexec > /tmp/logs/out.txt 2>&1\nexec python3"),
		"ends on failure":   altered("exec python3", "python3 -c 'import transformers' || { echo broken >&2; exit 1; }\nexec python3"),
		"condition":         altered("exec python3", "if [ ! -f weights/model.safetensors ]; then echo no weights; exit 1; fi\n[[ -d wheels && $(ls wheels | wc -l) -gt 0 ]] || exit 1\nexec python3"),
		"loop":              altered("exec python3", "for w in wheels/*.whl; do [[ $w == *.whl ]] || exit 1; done\nexec python3"),
		"here-document":     altered("exec python3", "cat > /tmp/settings.json <<EOF\n{\"here\": \"$PWD\"}\nEOF\nexec python3"),
		"processors":        altered("exec python3", "export OMP_NUM_THREADS=$(nproc)\nexec python3"),
		"unknown processor": altered("exec python3", "N=$(nvidia-smi -L | wc -l)\nif [ \"$N\" -gt 1 ]; then echo several; fi\nexec python3"),
		"another script":    goodFolder().with("serve.sh", "#!/bin/sh\nexec bash \"$(dirname \"$0\")/run.sh\" 8000\n").with("run.sh", strings.ReplaceAll(goodScript, "8000", "$1")),
		"case":              altered("exec python3", "case \"${MODE:-chat}\" in chat) extra=--text-only ;; *) exit 2 ;; esac\nexec python3 server.py $extra --weights weights\nexec python3"),
		"package":           goodFolder().with("serve.sh", "#!/bin/sh\ncd \"$SUBMISSION_DIR\" || exit 1\npip install --no-index -f wheels -t /tmp/p transformers\nexport PYTHONPATH=/tmp/p:$0\nexec env PYTHONUNBUFFERED=1 python3 -m app --weights weights\n").with("app/__main__.py", serverSource).with("app/__init__.py", "#\n"),
	} {
		t.Run(name, func(t *testing.T) {
			o := graderOptions()
			a := Analyse(f.submission(), o)
			if len(a.Findings) > 0 || a.Undecided != "" || a.Main < 0 {
				t.Error(listed(a))
			}
			o.Image = nil
			for _, f := range Analyse(f.submission(), o).Findings {
				if !f.Warning {
					t.Errorf("without an image: %s:%d: %s", f.Path, f.Line, f.Problem)
				}
			}
		})
	}
}

// The real command line and its variables are known, and nothing ran.
func TestMainCommand(t *testing.T) {
	f := altered("exec python3 server.py", "W=weights N=$((4*2))\nexec nohup env -u X OMP_NUM_THREADS=$N python3 -u \"$PWD/server.py\"")
	a := Analyse(f.submission(), graderOptions())
	if a.Main < 0 {
		t.Fatal(listed(a))
	}
	c := a.Commands[a.Main]
	if want := []string{"python3", "-u", "/submission/server.py", "--port", "8000", "--weights", "weights"}; !slices.Equal(c.Argv, want) || !c.Exec || c.Line != 9 || c.Branch != "" {
		t.Errorf("%+v", c)
	}
	want := map[string]string{"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONUNBUFFERED": "1", "PYTHONPATH": "/tmp/pkg.XXXXXX", "OMP_NUM_THREADS": "8"}
	if !maps.Equal(c.Variables, want) {
		t.Errorf("variables %v", c.Variables)
	}
}

// Plain sh has export as a command like any other.
func TestExportOfPlainShell(t *testing.T) {
	f := goodFolder().with("serve.sh", "#!/bin/sh\nx='a b'\nexport FIRST=1 SECOND=\"$x\"\nTHIRD=3\nexport THIRD\nexec python3 -u \"$SUBMISSION_DIR/server.py\" --weights \"$SUBMISSION_DIR/weights\"\n")
	a := Analyse(f.submission(), graderOptions())
	want := map[string]string{"FIRST": "1", "SECOND": "a b", "THIRD": "3"}
	if a.Main < 0 || !maps.Equal(a.Commands[a.Main].Variables, want) {
		t.Errorf("%v\n%s", a.Commands, listed(a))
	}
}

// The same submission gives the same analysis.
func TestDeterministic(t *testing.T) {
	f := altered("exec python3", "curl -f localhost:8000/health &\nls wheels | head -2 | while read -r w; do echo $w; python3 -c 1 || pip install $w; done\nwget http://x/y || git clone z\nexec python3")
	first := listed(Analyse(f.submission(), graderOptions()))
	for range 5 {
		if again := listed(Analyse(f.submission(), graderOptions())); again != first {
			t.Fatalf("%s\nthen\n%s", first, again)
		}
	}
}

// Scripts that do not end by themselves are cut short.
func TestBounds(t *testing.T) {
	for name, body := range map[string]string{
		"loop":       "while true; do :; done\n",
		"loops":      "for i in $(seq 1 100); do for j in $(seq 1 100); do for k in $(seq 1 100); do :; done; done; done\n",
		"recursion":  "f() { f; f; }\nf\n",
		"text":       "x=aaaaaaaaaaaaaaaa\nfor i in $(seq 1 100); do x=$x$x; done\n",
		"self":       "bash serve.sh\n",
		"source":     ". ./serve.sh\n",
		"eval":       "x='eval \"$x\"'\neval \"$x\"\n",
		"branches":   strings.Repeat("if nvidia-smi; then echo a; else echo b; fi\n", 200),
		"brackets":   strings.Repeat("(", 5000) + "\n",
		"braces":     "echo {1..1000}{1..1000}{1..1000}\n",
		"read":       "while read x; do echo $x; done < /dev/zero\n",
		"copies":     strings.Repeat("cp -r . /tmp/a\ncp -r /tmp /tmp/b\ncp -r /tmp/b/. /tmp/a/c\n", 40),
		"products":   "a=({1..200}); for i in {1..6}; do a=(\"${a[@]}\" \"${a[@]}\" \"${a[@]}\" \"${a[@]}\"); done\n",
		"questions":  strings.Repeat("if nvidia-smi; then A=1; else B=1; fi\n", 1300),
		"nested":     strings.Repeat("$(echo ", 200) + "a" + strings.Repeat(")", 200) + "\n",
		"here":       strings.Repeat("cat > /tmp/f <<EOF\n$X ${Y:-a}\nEOF\n", 1500),
		"endless":    "yes" + strings.Repeat(" | cat", 5000) + "\n",
		"processes":  "cat" + strings.Repeat(" <(echo a)", 3000) + "\n",
		"trap":       "f() { trap f ERR; false; }\nf\n",
		"names":      "a=b; b=a; echo $((a)) ${!a}; declare -n r=r; echo $r\n",
		"arithmetic": "for ((;;)); do ((x=2**62)); done\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := folder{"serve.sh": "#!/bin/bash\n" + body + "exec python3 -u server.py\n", "server.py": "1\n"}
			a := Analyse(f.submission(), graderOptions())
			t.Log(listed(a))
		})
	}
}

func FuzzAnalyse(f *testing.F) {
	f.Add(goodScript)
	f.Add("#!/bin/sh\nx=${y:?} a || b && c | d > e &\ncase $x in *) ;; esac\n[ -f a -o ! -d b ] && [[ a =~ b ]]\n")
	f.Add("trap 'f; exec x' ERR\nf() { mkdir a && sed -i s/a/b/ c; }\nf & wait $!\nkill %1; tar xf a -C b; dd of=/dev/shm/a bs=9G count=9; exec 3<>/dev/tcp/a/1\n")
	f.Add("for ((i=0;i<3;i++)); do a[i]=$i; done; declare -A m=([k]=v); echo ${m[k]} ${a[@]:1:2} <(x) $'a'\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			t.Skip()
		}
		a := Analyse(goodFolder().with("serve.sh", text+"\n").submission(), graderOptions())
		if a.Main >= len(a.Commands) {
			t.Error(a.Main)
		}
		for _, f := range a.Findings {
			if f.Problem == "" || f.Check == "" || strings.Contains(f.Problem+f.Got+f.Hint+f.Want, shell.Unknown) {
				t.Errorf("%+v", f)
			}
		}
	})
}
