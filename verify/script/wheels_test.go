package script

import (
	"archive/zip"
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
)

// zipped is a wheel in memory: text by member.
func zipped(t testing.TB, members map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(members[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// wheelOf reads a wheel as the verifier does, with the words of serve.sh.
func wheelOf(t testing.TB, file string, members map[string]string, serve string) Wheel {
	t.Helper()
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(serve, func(r rune) bool { return strings.ContainsRune(" \n\"$=/", r) }) {
		words[word] = true
	}
	data := zipped(t, members)
	w, err := ReadWheel(file, bytes.NewReader(data), int64(len(data)), words)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

const tinyMain = "from .cli import main\nmain()\n"

func tinyWheel() map[string]string {
	return map[string]string{
		"tinyserver/__init__.py": "", "tinyserver/__main__.py": tinyMain, "tinyserver/cli.py": "def main():\n" + strings.ReplaceAll(serverSource, "\n", "\n  ") + "\n",
		"tinyserver/other.py":                       "x = 1\n",
		"tinyserver-1.0.dist-info/entry_points.txt": "[console_scripts]\ntinyserve = tinyserver.cli:main\n\n[other]\nignored = tinyserver.other\n",
	}
}

func TestProgramsOfWheels(t *testing.T) {
	const at = "wheels/tinyserver-1.0-py3-none-any.whl"
	serve := func(line string) folder {
		return altered("exec python3 server.py --port 8000 --weights weights", line).with(at, "size 1000")
	}
	for _, v := range []struct{ name, line, says string }{
		{"module", "exec python3 -m tinyserver --port 8000 --weights weights", ""},
		{"module, unknown option", "exec python3 -m tinyserver --prot 8000 --weights weights", at + ": tinyserver/cli.py: unrecognized arguments: --prot"},
		{"module, required option", "exec python3 -m tinyserver --port 8000", "--weights is not given"},
		{"module below", "exec python3 -m tinyserver.cli --weights weights --bogus", "tinyserver/cli.py: unrecognized arguments: --bogus"},
		{"console script", "exec tinyserve --weights weights", ""},
		{"console script, unknown option", "exec tinyserve --weights weights --bogus", "tinyserver/cli.py: unrecognized arguments: --bogus"},
		{"console script of a target", "exec \"$PKG/bin/tinyserve\" --weights weights --dtype float8", `--dtype does not take "float8"`},
		{"another module", "exec python3 -u -m elsewhere --bogus", ""},
	} {
		t.Run(v.name, func(t *testing.T) {
			f := serve(v.line)
			s := f.submission()
			s.Wheels = []Wheel{wheelOf(t, at, tinyWheel(), f["serve.sh"])}
			if _, kept := s.Wheels[0].Sources["tinyserver/other.py"]; kept {
				t.Error("keeps what nothing starts")
			}
			found := false
			for _, finding := range Analyse(s, graderOptions()).Findings {
				found = found || !finding.Warning && finding.Check == "C19" && v.says != "" && strings.Contains(finding.Problem, v.says) && finding.Line == 8
				if !finding.Warning && (v.says == "" || !strings.Contains(finding.Problem, v.says)) {
					t.Errorf("another error: %+v", finding)
				}
			}
			if found != (v.says != "") {
				t.Error(listed(Analyse(s, graderOptions())))
			}
		})
	}
}

// A shipped server's own source decides which options it has.
func TestOptionsOfServersWheel(t *testing.T) {
	const at = "wheels/vllm-0.11.0-cp38-abi3-manylinux1_x86_64.whl"
	members := map[string]string{
		"vllm/engine/arg_utils.py":            "g.add_argument('--model', **k)\ng.add_argument('--max-model-len', **k)\ng.add_argument('--tensor-parallel-size', '-tp', **k)\ng.add_argument('--enforce-eager', **k)\ng.add_argument('--limit-mm-per-prompt', **k)\ng.add_argument('--dtype', **k)\ng.add_argument('--seed', **k)\n",
		"vllm/entrypoints/openai/cli_args.py": "class FrontendArgs:\n    host: str | None = None\n    port: int = 8000\n    enable_auto_tool_choice: bool = False\n",
		"vllm/model_executor/x.py":            "add_argument('--skip-mv')\n",
	}
	for _, v := range []struct{ start, options, says, hint string }{
		{"vllm serve weights", "--port 8000 --enforce-eager --no-enable-auto-tool-choice --max_model_len 4096 --limit-mm-per-prompt.image 0 -tp 1", "", ""},
		{"vllm serve weights", "--enforce-eager --skip-mv", "vllm of " + at + " has no option --skip-mv", ""},
		{"vllm serve weights", "--enforce-eager --max-modle-len 4096", "has no option --max-modle-len", "--max-model-len"},
		{"vllm serve weights", "--enforce-eager --reasoning-parser qwen3 --enable-reasoning", "has no option --enable-reasoning", ""},
		{"python3 -m vllm.entrypoints.openai.api_server --model weights", "--enforce-eager --skip-mv", "has no option --skip-mv", ""},
	} {
		t.Run(v.options, func(t *testing.T) {
			f := altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c\nexec "+v.start+" "+v.options).with(at, "size 1000")
			s := f.submission()
			s.Wheels = []Wheel{wheelOf(t, at, members, f["serve.sh"])}
			found := v.says == ""
			a := Analyse(s, graderOptions())
			for _, finding := range a.Findings {
				if finding.Check == "C19" {
					found = found || !finding.Warning && strings.Contains(finding.Problem, v.says) && strings.Contains(finding.Hint, v.hint)
					if v.says == "" {
						t.Errorf("%+v", finding)
					}
				}
			}
			if !found {
				t.Error(listed(a))
			}
		})
	}
}

// What is no wheel, or lies about itself, is an error and never more.
func FuzzReadWheel(f *testing.F) {
	f.Add(zipped(f, tinyWheel()))
	f.Add([]byte("PK\x05\x06"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := ReadWheel("wheels/tinyserver-1.0-py3-none-any.whl", bytes.NewReader(data), int64(len(data)), map[string]bool{"tinyserver": true, "tinyserve": true})
		if err == nil && w.Distribution != "tinyserver" {
			t.Errorf("%+v", w)
		}
	})
}
