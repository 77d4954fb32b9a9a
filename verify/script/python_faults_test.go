package script

import "testing"

// server is the good folder with more lines in its server, whose first stands
// at line 10.
func server(lines string) folder { return goodFolder().with("server.py", serverSource+lines) }

// What the served Python asks of other machines, each beside a twin that does not.
func TestNetworkOfPythonFaults(t *testing.T) {
	const load = "AutoTokenizer.from_pretrained"
	exported := func(f folder, text string) folder {
		return f.with("serve.sh", altered("exec python3", "export "+text+"\nexec python3")["serve.sh"])
	}
	fault := func(name, lines, says string, warning bool) vector {
		return vector{name: name, folder: server(lines), check: "C22", line: 11, says: says, warning: warning}
	}
	runVectors(t, []vector{
		fault("urlopen", "from urllib.request import urlopen\nurlopen('https://example.com/m')\n", "example.com", true),
		fault("requests", "import requests\nrequests.get(url='https://example.com/m')\n", "example.com", true),
		fault("httpx", "URL = 'https://example.com/m'\nhttpx.post(URL)\n", "example.com", true),
		fault("name", "import transformers\nt = transformers."+load+"('gpt2')\n", `"gpt2"`, false),
		fault("keyword", "import transformers\nt = "+load+"(pretrained_model_name_or_path='Qwen/Qwen3-0.6B')\n", "Qwen/Qwen3", false),
		fault("constant", "MODEL = 'Qwen/Qwen3-0.6B'\nimport transformers; t = transformers."+load+"(MODEL)\n", "Qwen/Qwen3", false),
		fault("pipeline", "from transformers import pipeline\np = pipeline('text-generation', model='Qwen/Qwen3-0.6B')\n", "Qwen/Qwen3", false),
		fault("vllm", "from vllm import LLM\nm = LLM('Qwen/Qwen3-0.6B')\n", "Qwen/Qwen3", false),
		fault("sglang", "import sglang\ne = sglang.Engine(model_path='Qwen/Qwen3-0.6B')\n", "Qwen/Qwen3", false),
		{name: "code of another repository", folder: server("import transformers\n").with("weights/config.json", `{"auto_map": {"AutoModel": "org/name--modeling.Model"}}`), check: "C22", says: "org/name", warning: true},
		fault("class of its own", "\nt = Model.from_pretrained('tiny')\n", "tiny", true),
		fault("perhaps", "if args.text_only:\n    t = transformers."+load+"('Qwen/Qwen3-0.6B')\n", "Qwen/Qwen3", true),
		fault("torch hub", "import torch\nm = torch.hub.load('pytorch/vision', 'resnet18')\n", "torch.hub.load", true),
		fault("nltk", "import nltk\nnltk.download('punkt')\n", "nltk.download", true),
		fault("tiktoken", "\ne = tiktoken.get_encoding('cl100k_base')\n", "tiktoken.get_encoding", false),
		fault("hub", "\nhf_hub_download(repo_id='Qwen/Qwen3-0.6B', filename='config.json')\n", "hf_hub_download", true),
		fault("data set", "\nd = load_dataset('wikitext', 'raw')\n", "load_dataset", true),
		fault("option", "from transformers import X\nparser.add_argument('--tok', default='Qwen/Qwen3-0.6B'); t = X.from_pretrained(args.tok)\n", "Qwen/Qwen3", true),
		fault("variable of the environment", "import transformers, os\nM = os.environ.get('M', 'Qwen/Qwen3-0.6B'); t = X.from_pretrained(M)\n", "Qwen/Qwen3", true),
		fault("variable in the call", "import transformers, os\nt = X.from_pretrained(os.getenv('M', 'Qwen/Qwen3-0.6B'))\n", "Qwen/Qwen3", true),
		fault("default", "import transformers\ndef load(p: str = 'Qwen/Qwen3-0.6B'): return X.from_pretrained(p)\n", "Qwen/Qwen3", true),
		fault("class", "import transformers\nclass C: name: str = 'Qwen/Qwen3-0.6B'\nt = X.from_pretrained(C.name)\n", "Qwen/Qwen3", true),
		fault("dictionary", "import transformers\nCFG = {'tok': 'Qwen/Qwen3-0.6B', 'n': 1}\nt = X.from_pretrained(CFG['tok'])\n", "Qwen/Qwen3", true),
		fault("f-string", "import transformers\nt = X.from_pretrained(f'Qwen/{n}')\n", "Qwen/{n}", true),
		fault("through another", "import transformers\nclass C: name = 'Qwen/Qwen3-0.6B'\np = C.name\nt = X.from_pretrained(p)\n", "Qwen/Qwen3", true),
		fault("local", "import transformers\ndef f(): p = 'Qwen/Qwen3-0.6B'; return X.from_pretrained(p)\n", "Qwen/Qwen3", true),
		{name: "of another module", folder: server("import transformers, settings\nt = X.from_pretrained(settings.MODEL)\n").with("settings.py", "MODEL = 'Qwen/Qwen3-0.6B'\n"), check: "C22", line: 1, says: "Qwen/Qwen3", warning: true},
		{name: "inline", folder: altered("exec python3", "python3 -c 'import nltk; nltk.download(\"punkt\")'\nexec python3"), check: "C22", line: 8, says: "nltk.download", warning: true},
		{name: "encodings elsewhere", folder: exported(server("\ne = tiktoken.get_encoding('o200k_base')\n"), "TIKTOKEN_CACHE_DIR=/submission/ranks"), check: "C22", line: 11, says: "tiktoken"},
	})
	runClean(t, map[string]folder{
		"served name":       server("import transformers\nNAME = 'Qwen/Qwen3-0.6B'\ndef models(): return {'id': NAME}\nt = X.from_pretrained(args.weights)\n"),
		"media type":        server("import transformers\ndef load(p='application/x-ndjson'): return X.from_pretrained(p)\n"),
		"folder by option":  server("import transformers\nparser.add_argument('--tok', default='weights/qwen-3')\nt = X.from_pretrained(args.tok)\n"),
		"cache by option":   server("import transformers\nparser.add_argument('--tok', default='a/b-1')\nt = X.from_pretrained(args.tok)\n").with("hub/models--a--b-1/snapshots/1/config.json", "{}"),
		"loopback":          server("requests.get('http://127.0.0.1:8000/health')\nURL = 'https://example.com/'\n"),
		"route":             server("@app.get('/health')\ndef health(): return {}\n"),
		"folders":           server("from vllm import LLM\nfrom transformers import pipeline\nm = LLM(model='weights')\np = pipeline('text-generation', model='weights')\n"),
		"own classes":       server("class Engine: pass\ne = Engine('small')\nf = LLM('small')\n"),
		"own code":          server("import transformers\n").with("weights/config.json", `{"auto_map": {"AutoModel": "modeling.Model"}}`),
		"folder":            server("MODEL = 'weights'\nt = X.from_pretrained(MODEL)\nu = X.from_pretrained(args.weights)\n"),
		"bound twice":       server("MODEL = 'Qwen/Qwen3-0.6B'\nMODEL = args.weights\nt = X.from_pretrained(MODEL)\n"),
		"parameter":         server("MODEL = 'Qwen/Qwen3-0.6B'\ndef load(MODEL):\n    return X.from_pretrained(MODEL)\n"),
		"hub's cache":       server("t = X.from_pretrained('a/b')\n").with("hub/models--a--b/snapshots/1/config.json", "{}"),
		"local torch hub":   server("m = torch.hub.load('weights', 'x', source='local')\n"),
		"data set of files": server("d = load_dataset('json', data_files='weights/a.json')\n"),
		"encodings":         exported(server("e = tiktoken.get_encoding('o200k_base')\n"), "TIKTOKEN_CACHE_DIR=/submission/ranks").with("ranks/fb374d419588a4632f3f557e76b4b70aebbca790", "size 1000"),
	})
}

func TestNetworkOfShellFaults(t *testing.T) {
	before := func(text string) folder { return altered("exec python3", text+"\nexec python3") }
	fault := func(name, text, says string) vector {
		return vector{name: name, folder: before(text), check: "C22", line: 8, says: says}
	}
	runVectors(t, []vector{
		fault("tcp", "exec 3<>/dev/tcp/example.com/80", "example.com"),
		fault("nc", "nc example.com 80 > /tmp/a", "nc"),
		fault("openssl", "openssl s_client -connect example.com:443", "openssl s_client"),
		fault("ssh", "ssh host true", "ssh"),
		fault("scp", "scp host:/model /tmp/model", "scp"),
		fault("rsync", "rsync -a host:/model /tmp/model", "rsync"),
	})
	runClean(t, map[string]folder{
		"tcp":     before("until (exec 3<>/dev/tcp/127.0.0.1/9) 2>/dev/null; do sleep 1; done"),
		"nc":      before("nc -z localhost 8000 || true"),
		"openssl": before("openssl version"),
		"rsync":   before("rsync -a weights/ /tmp/w/"),
	})
}

// Variables that the served Python needs as it is imported.
func TestVariablesOfPythonFaults(t *testing.T) {
	runVectors(t, []vector{
		{name: "needed", folder: server("import os\nFOLDER = os.environ[\"MODEL_FOLDER\"]\n"), check: "C21", line: 11, says: "MODEL_FOLDER"},
		{name: "needed by a name", folder: server("from os import environ\nFOLDER = environ['MODEL_FOLDER']\n"), check: "C21", line: 11, says: "MODEL_FOLDER"},
		{name: "needed by a part", folder: goodFolder().with("server.py", "import part\n"+serverSource).with("part.py", "import os\nX = os.environ['X']\n"), check: "C21", line: 2, says: "variable X", warning: true},
	})
	exported := altered("exec python3", "export MODEL_FOLDER=weights\nexec python3")
	runClean(t, map[string]folder{
		"default":     server("FOLDER = os.environ.get('MODEL_FOLDER', 'weights')\n"),
		"guarded":     server("if 'MODEL_FOLDER' in os.environ:\n    FOLDER = os.environ['MODEL_FOLDER']\n"),
		"expression":  server("FOLDER = os.environ['MODEL_FOLDER'] if 'MODEL_FOLDER' in os.environ else 'weights'\n"),
		"function":    server("def f(): return os.environ['MODEL_FOLDER']\ndef g():\n    return os.environ['MODEL_FOLDER']\n"),
		"try":         server("try:\n    FOLDER = os.environ['MODEL_FOLDER']\nexcept KeyError:\n    FOLDER = 'weights'\n"),
		"given":       server("HERE = os.environ['SUBMISSION_DIR']\n"),
		"set":         server("os.environ['MODEL_FOLDER'] = 'weights'\nFOLDER = os.environ['MODEL_FOLDER']\n"),
		"set default": server("os.environ.setdefault('MODEL_FOLDER', 'weights')\nFOLDER = os.environ['MODEL_FOLDER']\n"),
		"exported":    exported.with("server.py", serverSource+"FOLDER = os.environ['MODEL_FOLDER']\n"),
	})
}

// Modules that are not there, or hide others.
func TestModuleFaults(t *testing.T) {
	first := func(line string) folder { return goodFolder().with("server.py", line+"\n"+serverSource) }
	runVectors(t, []vector{
		{name: "package hides", folder: first("import random").with("random/__init__.py", "x = 1\n"), check: "C23", says: "hides Python's own module random"},
		{name: "nobody's", folder: first("from batches import Batch"), check: "C23", line: 1, says: "imports batches", warning: true},
	})
	runClean(t, map[string]folder{
		"package hides nothing": first("import json").with("random/__init__.py", "x = 1\n"),
		"package in a package":  first("import app.random").with("app/__init__.py", "").with("app/random/__init__.py", "x = 1\n"),
		"shipped":               first("from batches import Batch").with("batches.py", "Batch = 1\n"),
		"shipped elsewhere":     first("from batches import Batch").with("python/batches/core.py", "Batch = 1\n"),
		"vendored":              first("from batches import Batch").with("wheels/batches-1-py3-none-any.whl", "size 1000"),
		"optional":              first("try:\n    import batches\nexcept ImportError:\n    batches = None"),
	})
}
