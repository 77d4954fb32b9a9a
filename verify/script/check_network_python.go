package script

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// requestNames are functions, and methods of clients, that take an address.
var requestNames = []string{"urlopen", "urlretrieve", "Request", "get", "post", "put", "head", "request", "stream", "download", "wget"}

// hubNames are names of a model hub: org/name, or one of its oldest models.
var hubNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*(?:/[A-Za-z0-9][A-Za-z0-9_.-]*)?$`)

// loaders are calls that load a model by its folder, or else by its name of the
// hub, with the argument that says which.
var loaders = map[string]struct {
	keyword string
	place   int
}{
	"from_pretrained":     {"pretrained_model_name_or_path", 0},
	"pipeline":            {"model", 1},
	"LLM":                 {"model", 0},
	"EngineArgs":          {"model", 0},
	"AsyncEngineArgs":     {"model", 0},
	"Engine":              {"model_path", 0},
	"SentenceTransformer": {"model_name_or_path", 0},
}

// localBuilders are those of load_dataset that read files.
var localBuilders = []string{"json", "csv", "parquet", "text", "arrow", "imagefolder", "audiofolder", "pandas"}

// checkNetworkOfModules looks for calls of the submission's Python that need what
// a grader does not have.
func (a *analysis) checkNetworkOfModules() {
	for _, m := range a.withInline() {
		for i := range m.parsed.Calls {
			a.checkNetworkCall(m, &m.parsed.Calls[i])
		}
	}
}

// checkNetworkCall looks at one call. It is an error where the call happens for
// certain and nothing on the machine can answer it.
func (a *analysis) checkNetworkCall(m module, c *python.Call) {
	last := c.Name[strings.LastIndexByte(c.Name, '.')+1:]
	loads, loader := loaders[last]
	certain := m.started && !c.Optional
	f := shell.Finding{Check: "C22", Warning: true, Path: m.path, Line: c.Line}
	switch {
	case loader && !m.parsed.Defines(last) && (last == "from_pretrained" || importsHub(m)):
		name, ok := a.textAt(m, c, loads.keyword, loads.place)
		if !ok {
			a.checkModelNames(m, c, loads.keyword, loads.place)
		}
		if !ok || !hubNames.MatchString(name) || a.placed(m, name) || a.cached(name) {
			return
		}
		f.Warning = !certain || chdirs(m) || !importsHub(m)
		f.Problem = fmt.Sprintf("%s(%q) names no folder of the submission: it would be asked of the model hub, and a grader has no network", c.Name, name)
		f.Hint = "name the folder of the shipped weights"
	case last == "hf_hub_download" || last == "snapshot_download":
		name, ok := a.text(m, c, "repo_id")
		if ok && (a.placed(m, name) || a.cached(name)) {
			return
		}
		f.Problem, f.Hint = fmt.Sprintf("%s asks the model hub, and a grader has no network", quotedCall(c, name)), "ship the files, and name their folder"
	case c.Name == "torch.hub.load" || c.Name == "hub.load":
		if source, ok := c.Keyword("source"); ok && source.Literal != nil && *source.Literal == "local" {
			return
		}
		f.Problem, f.Hint = "torch.hub.load asks another machine, and a grader has no network", "ship the folder and say source=\"local\""
	case c.Name == "nltk.download":
		f.Problem, f.Hint = "nltk.download asks another machine, and a grader has no network", "ship the data and name its folder in NLTK_DATA"
	case c.Name == "tiktoken.get_encoding" || c.Name == "tiktoken.encoding_for_model":
		if a.shipsEncodings("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR") {
			return
		}
		f.Warning = !certain
		f.Problem, f.Hint = c.Name+" gets its ranks from another machine, and a grader has no network", "ship them, and export TIKTOKEN_CACHE_DIR with their folder"
	case last == "load_harmony_encoding": // openai_harmony reads them by a library of its own
		if a.shipsEncodings("TIKTOKEN_ENCODINGS_BASE", "TIKTOKEN_RS_CACHE_DIR") {
			return
		}
		f.Warning = !certain
		f.Problem, f.Hint = c.Name+" gets its vocabulary from another machine, and a grader has no network", "ship it, and export TIKTOKEN_ENCODINGS_BASE with its folder"
	case last == "load_dataset":
		name, ok := a.text(m, c, "path")
		if !ok || slices.Contains(localBuilders, name) || a.placed(m, name) {
			return
		}
		f.Problem, f.Hint = fmt.Sprintf("%s asks the hub for a data set, and a grader has no network", quotedCall(c, name)), "ship what is needed of it"
	case slices.Contains(requestNames, last):
		address := a.address(m, c)
		if address == "" {
			return
		}
		f.Problem, f.Hint = fmt.Sprintf("%s asks %s, and a grader has no network", c.Name, address), "ship what it fetches, or leave the call out"
	default:
		return
	}
	a.add(f)
}

func quotedCall(c *python.Call, name string) string { return fmt.Sprintf("%s(%q)", c.Name, name) }

// text is a call's first argument, or that of a keyword, where it is a string or
// a constant of the module.
func (a *analysis) text(m module, c *python.Call, keyword string) (value string, ok bool) {
	return a.textAt(m, c, keyword, 0)
}

// textAt is text of the argument at a place.
func (a *analysis) textAt(m module, c *python.Call, keyword string, place int) (value string, ok bool) {
	argument, ok := argumentAt(c, keyword, place)
	if !ok {
		return "", false
	}
	return valueOf(m, argument)
}

// checkModelNames looks for names of a hub's models that reach the argument of a
// loader by a variable, a parameter's or option's default, or a dict. Which value it
// has is not known, so that these are warnings. A name that the module says
// nothing of is looked for in the modules that its program imports.
func (a *analysis) checkModelNames(m module, c *python.Call, keyword string, place int) {
	argument, ok := argumentAt(c, keyword, place)
	if !ok || !importsHub(m) {
		return
	}
	add := func(in module, names []python.ModelName) {
		for _, n := range names {
			if organisation, _, _ := strings.Cut(n.Text, "/"); a.placed(in, organisation) || a.placed(in, n.Text) || a.cached(n.Text) {
				continue
			}
			a.add(shell.Finding{Check: "C22", Warning: true, Path: in.path, Line: n.Line,
				Problem: fmt.Sprintf("%q, which %s(%s) in %s may be given, names no folder of the submission: it would be asked of the model hub, and a grader has no network", n.Text, c.Name, shell.Shown(manifest.Clip(argument.Text)), m.path),
				Hint:    "let it name the folder of the shipped weights"})
		}
	}
	if names := m.parsed.ModelNames(argument.Text, c.Line); len(names) > 0 {
		add(m, names)
		return
	}
	for i := range a.modules {
		if other := a.modules[i]; slices.Contains(m.imports, other.path) {
			add(other, other.parsed.ModelNames(argument.Text, c.Line))
		}
	}
}

// argumentAt is a call's argument of a keyword, or else at a place.
func argumentAt(c *python.Call, keyword string, place int) (python.Argument, bool) {
	if argument, named := c.Keyword(keyword); named {
		return argument, true
	}
	if len(c.Arguments) <= place || c.Arguments[place].Keyword != "" {
		return python.Argument{}, false
	}
	return c.Arguments[place], true
}

func valueOf(m module, argument python.Argument) (value string, ok bool) {
	if argument.Literal != nil {
		return *argument.Literal, true
	}
	value, ok = m.parsed.Constants[argument.Text]
	return value, ok
}

// address is the other machine's that a call names, or "".
func (a *analysis) address(m module, c *python.Call) string {
	for _, argument := range c.Arguments {
		if value, ok := valueOf(m, argument); ok && (argument.Keyword == "" || argument.Keyword == "url") && strings.HasPrefix(value, "http") && isRemote(value) {
			return value
		}
	}
	return ""
}

// placed reports whether a relative name is there: in the folder in which the
// module runs, beside the module, or at the root.
func (a *analysis) placed(m module, name string) bool {
	for _, folder := range []string{m.folder, path.Join(a.tree.Root, path.Dir(m.path)), a.tree.Root} {
		if _, there := a.main.Tree.Get(absoluteIn(folder, name)); there != shell.No {
			return true
		}
	}
	return false
}

// cached reports whether the submission brings a hub's cache of a model.
func (a *analysis) cached(name string) bool {
	folder := "/models--" + strings.ReplaceAll(name, "/", "--") + "/"
	return slices.ContainsFunc(a.tree.Below(a.tree.Root), func(p string) bool { return strings.Contains(p, folder) })
}

// importsHub reports whether a module imports a package whose from_pretrained
// asks a hub: others may have one of their own.
func importsHub(m module) bool {
	return slices.ContainsFunc(m.parsed.Imports, func(i python.Import) bool {
		top, _, _ := strings.Cut(i.Module, ".")
		return top == "peft" || top == "tokenizers" || slices.Contains(hubPackages, top)
	})
}

// chdirs reports whether a module goes to another folder.
func chdirs(m module) bool {
	return slices.ContainsFunc(m.parsed.Calls, func(c python.Call) bool { return c.Name == "os.chdir" || c.Name == "chdir" })
}

// shipsEncodings reports whether one of some variables tells a tokenizer of a
// folder of the submission, or what it is told cannot be known.
func (a *analysis) shipsEncodings(variables ...string) bool {
	for _, name := range variables {
		if a.server != nil && a.server.Variables[name] != "" {
			at := absoluteIn(a.server.Folder, a.server.Variables[name])
			return !shell.Known(at) || len(a.main.Tree.Sources(at)) > 0
		}
		for _, m := range a.modules {
			if m.parsed.SetsMore || slices.ContainsFunc(m.parsed.Sets, func(s python.Setting) bool { return s.Name == name }) {
				return true
			}
		}
	}
	return false
}
