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
	Perhaps      bool // whether the source needs it cannot be told
}

// rule is one line of the table: calls that need distributions.
type rule struct {
	call     string   // last part of the call's name, or "Class.method": the last two
	keyword  string   // argument that it must have; "" any
	values   []string // texts or literals of which the argument must have one; "!None": any but None and False
	inDevice bool     // it stands below with torch.device(...)
	imports  []string // root of a module that the source must import, if any is named
	except   []string // parts of the receiver's name that tell other calls of the name apart
	needs    []need
	why      string
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
	{call: "from_pretrained", inDevice: true, imports: ofTransformers, except: noModel,
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

// rulesOf are the rules by the last part of their call, in order.
var rulesOf = func() map[string][]*rule {
	by := map[string][]*rule{}
	for i := range rules {
		name := lastPart(rules[i].call)
		by[name] = append(by[name], &rules[i])
	}
	return by
}()

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

// Requirements lists what RequirementsOf does of a program of one module.
func Requirements(path string, m Module) []Requirement {
	return RequirementsOf([]Source{{path, &m}})
}

// requirements lists those of one module of a program.
func (p *program) requirements(at int, s Source) []Requirement {
	l, m := requirementList{path: s.Path}, s.Module
	roots := map[string]bool{}
	for _, i := range m.Imports {
		roots[rootOf(i.Module)] = true
		for _, r := range importRules {
			if r.module == i.Module && slices.Contains(i.Names, r.name) {
				l.add(r.needs, r.why, i.Line)
			}
		}
	}
	for i := range m.Calls {
		c := m.Calls[i].applied()
		for _, r := range rulesOf[lastPart(m.resolved(c.Name))] {
			if m.defines[lastPart(c.Name)] || !r.applies(m, c, roots) {
				continue
			}
			if r.keyword == "" {
				l.add(r.needs, r.why, c.Line)
				continue
			}
			p.checkKeyword(r, m, c, &l)
		}
	}
	p.deviceRequirements(at, &l)
	return l.list
}

// applied is the call that functools.partial prepares, or the call itself.
func (c *Call) applied() *Call {
	if lastPart(c.Name) != "partial" || len(c.Arguments) == 0 || lastPart(c.Arguments[0].Text) == "" {
		return c
	}
	called := *c
	called.Name, called.Arguments = c.Arguments[0].Text, c.Arguments[1:]
	return &called
}

// checkKeyword adds what a call needs whose keyword a rule asks for: where it is
// written in the call, or reaches it by a ** argument.
func (p *program) checkKeyword(r *rule, m *Module, c *Call, l *requirementList) {
	if a, ok := c.Keyword(r.keyword); ok {
		if r.takes(a) {
			l.add(r.needs, r.why, c.Line)
		}
		return
	}
	for _, a := range c.Arguments {
		if a.Keyword != "**" {
			continue
		}
		if p.spreads++; p.spreads > maxSpreads {
			return
		}
		for _, k := range p.keys[r.keyword] {
			if !r.takes(k.Argument) {
				continue
			}
			switch carried, certain := p.carries(m, c, a.Text, k.in, k.key); {
			case carried && certain:
				l.add(r.needs, r.why, c.Line)
			case carried:
				l.addPerhaps(r.needs, r.why+", if its ** argument has that", c.Line, true)
			}
		}
	}
}

// loadsModel reports whether a call is a model's from_pretrained.
func loadsModel(c Call) bool {
	return lastPart(c.Name) == "from_pretrained" && !containsAny(c.Name, noModel)
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}

// applies reports whether a call is one that a rule speaks of, but for its keyword.
func (r *rule) applies(m *Module, c *Call, roots map[string]bool) bool {
	name := m.resolved(c.Name)
	if name != r.call && !strings.HasSuffix(name, "."+r.call) || containsAny(name, r.except) {
		return false
	}
	if len(r.imports) > 0 && !slices.ContainsFunc(r.imports, func(root string) bool { return roots[root] }) {
		return false
	}
	return !r.inDevice || m.withinDevice(c)
}

// takes reports whether an argument has one of the values that a rule asks for.
func (r *rule) takes(a Argument) bool {
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
	l.addPerhaps(needs, why, line, false)
}

// addPerhaps adds distributions that may not be needed. What is certain takes the
// place of what is not.
func (l *requirementList) addPerhaps(needs []need, why string, line int, perhaps bool) {
	for _, n := range needs {
		one := Requirement{Distribution: n[0], Or: n[1:], Why: why, Path: l.path, Line: line, Perhaps: perhaps}
		at := slices.IndexFunc(l.list, func(r Requirement) bool { return r.Distribution == n[0] })
		switch {
		case at < 0:
			l.list = append(l.list, one)
		case l.list[at].Perhaps && !perhaps:
			l.list[at] = one
		}
	}
}
