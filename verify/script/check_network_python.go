package script

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// requestNames are functions, and methods of clients, that take an address.
var requestNames = []string{"urlopen", "urlretrieve", "Request", "get", "post", "put", "head", "request", "stream", "download", "wget"}

// hubNames are names of a model hub: org/name, or one of its oldest models.
var hubNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*(?:/[A-Za-z0-9][A-Za-z0-9_.-]*)?$`)

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
	certain := m.started && !c.Optional
	f := shell.Finding{Check: "C22", Warning: true, Path: m.path, Line: c.Line}
	switch {
	case last == "from_pretrained":
		name, ok := a.text(m, c, "pretrained_model_name_or_path")
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
		if a.shipsEncodings() {
			return
		}
		f.Warning = !certain
		f.Problem, f.Hint = c.Name+" gets its ranks from another machine, and a grader has no network", "ship them, and export TIKTOKEN_CACHE_DIR with their folder"
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
	argument, named := c.Keyword(keyword)
	if !named {
		if len(c.Arguments) == 0 || c.Arguments[0].Keyword != "" {
			return "", false
		}
		argument = c.Arguments[0]
	}
	return valueOf(m, argument)
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

// shipsEncodings reports whether tiktoken is told of a folder of the submission,
// or what it is told cannot be known.
func (a *analysis) shipsEncodings() bool {
	for _, name := range []string{"TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"} {
		if a.server != nil && a.server.Variables[name] != "" {
			at := absoluteIn(a.server.Folder, a.server.Variables[name])
			return !shell.Known(at) || len(a.main.Tree.Sources(at)) > 0
		}
		for _, m := range a.modules {
			if slices.Contains(m.parsed.Sets, name) || m.parsed.SetsMore {
				return true
			}
		}
	}
	return false
}
