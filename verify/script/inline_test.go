package script

import "testing"

// Python that stands in the script itself is read like a file, each fault beside
// a twin without it.
func TestInlinePythonFaults(t *testing.T) {
	before := func(text string) folder { return altered("exec python3", text+"\nexec python3") }
	here := func(code string) folder { return before("python3 - <<'EOF'\n" + code + "\nEOF") }
	unchecked := altered("set -euo pipefail\n", "")
	runVectors(t, []vector{
		{name: "address", folder: here("import urllib.request\nurllib.request.urlopen('https://example.com/m')"), check: "C22", line: 10, says: "example.com", warning: true},
		{name: "hub", folder: here("from transformers import AutoTokenizer\n\nAutoTokenizer.from_pretrained('Qwen/Qwen3-0.6B')"), check: "C22", line: 11, says: "Qwen/Qwen3-0.6B"},
		{name: "hub, on one line", folder: before(`python3 -c "import transformers; transformers.AutoTokenizer.from_pretrained('Qwen/Qwen3-0.6B')"`), check: "C22", line: 8, says: "Qwen/Qwen3-0.6B"},
		{name: "hub, without a dash", folder: before("python3 <<EOF\nimport transformers\ntransformers.AutoModel.from_pretrained('Qwen/Qwen3-0.6B')\nEOF"), check: "C22", line: 10, says: "Qwen/Qwen3-0.6B"},
		{name: "hub, by a pipe", folder: before("echo \"import transformers; transformers.AutoModel.from_pretrained('a/b')\" | python3 -"), check: "C22", line: 8, says: "a/b"},
		{name: "hub, by a here-string", folder: before("python3 - <<< \"import transformers; transformers.AutoModel.from_pretrained('a/b')\""), check: "C22", line: 8, says: "a/b"},
		{name: "write", folder: here("open('state.json', 'w').write('x')"), check: "C20", line: 9, says: "writes state.json", warning: true},
		{name: "package", folder: here("import os\nimport einops"), options: func(o *Options) {
			o.Image.Complete, o.Image.Distributions = true, map[string]string{"torch": "2.7"}
		}, check: "C09", line: 10, says: "einops"},
		{name: "package of a call", folder: here("from transformers import AutoModel\nAutoModel.from_pretrained('weights', device_map='cuda')"), check: "C09", line: 10, says: "accelerate", options: silent},
		{name: "variable", folder: here("import os\nprint(os.environ['MODEL_FOLDER'])"), check: "C21", line: 10, says: "MODEL_FOLDER"},
		{name: "folder of a build machine", folder: here("M = '/home/ubuntu/model'"), check: "C20", line: 9, says: "/home/ubuntu/model", warning: true},
		{name: "no Python", folder: here("print('a"), check: "C18", line: 9, says: "is no Python"},
		{name: "imported file", folder: here("import prepare").with("prepare.py", "import transformers\nt = transformers.AutoModel.from_pretrained('a/b')\n"), check: "C22", line: 2, says: "a/b", warning: true},
		{name: "server", folder: altered("exec python3 server.py --port 8000 --weights weights", "exec python3 -u - <<'EOF'\nimport uvicorn\nuvicorn.run(app, host='127.0.0.1', port=8000)\nEOF"), check: "C21", line: 10, says: "loopback", warning: true},
	})
	runClean(t, map[string]folder{
		"folder":           here("from transformers import AutoTokenizer\nAutoTokenizer.from_pretrained('weights')"),
		"write below /tmp": here("open('/tmp/state.json', 'w').write('x')"),
		"variable":         before("export MODEL_FOLDER=weights\npython3 - <<'EOF'\nimport os\nprint(os.environ['MODEL_FOLDER'])\nEOF"),
		"computed":         before("M=$(ls weights | head -1 | tr a b)\npython3 - <<EOF\nprint('$M')\nEOF"),
		"with arguments":   before("python3 - weights <<'EOF'\nimport sys\nprint(sys.argv[1])\nEOF"),
		"asked for":        before("if python3 - <<'EOF'\nimport einops\nEOF\nthen echo there; fi"),
		"data for a file":  before("python3 code/export.py weights /tmp/m <<'EOF'\nhttps://example.com ' ( \nEOF"),
		"not for Python":   before("cat > /tmp/a.py <<'EOF'\nopen('state', 'w')\nEOF"),
		"without set -e":   unchecked,
	})
}
