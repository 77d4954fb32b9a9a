package script

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"slipway/verify/image"
	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// distributionOf is the normalised name of a wheel's distribution, "" of other
// files.
func distributionOf(name string) string {
	if !strings.HasSuffix(name, ".whl") {
		return ""
	}
	distribution, _, _ := strings.Cut(name, "-")
	return image.NormalName(distribution)
}

// sourceOf is the normalised name of a source archive's distribution, as pip
// finds it in a folder of wheels; "" of other files.
func sourceOf(name string) string {
	for _, suffix := range []string{".tar.gz", ".tgz", ".tar.bz2", ".zip"} {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			if i := strings.LastIndexByte(base, '-'); i > 0 {
				return image.NormalName(base[:i])
			}
		}
	}
	return ""
}

// requirementName is the normalised name in a requirement as pip takes it, "" of
// a path.
func requirementName(word string) string {
	if strings.ContainsAny(word, "/\\") || strings.HasSuffix(word, ".whl") {
		return ""
	}
	if end := strings.IndexAny(word, "=<>!~;[ @"); end >= 0 {
		word = word[:end]
	}
	return image.NormalName(word)
}

// wheels returns the submitted wheels: distribution by absolute path.
func (a *analysis) wheels() map[string]string {
	found := map[string]string{}
	for p, n := range a.tree.Base {
		if name := distributionOf(path.Base(p)); name != "" && n.Source != "" {
			found[p] = name
		}
	}
	return found
}

// shipped reports whether the submission brings a distribution: as a wheel, or
// unpacked.
func (a *analysis) shipped(name string) bool {
	if a.brought == nil {
		a.brought = map[string]bool{}
		for _, wheel := range a.wheels() {
			a.brought[wheel] = true
		}
		for p := range a.tree.Base {
			folder, file := path.Split(p)
			if folder = path.Clean(folder); !a.tree.Within(folder) || folder == a.tree.Root {
				continue
			}
			if file == "__init__.py" {
				a.brought[image.NormalName(path.Base(folder))] = true
			}
			if rest, ok := strings.CutSuffix(path.Base(folder), ".dist-info"); ok {
				distribution, _, _ := strings.Cut(rest, "-")
				a.brought[image.NormalName(distribution)] = true
			}
		}
	}
	return a.brought[name]
}

// present says whether a distribution can be imported on the grader's machine.
func (a *analysis) present(name string) shell.Answer {
	if a.shipped(name) {
		return shell.Yes
	}
	switch _, installed, known := a.options.Image.Installed(name); {
	case installed:
		return shell.Yes
	case known:
		return shell.No
	}
	return shell.PerhapsNo
}

// presentAny is the best answer for a distribution and those that serve as well.
func (a *analysis) presentAny(names []string) shell.Answer {
	best := shell.No
	for _, name := range names {
		switch there := a.present(name); there {
		case shell.Yes:
			return shell.Yes
		case shell.PerhapsNo:
			best = shell.PerhapsNo
		}
	}
	return best
}

// checkPackages looks for distributions that the served code needs by a call's
// name or by an import, and that nobody brings.
func (a *analysis) checkPackages() {
	silent := a.options.Image == nil || len(a.options.Image.Distributions) == 0
	assumed := map[string]bool{}
	for _, members := range a.programs() {
		sources, served := make([]python.Source, len(members)), map[string]bool{}
		for i := range members {
			sources[i] = python.Source{Path: members[i].path, Module: &members[i].parsed}
			served[members[i].path] = members[i].main
		}
		for _, r := range python.RequirementsOf(sources) {
			a.checkRequirement(r, served[r.Path], silent)
			a.checkVersion(r, served[r.Path])
		}
	}
	for _, m := range a.withInline() {
		for _, i := range m.parsed.Imports {
			a.checkImport(m, i, assumed)
		}
	}
	if python := slices.ContainsFunc(a.modules, func(m module) bool { return m.main }); python {
		a.checkConfigs(silent)
	}
	if len(assumed) > 0 {
		a.note("taken to be in the grader's image, which nobody describes in full: " + strings.Join(slices.Sorted(maps.Keys(assumed)), ", "))
	}
	a.checkLocal()
	a.checkUnused()
	a.checkTwice()
	a.checkHooks()
	a.checkLibraries()
	a.checkTags()
	a.checkDriver()
}

// checkRequirement looks for a distribution that a call needs by its name.
func (a *analysis) checkRequirement(r python.Requirement, served, silent bool) {
	names := append([]string{r.Distribution}, r.Or...)
	there := a.presentAny(names)
	if there == shell.Yes {
		return
	}
	a.add(shell.Finding{Check: "C09", Warning: !served || r.Perhaps || there == shell.PerhapsNo && !silent, Path: r.Path, Line: r.Line,
		Problem: fmt.Sprintf("%s, and %s is neither among the wheels nor described as part of the grader's image", r.Why, strings.Join(names, " or ")), Hint: "vendor the wheel of " + r.Distribution})
}

// checkConfigs looks for what a config.json makes the transformers library call
// for. Only code that loads it that way needs it, so that these are warnings
// unless the distribution is known to be absent.
func (a *analysis) checkConfigs(silent bool) {
	usesTransformers := slices.ContainsFunc(a.modules, func(m module) bool {
		return m.main && slices.ContainsFunc(m.parsed.Imports, func(i python.Import) bool {
			top, _, _ := strings.Cut(i.Module, ".")
			return top == "transformers" || top == "vllm"
		})
	})
	if !usesTransformers {
		return
	}
	for _, at := range a.tree.Below(a.tree.Root) {
		if n := a.tree.Base[at]; path.Base(at) == "config.json" && n.Source != "" {
			a.checkHubKernels(n)
			for _, repository := range python.CodeOf(n.Data) {
				a.add(shell.Finding{Check: "C22", Warning: true, Path: n.Source, Problem: fmt.Sprintf("auto_map names code of %s, which trust_remote_code asks the model hub for", repository),
					Hint: "ship the module beside config.json, and leave the repository and -- out of auto_map"})
			}
			for _, r := range python.RequirementsOfConfig(n.Source, n.Data) {
				a.checkRequirement(r, a.presentAny(append([]string{r.Distribution}, r.Or...)) == shell.No, silent)
			}
		}
	}
}

// checkHubKernels looks for a quantization whose kernels the kernels package gets
// from the model hub. Source: transformers, integrations/finegrained_fp8.py and
// quantizers/quantizer_mxfp4.py.
func (a *analysis) checkHubKernels(n *shell.Node) {
	method := python.QuantizationOf(n.Data)
	if method != "fp8" && method != "mxfp4" || a.present("kernels") != shell.Yes {
		return
	}
	for _, p := range a.tree.Below(a.tree.Root) {
		if strings.Contains(p, "kernels-community--") {
			return
		}
	}
	a.add(shell.Finding{Check: "C22", Warning: true, Path: n.Source, Problem: fmt.Sprintf("the kernels package gets the kernels of quant_method %q from the model hub, and a grader has no network", method),
		Hint: "leave the kernels package out, or ship the hub's cache of them and name it in HF_HOME"})
}

// checkLocal looks at the submission's own modules: one that hides a module of
// Python's own, and a relative import of what is not there.
func (a *analysis) checkLocal() {
	all, served := map[string]python.Module{}, map[string]bool{}
	for _, at := range a.tree.Below(a.tree.Root) {
		all[a.tree.Base[at].Source] = python.Module{}
	}
	for _, m := range a.modules {
		all[m.path], served[m.path] = m.parsed, m.main
	}
	for _, p := range python.LocalProblems(all) {
		if p.Hides != "" && a.presentAny(python.ProvidersOf(p.Hides)) != shell.Yes {
			continue // nobody installs what it would hide
		}
		own := strings.Contains(p.Problem, "Python's own")
		a.add(shell.Finding{Check: "C23", Warning: p.Line == 0 && !own || p.Line > 0 && !served[p.Path], Path: p.Path, Line: p.Line, Problem: p.Problem, Hint: p.Hint})
	}
}

// checkImport looks at one import.
func (a *analysis) checkImport(m module, i python.Import, assumed map[string]bool) {
	if i.Optional && !i.Deferred || strings.HasPrefix(i.Module, ".") {
		return
	}
	top, _, _ := strings.Cut(i.Module, ".")
	names := python.ProvidersOf(i.Module)
	if a.shipsModule(m, top) || python.IsStandard(top, 0) {
		return
	}
	if len(names) == 0 { // the table does not know it: its own name is a guess
		switch name := image.NormalName(top); {
		case !m.main || a.present(name) == shell.Yes:
		case m.started && !i.Optional && !a.bringsModule(top):
			a.add(shell.Finding{Check: "C23", Warning: true, Path: m.path, Line: i.Line,
				Problem: fmt.Sprintf("imports %s: no such module is in the submission, in Python or in a distribution that is known here", i.Module), Hint: "ship it, or vendor the wheel that has it"})
		default:
			assumed[top+" (a module)"] = true
		}
		return
	}
	switch a.presentAny(names) {
	case shell.Yes:
	case shell.No:
		a.add(shell.Finding{Check: "C09", Warning: !m.main || i.Deferred, Path: m.path, Line: i.Line,
			Problem: fmt.Sprintf("imports %s, and %s is neither among the wheels nor in the grader's image", i.Module, names[0]), Hint: "vendor the wheel of " + names[0]})
	default:
		if m.main {
			assumed[names[0]] = true
		}
	}
}

// shipsModule reports whether a module is a file or folder of the submission
// beside the importing one, or at the root.
func (a *analysis) shipsModule(m module, top string) bool {
	for _, folder := range []string{path.Dir(m.path), ".", "code", "src", "lib"} {
		at := path.Join(a.tree.Root, folder, top)
		if a.tree.Base[at+".py"] != nil || a.tree.Base[at] != nil && a.tree.Base[at].Folder {
			return true
		}
	}
	return false
}

// bringsModule reports whether a file or folder of the submission has a module's
// name, wherever it lies.
func (a *analysis) bringsModule(top string) bool {
	for p, n := range a.tree.Base {
		name := path.Base(p)
		if a.tree.Within(p) && (name == top+".py" || name == top && n.Folder || strings.HasPrefix(name, top+".") && strings.HasSuffix(name, ".so")) {
			return true
		}
	}
	return false
}
