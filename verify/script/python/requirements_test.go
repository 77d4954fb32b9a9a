package python

import (
	"slices"
	"strings"
	"testing"
)

func TestRequirements(t *testing.T) {
	const head = "import torch, transformers\nfrom transformers import *\n"
	for _, test := range []struct{ name, source, want string }{
		{"device_map", head + "m = AutoModelForCausalLM.from_pretrained(p, device_map='cuda')", "accelerate"},
		{"device_map by a variable", head + "m = transformers.AutoModel.from_pretrained(p, device_map=d)", "accelerate"},
		{"no device_map", head + "m = AutoModel.from_pretrained(p, device_map=None).to('cuda')", ""},
		{"tp_plan", head + "m = AutoModel.from_pretrained(p, tp_plan='auto')", "accelerate"},
		{"low_cpu_mem_usage", head + "m = AutoModel.from_pretrained(p, low_cpu_mem_usage=True)", "accelerate"},
		{"low_cpu_mem_usage=False", head + "m = AutoModel.from_pretrained(p, low_cpu_mem_usage=False)", ""},
		{"with torch.device", head + "with torch.device('cuda'):\n  m = AutoModel.from_pretrained(p)", "accelerate"},
		{"tokenizer within torch.device", head + "with torch.device('cuda'):\n  t = AutoTokenizer.from_pretrained(p)\n  m = Own()", ""},
		{"after torch.device", head + "d = torch.device('cuda')\nwith torch.device('cuda'):\n  pass\nm = AutoModel.from_pretrained(p)", ""},
		{"set_default_device", head + "torch.set_default_device('cuda')\nm = AutoModel.from_pretrained(p)", "accelerate"},
		{"set_default_device, no model of transformers", head + "torch.set_default_device('cuda')\nm = Own()\nt = AutoTokenizer.from_pretrained(p)", ""},
		{"device_map of one's own loader", "from own import Model\nm = Model.from_pretrained(p, device_map='cuda')", ""},
		{"chat template", head + "t.apply_chat_template(m, tokenize=False)", "jinja2"},
		{"chat template of one's own", head + "def apply_chat_template(m): pass\napply_chat_template(m)", ""},
		{"image processor", head + "p = AutoImageProcessor.from_pretrained(x)", "pillow torchvision"},
		{"processor", head + "p = AutoProcessor.from_pretrained(x)", "pillow torchvision"},
		{"slow image processor", head + "p = Qwen2VLImageProcessor.from_pretrained(x)", "pillow"},
		{"bits and bytes", head + "c = BitsAndBytesConfig(load_in_4bit=True)", "bitsandbytes accelerate"},
		{"4 bits", head + "m = AutoModel.from_pretrained(p, load_in_4bit=True)", "bitsandbytes accelerate"},
		{"flash attention", head + "m = AutoModel.from_pretrained(p, attn_implementation='flash_attention_2')", "flash-attn"},
		{"sdpa", head + "m = AutoModel.from_pretrained(p, attn_implementation='sdpa')", ""},
		{"slow tokenizer", head + "t = LlamaTokenizer.from_pretrained(p)", "sentencepiece"},
		{"fast tokenizer", head + "t = LlamaTokenizerFast.from_pretrained(p)\nu = AutoTokenizer.from_pretrained(p)", ""},
		{"pipeline", head + "p = pipeline('text-generation', model=x)", ""},
		{"dictionary", head + "kw = {'device_map': 'cuda'}\nm = AutoModel.from_pretrained(p, **kw)", "accelerate"},
		{"dictionary by dict", head + "def load():\n  kw = dict(device_map='cuda')\n  return AutoModel.from_pretrained(p, **kw)", "accelerate"},
		{"dictionary by subscript", head + "kw = {}\nkw['device_map'] = 'cuda'\nm = AutoModel.from_pretrained(p, **kw)", "accelerate"},
		{"dictionary by update", head + "kw = {}\nkw.update(device_map='cuda')\nm = AutoModel.from_pretrained(p, **kw)", "accelerate"},
		{"dictionary by setdefault", head + "kw = {}\nkw.setdefault('device_map', 'cuda')\nm = AutoModel.from_pretrained(p, **kw)", "accelerate"},
		{"dictionary of an object", head + "class A:\n  def __init__(self):\n    self.kw = {'device_map': 0}\n  def load(self):\n    return AutoModel.from_pretrained(p, **self.kw)", "accelerate"},
		{"dictionary in the call", head + "m = AutoModel.from_pretrained(p, **{'device_map': 'cuda'})", "accelerate"},
		{"dictionary below a condition", head + "kw = {}\nif gpu:\n  kw['device_map'] = 'cuda'\nm = AutoModel.from_pretrained(p, **kw)", "accelerate?"},
		{"dictionary from elsewhere", head + "base = {'device_map': 'cuda'}\nkw = {**base}\nm = AutoModel.from_pretrained(p, **kw)", "accelerate?"},
		{"dictionary in a dictionary", head + "C = {'model': {'device_map': 'cuda'}}\nm = AutoModel.from_pretrained(p, **C['model'])", "accelerate?"},
		{"wrapper", head + "def load(p, **kw):\n  return AutoModel.from_pretrained(p, **kw)\nm = load(p, device_map='cuda')", "accelerate"},
		{"wrapper that is a class", head + "class M:\n  def __init__(self, p, **kw):\n    self.m = AutoModel.from_pretrained(p, **kw)\nm = M(p, device_map='cuda')", "accelerate"},
		{"wrapper of a dictionary", head + "C = {'device_map': 'cuda'}\ndef load(p, **kw):\n  return AutoModel.from_pretrained(p, **kw)\nm = load(p, **C)", "accelerate?"},
		{"partial", head + "from functools import partial\nload = partial(AutoModel.from_pretrained, device_map='cuda')", "accelerate"},
		{"other rows", head + "kw = {'attn_implementation': 'flash_attention_2', 'load_in_4bit': True}\nm = AutoModel.from_pretrained(p, **kw)", "bitsandbytes accelerate flash-attn"},
		{"no dictionary of the call", head + "C = {'device_map': 'cuda'}\nm = AutoModel.from_pretrained(p)", ""},
		{"another dictionary", head + "C = {'device_map': 'cuda'}\nkw = {'dtype': 'auto'}\nm = AutoModel.from_pretrained(p, **kw)", ""},
		{"dictionary without device_map", head + "kw = {'device_map': None}\nm = AutoModel.from_pretrained(p, **kw)", ""},
		{"dictionary of a tokenizer", head + "kw = {'device_map': 'cuda'}\nt = AutoTokenizer.from_pretrained(p, **kw)", ""},
		{"wrapper without device_map", head + "C = {'device_map': 'cuda'}\ndef load(p, **kw):\n  return AutoModel.from_pretrained(p, **kw)\nm = load(p, dtype='auto')", ""},
		{"another function's dictionary", head + "def a():\n  kw = {'device_map': 'cuda'}\n  show(kw)\ndef b():\n  kw = {'dtype': 'auto'}\n  return AutoModel.from_pretrained(p, **kw)", ""},
		{"device by its own name", head + "from torch import device\nwith device('cuda'):\n  m = AutoModel.from_pretrained(p)", "accelerate"},
		{"device by another name", head + "import torch as T\nwith T.device('cuda'):\n  m = AutoModel.from_pretrained(p)", "accelerate"},
		{"device in a variable", head + "d = torch.device('cuda')\nwith d:\n  m = AutoModel.from_pretrained(p)", "accelerate"},
		{"device around a function", head + "def load():\n  return AutoModel.from_pretrained(p)\ndef outer(): return load()\nwith torch.device('cuda'):\n  m = outer()", "accelerate"},
		{"device around a method", head + "class A:\n  def load(self):\n    return AutoModel.from_pretrained(p)\na = A()\nwith torch.device('cuda'):\n  m = a.load()", "accelerate?"},
		{"cpu", head + "torch.set_default_device('cpu')\nd = torch.device('cpu')\nwith torch.device('cpu'), d:\n  m = AutoModel.from_pretrained(p)", ""},
		{"another context", head + "l = Lock()\nwith l:\n  m = AutoModel.from_pretrained(p)", ""},
		{"device around another function", head + "def load():\n  return AutoModel.from_pretrained(p)\nwith torch.device('cuda'):\n  m = torch.load(q)\n  n = Own()", ""},
		{"another module's device", "import transformers\nfrom own import device\nwith device('cuda'):\n  m = AutoModel.from_pretrained(p)", ""},
		{"upload", "from fastapi import FastAPI, UploadFile\napp = FastAPI()", "python-multipart"},
		{"no upload", "from fastapi import FastAPI\nimport uvicorn\nuvicorn.run(FastAPI(), host='0.0.0.0')", ""},
		{"uvloop", "import uvicorn\nuvicorn.run(app, loop='uvloop')", "uvloop"},
	} {
		var got []string
		for _, r := range Requirements("code/server.py", Scan([]byte(test.source))) {
			mark := ""
			if r.Perhaps {
				mark = "?"
			}
			got = append(got, r.Distribution+mark)
			if r.Path != "code/server.py" || r.Line == 0 || r.Why == "" {
				t.Errorf("%s: %+v", test.name, r)
			}
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: needs %q, want %q", test.name, text, test.want)
		}
	}
}

// What one module of a program does to those that another loads.
func TestRequirementsOfPrograms(t *testing.T) {
	const model = "from transformers import AutoModel\ndef load(p, **kw):\n  return AutoModel.from_pretrained(p, **kw)\n"
	for _, test := range []struct{ name, server, want string }{
		{"default device", "import torch, model\ntorch.set_default_device('cuda')\nmodel.load(p)", "server accelerate"},
		{"default device by its name", "from torch import set_default_device as s\nimport model\ns('cuda')\nmodel.load(p)", "server accelerate"},
		{"default device, perhaps", "import torch, model\nif x:\n  torch.set_default_device('cuda')\nmodel.load(p)", "server accelerate?"},
		{"device", "import torch\nfrom model import load\nwith torch.device('cuda'):\n  load(p)", "server accelerate"},
		{"device, module", "import torch\nimport model as M\nwith torch.device('cuda'):\n  M.load(p)", "server accelerate"},
		{"wrapper", "import model\nmodel.load(p, device_map='cuda')", "model accelerate"},
		{"wrapper by its name", "from model import load\nload(p, device_map='cuda')", "model accelerate"},
		{"clean", "import torch, model\nd = {'device_map': 'cuda'}\nmodel.load(p, dtype='auto')\nwith torch.device('cuda'):\n  torch.load(p)", ""},
		{"another's function", "import torch, other\nother.load(p, device_map='cuda')\nwith torch.device('cuda'):\n  other.load(p)", ""},
	} {
		server, m := Scan([]byte(test.server)), Scan([]byte(model))
		var got []string
		for _, r := range RequirementsOf([]Source{{"server.py", &server}, {"code/model.py", &m}}) {
			text := strings.TrimSuffix(strings.TrimPrefix(r.Path, "code/"), ".py") + " " + r.Distribution
			if r.Perhaps {
				text += "?"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%s: needs %q, want %q", test.name, text, test.want)
		}
	}
}

func TestPrograms(t *testing.T) {
	for source, want := range map[string]string{
		"import torch\nm = torch.compile(m, mode='max-autotune')":                  "cc",
		"import torch\n@torch.compile\ndef f(): pass":                              "cc",
		"import torch\nm = torch.compile(m, backend='eager')":                      "",
		"import torch\nm = torch.compile(m, disable=True)":                         "",
		"import re\nr = re.compile('a')\nx = compile('b', 'c', 'd')":               "",
		"import triton\n@triton.jit\ndef k(): pass":                                "cc",
		"from torch.utils import cpp_extension as c\ncpp_extension.load(name='a')": "c++ ninja",
		"import flashinfer": "ninja nvcc",
		"import torch":      "",
	} {
		var got []string
		for _, n := range Programs("a.py", Scan([]byte(source))) {
			got = append(got, n.Program)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q starts %q, want %q", source, text, want)
		}
	}
}

func TestRequirementsOfConfig(t *testing.T) {
	for _, test := range []struct{ path, data, want string }{
		{"model/config.json", `{"quantization_config":{"quant_method":"fp8"}}`, "accelerate"},
		{"config.json", `{"quantization_config":{"quant_method":"mxfp4"}}`, "accelerate kernels"},
		{"config.json", `{"quantization_config":{"quant_method":"compressed-tensors"}}`, "compressed-tensors"},
		{"config.json", `{"quantization_config":{"quant_method":"ours"}}`, ""},
		{"config.json", `{"architectures":["Qwen3ForCausalLM"]}`, ""},
		{"config.json", `[`, ""},
		{"config.json", `{"quantization_config":[]}`, ""},
		{"preprocessor_config.json", `{"image_processor_type":"Qwen2VLImageProcessorFast"}`, "pillow torchvision"},
		{"preprocessor_config.json", `{"image_processor_type":"Qwen2VLImageProcessor"}`, "pillow"},
		{"other.json", `{"quantization_config":{"quant_method":"fp8"}}`, ""},
	} {
		var got []string
		for _, r := range RequirementsOfConfig(test.path, []byte(test.data)) {
			got = append(got, r.Distribution)
		}
		slices.Sort(got)
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s %s needs %q, want %q", test.path, test.data, text, test.want)
		}
	}
}

func TestDistributionOf(t *testing.T) {
	for module, want := range map[string]string{
		"PIL": "pillow", "PIL.Image": "pillow", "cv2": "opencv-python", "yaml": "pyyaml", "sklearn.metrics": "scikit-learn",
		"google.protobuf.message": "protobuf", "google": "", "torch.nn.functional": "torch", "huggingface_hub": "huggingface-hub",
		"compressed_tensors": "compressed-tensors", "own": "", "json": "", "": "", ".": "", "absl.flags": "absl-py",
	} {
		if got := DistributionOf(module); got != want {
			t.Errorf("%q is provided by %q, want %q", module, got, want)
		}
	}
	if got := ProvidersOf("cv2.typing"); !slices.Contains(got, "opencv-python-headless") {
		t.Errorf("cv2 is provided by %v", got)
	}
	for module := range distributions {
		if IsStandard(module, 0) {
			t.Errorf("%s is of the standard library", module)
		}
	}
	for module := range sameName {
		if IsStandard(module, 0) || distributions[module] != nil {
			t.Errorf("%s stands in two tables", module)
		}
	}
}

func TestIsStandard(t *testing.T) {
	for _, test := range []struct {
		module string
		minor  int
		want   bool
	}{
		{"json", 12, true}, {"os.path", 0, true}, {"__future__", 10, true}, {"distutils.core", 11, true}, {"distutils", 12, false},
		{"distutils", 0, true}, {"tomllib", 10, false}, {"tomllib", 11, true}, {"cgi", 13, false}, {"imp", 12, false}, {"torch", 0, false}, {"", 0, false},
	} {
		if got := IsStandard(test.module, test.minor); got != test.want {
			t.Errorf("IsStandard(%q, %d) is %v", test.module, test.minor, got)
		}
	}
}

func TestLocalProblems(t *testing.T) {
	scan := func(source string) Module { return Scan([]byte(source)) }
	server := scan("import json, torch\nfrom own import x\n")
	for _, test := range []struct {
		name  string
		files map[string]Module
		want  string
	}{
		{"clean", map[string]Module{"code/server.py": server, "code/own.py": {}}, ""},
		{"hides json", map[string]Module{"code/server.py": server, "code/json.py": {}}, "code/json.py: hides Python's own module json from code/server.py, which imports it"},
		{"hides torch", map[string]Module{"code/server.py": server, "code/torch.py": {}}, "code/torch.py: hides the installed module torch from code/server.py, which imports it"},
		{"in a package", map[string]Module{"code/a/server.py": server, "code/a/json.py": {}, "code/a/__init__.py": {}}, ""},
		{"elsewhere", map[string]Module{"code/server.py": server, "tools/json.py": {}}, ""},
		{"never imported", map[string]Module{"code/server.py": server, "code/profile.py": {}}, ""},
		{"loaded before any script", map[string]Module{"code/server.py": scan("import os\n"), "code/os.py": {}}, ""},
		{"relative", map[string]Module{"a/b.py": scan("from .c import d\nfrom . import e\nfrom ..f import g\nfrom .h import i\n"), "a/c.py": {}, "f/__init__.py": {}, "a/h.cpython-312-x86_64-linux-gnu.so": {}}, ""},
		{"missing relative", map[string]Module{"a/b.py": scan("\nfrom .c import d\n"), "c.py": {}}, "a/b.py:2 imports .c, which is not there"},
		{"missing but guarded", map[string]Module{"a/b.py": scan("try:\n  from .c import d\nexcept ImportError: pass\n")}, ""},
	} {
		var got []string
		for _, p := range LocalProblems(test.files) {
			place := p.Path + ": "
			if p.Line > 0 {
				place = p.Path + ":2 "
			}
			got = append(got, place+p.Problem)
			if certain := p.Hides == ""; certain == strings.Contains(p.Problem, "installed") {
				t.Errorf("%s: it hides %q", test.name, p.Hides)
			}
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%s: %q, want %q", test.name, text, test.want)
		}
	}
}
