package python

import (
	"slices"
	"strings"
)

// Requirement is a distribution that source needs without importing it.
type Requirement struct {
	Distribution string   // in its normal form
	Or           []string // others that serve as well
	Why          string
	Path         string
	Line         int
}

// rule is one line of the table: calls that need distributions.
type rule struct {
	call    string   // last part of the call's name, or "Class.method": the last two
	keyword string   // argument that it must have; "" any
	values  []string // texts or literals of which the argument must have one; "!None": any but None and False
	within  string   // call of a with statement around it
	imports []string // root of a module that the source must import, if any is named
	except  []string // parts of the receiver's name that tell other calls of the name apart
	needs   []need
	why     string
}

// need is a distribution, and others that serve as well.
type need []string

// Receivers whose from_pretrained loads no model.
var noModel = []string{"Tokenizer", "Config", "Processor", "FeatureExtractor"}

var (
	ofTransformers = []string{"transformers", "diffusers", "peft", "sentence_transformers"}
	ofFastAPI      = []string{"fastapi", "starlette"}
	given          = []string{"!None"}
)

// rules of calls. Sources: transformers (modeling_utils.py: from_pretrained;
// integrations/ and quantizers/: validate_environment; utils/chat_template_utils.py;
// image_processing_utils_fast.py), fastapi (dependencies/utils.py), uvicorn
// (config.py), pandas (its table of optional dependencies).
var rules = []rule{
	{call: "from_pretrained", keyword: "device_map", values: given, imports: ofTransformers, except: noModel,
		needs: []need{{"accelerate"}}, why: "from_pretrained(device_map=...) requires accelerate"},
	{call: "from_pretrained", keyword: "tp_plan", values: given, imports: ofTransformers, except: noModel,
		needs: []need{{"accelerate"}}, why: "from_pretrained(tp_plan=...) requires accelerate"},
	{call: "from_pretrained", keyword: "low_cpu_mem_usage", values: []string{"True"}, imports: ofTransformers, except: noModel,
		needs: []need{{"accelerate"}}, why: "from_pretrained(low_cpu_mem_usage=True) requires accelerate"},
	{call: "from_pretrained", within: "torch.device", imports: ofTransformers, except: noModel,
		needs: []need{{"accelerate"}}, why: "from_pretrained below \"with torch.device(...)\" requires accelerate"},
	{call: "pipeline", keyword: "device_map", values: given, imports: ofTransformers,
		needs: []need{{"accelerate"}}, why: "pipeline(device_map=...) requires accelerate"},

	{call: "apply_chat_template", needs: []need{{"jinja2"}}, imports: append([]string{"tokenizers"}, ofTransformers...),
		why: "apply_chat_template requires jinja2, which transformers does not depend on"},
	{call: "Jinja2Templates", imports: ofFastAPI, needs: []need{{"jinja2"}}, why: "Jinja2Templates requires jinja2"},

	{call: "AutoImageProcessor.from_pretrained", needs: []need{{"pillow"}, {"torchvision"}}, why: "image processors require pillow, the fast ones torchvision too"},
	{call: "AutoVideoProcessor.from_pretrained", needs: []need{{"torchvision"}}, why: "video processors require torchvision"},
	{call: "AutoProcessor.from_pretrained", needs: []need{{"pillow"}, {"torchvision"}}, why: "processors of images require pillow, the fast ones torchvision too"},
	{call: "Qwen2VLImageProcessor.from_pretrained", needs: []need{{"pillow"}}, why: "image processors require pillow"},
	{call: "Qwen2VLImageProcessorFast.from_pretrained", needs: []need{{"pillow"}, {"torchvision"}}, why: "fast image processors require torchvision"},
	{call: "Qwen2_5_VLProcessor.from_pretrained", needs: []need{{"pillow"}, {"torchvision"}}, why: "its image processor requires pillow, its video processor torchvision"},
	{call: "Qwen3VLProcessor.from_pretrained", needs: []need{{"pillow"}, {"torchvision"}}, why: "its image processor requires pillow, its video processor torchvision"},

	{call: "BitsAndBytesConfig", needs: []need{{"bitsandbytes"}, {"accelerate"}}, why: "quantization by bitsandbytes requires it, and accelerate"},
	{call: "from_pretrained", keyword: "load_in_4bit", values: []string{"True"}, needs: []need{{"bitsandbytes"}, {"accelerate"}}, why: "load_in_4bit requires bitsandbytes, and accelerate"},
	{call: "from_pretrained", keyword: "load_in_8bit", values: []string{"True"}, needs: []need{{"bitsandbytes"}, {"accelerate"}}, why: "load_in_8bit requires bitsandbytes, and accelerate"},
	{call: "GPTQConfig", imports: ofTransformers, needs: []need{{"gptqmodel", "auto-gptq"}, {"optimum"}}, why: "quantization by GPTQ requires gptqmodel, and optimum"},
	{call: "AwqConfig", imports: ofTransformers, needs: []need{{"autoawq", "gptqmodel"}, {"accelerate"}}, why: "quantization by AWQ requires autoawq, and accelerate"},
	{call: "HqqConfig", imports: ofTransformers, needs: []need{{"hqq"}}, why: "quantization by HQQ requires hqq"},
	{call: "TorchAoConfig", imports: ofTransformers, needs: []need{{"torchao"}}, why: "quantization by torchao requires it"},
	{call: "QuantoConfig", imports: ofTransformers, needs: []need{{"optimum-quanto"}, {"accelerate"}}, why: "quantization by quanto requires optimum-quanto, and accelerate"},
	{call: "FineGrainedFP8Config", imports: ofTransformers, needs: []need{{"accelerate"}}, why: "block FP8 requires accelerate"},
	{call: "Mxfp4Config", imports: ofTransformers, needs: []need{{"kernels"}, {"accelerate"}}, why: "MXFP4 requires kernels, and accelerate"},
	{call: "from_pretrained", keyword: "gguf_file", values: given, imports: ofTransformers, needs: []need{{"gguf"}}, why: "gguf_file requires gguf"},

	{call: "from_pretrained", keyword: "attn_implementation", values: []string{"flash_attention_2"}, needs: []need{{"flash-attn"}}, why: "flash_attention_2 requires flash-attn"},
	{call: "from_config", keyword: "attn_implementation", values: []string{"flash_attention_2"}, needs: []need{{"flash-attn"}}, why: "flash_attention_2 requires flash-attn"},
	{call: "from_pretrained", keyword: "use_flash_attention_2", values: []string{"True"}, needs: []need{{"flash-attn"}}, why: "flash_attention_2 requires flash-attn"},

	{call: "LlamaTokenizer.from_pretrained", needs: []need{{"sentencepiece"}}, why: "the slow tokenizer requires sentencepiece"},
	{call: "T5Tokenizer.from_pretrained", needs: []need{{"sentencepiece"}}, why: "the slow tokenizer requires sentencepiece"},
	{call: "GemmaTokenizer.from_pretrained", needs: []need{{"sentencepiece"}}, why: "the slow tokenizer requires sentencepiece"},
	{call: "XLMRobertaTokenizer.from_pretrained", needs: []need{{"sentencepiece"}}, why: "the slow tokenizer requires sentencepiece"},

	{call: "Form", imports: ofFastAPI, needs: []need{{"python-multipart"}}, why: "forms require python-multipart"},
	{call: "File", imports: ofFastAPI, needs: []need{{"python-multipart"}}, why: "uploaded files require python-multipart"},
	{call: "run", keyword: "loop", values: []string{"uvloop"}, imports: []string{"uvicorn"}, needs: []need{{"uvloop"}}, why: "loop=\"uvloop\" requires uvloop"},
	{call: "run", keyword: "http", values: []string{"httptools"}, imports: []string{"uvicorn"}, needs: []need{{"httptools"}}, why: "http=\"httptools\" requires httptools"},
	{call: "ORJSONResponse", imports: ofFastAPI, needs: []need{{"orjson"}}, why: "ORJSONResponse requires orjson"},
	{call: "UJSONResponse", imports: ofFastAPI, needs: []need{{"ujson"}}, why: "UJSONResponse requires ujson"},

	{call: "read_parquet", imports: []string{"pandas"}, needs: []need{{"pyarrow", "fastparquet"}}, why: "parquet files require pyarrow"},
	{call: "read_excel", imports: []string{"pandas"}, needs: []need{{"openpyxl"}}, why: "Excel files require openpyxl"},
}

// importRules are names whose import alone needs a distribution.
var importRules = []struct {
	module, name string
	needs        []need
	why          string
}{
	{"fastapi", "UploadFile", []need{{"python-multipart"}}, "uploaded files require python-multipart"},
	{"fastapi.security", "OAuth2PasswordRequestForm", []need{{"python-multipart"}}, "forms require python-multipart"},
	{"fastapi.testclient", "TestClient", []need{{"httpx"}}, "TestClient requires httpx"},
	{"starlette.testclient", "TestClient", []need{{"httpx"}}, "TestClient requires httpx"},
	{"pydantic", "EmailStr", []need{{"email-validator"}}, "EmailStr requires email-validator"},
}

// Requirements lists the distributions that a module's calls need beyond what it
// imports, each once with the first place that needs it.
func Requirements(path string, m Module) []Requirement {
	l := requirementList{path: path}
	roots := map[string]bool{}
	for _, i := range m.Imports {
		roots[rootOf(i.Module)] = true
		for _, r := range importRules {
			if r.module == i.Module && slices.Contains(i.Names, r.name) {
				l.add(r.needs, r.why, i.Line)
			}
		}
	}
	defaultDevice := 0
	for i := range m.Calls {
		c := &m.Calls[i]
		if strings.HasSuffix(c.Name, "set_default_device") && defaultDevice == 0 {
			defaultDevice = c.Line
		}
		for j := range rules {
			if r := &rules[j]; r.matches(c, roots) && !m.defines[lastPart(c.Name)] {
				l.add(r.needs, r.why, c.Line)
			}
		}
	}
	if defaultDevice > 0 && roots["transformers"] && slices.ContainsFunc(m.Calls, loadsModel) {
		l.add([]need{{"accelerate"}}, "from_pretrained after torch.set_default_device(...) requires accelerate", defaultDevice)
	}
	return l.list
}

// loadsModel reports whether a call is a model's from_pretrained.
func loadsModel(c Call) bool {
	return lastPart(c.Name) == "from_pretrained" && !containsAny(c.Name, noModel)
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}

func (r *rule) matches(c *Call, roots map[string]bool) bool {
	if c.Name != r.call && !strings.HasSuffix(c.Name, "."+r.call) || containsAny(c.Name, r.except) {
		return false
	}
	if len(r.imports) > 0 && !slices.ContainsFunc(r.imports, func(root string) bool { return roots[root] }) {
		return false
	}
	if r.within != "" && !slices.Contains(c.Within, r.within) {
		return false
	}
	if r.keyword == "" {
		return true
	}
	a, ok := c.Keyword(r.keyword)
	if !ok {
		return false
	}
	return slices.ContainsFunc(r.values, func(v string) bool {
		if v == "!None" {
			return a.Text != "None" && a.Text != "False"
		}
		return a.Text == v || a.Literal != nil && *a.Literal == v
	})
}

// requirementList collects requirements, each distribution once.
type requirementList struct {
	path string
	list []Requirement
}

func (l *requirementList) add(needs []need, why string, line int) {
	for _, n := range needs {
		if !slices.ContainsFunc(l.list, func(r Requirement) bool { return r.Distribution == n[0] }) {
			l.list = append(l.list, Requirement{Distribution: n[0], Or: n[1:], Why: why, Path: l.path, Line: line})
		}
	}
}
