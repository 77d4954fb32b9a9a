package script

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// checkUnused looks for wheels that nothing installs.
func (a *analysis) checkUnused() {
	wheels := a.wheels()
	if len(wheels) == 0 || a.server == nil {
		return
	}
	for _, st := range a.main.Steps {
		if _, ok := shell.InstallOf(st.Argv); ok || strings.Contains(strings.Join(st.Argv, " "), ".whl") || slices.ContainsFunc(st.Argv, func(w string) bool { return strings.Contains(w, "wheel") }) {
			return
		}
		for p := range wheels {
			if entries := st.Variables["PYTHONPATH"]; strings.Contains(entries, p) || strings.Contains(entries+":", path.Dir(p)+":") || !shell.Known(entries) {
				return
			}
		}
	}
	for _, m := range a.modules {
		if slices.ContainsFunc(m.parsed.Strings, func(l python.Literal) bool {
			return strings.Contains(l.Text, "wheel") || strings.Contains(l.Text, ".whl")
		}) {
			return
		}
	}
	a.add(shell.Finding{Check: "C09", Warning: true, Path: EntryPath, Problem: fmt.Sprintf("installs none of the %d wheels that are shipped", len(wheels)),
		Hint: "install them with pip install --no-index --find-links, or leave them out"})
}

// checkTwice looks for two installations into one folder: the second skips the
// directories that are there already, and with them parts of its packages.
func (a *analysis) checkTwice() {
	seen := map[string]bool{}
	for _, st := range a.main.Steps {
		in, ok := shell.InstallOf(st.Argv)
		if !ok || slices.Contains(st.Argv, "--upgrade") || slices.Contains(st.Argv, "-U") || in.Name[0] == "uv" {
			continue
		}
		for _, target := range in.Targets {
			if at := absoluteIn(st.Folder, target); seen[at] {
				a.add(shell.Finding{Check: "C20", Warning: true, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("installs to %s a second time: pip leaves out what belongs into a folder that is there already", shell.Shown(target)),
					Hint: "install everything with one command"})
			} else {
				seen[at] = true
			}
		}
	}
}

// wheelBytes is the size of the wheels that an installation may take.
func (a *analysis) wheelBytes(in shell.Install, st *shell.Step) (bytes int64) {
	for p := range a.wheelsOf(in, st) {
		bytes += a.tree.Base[p].Size
	}
	return bytes
}

// wheelsOf are the submitted wheels that an installation may take.
func (a *analysis) wheelsOf(in shell.Install, st *shell.Step) map[string]string {
	chosen := map[string]string{}
	for p, name := range a.wheels() {
		for _, from := range slices.Concat(in.Links, in.Files) {
			at := absoluteIn(st.Folder, from)
			if p == at || strings.HasPrefix(p, at+"/") || !shell.Known(from) {
				chosen[p] = name
			}
		}
	}
	return chosen
}

// libraries are those of the system that a distribution's wheel needs and does
// not bring, and the distribution that does without. Source: opencv-python's page
// at the package index.
var libraries = map[string][2]string{
	"opencv-python":         {"libGL.so.1", "opencv-python-headless"},
	"opencv-contrib-python": {"libGL.so.1", "opencv-contrib-python-headless"},
}

// checkLibraries looks for wheels that need what images for servers seldom have.
func (a *analysis) checkLibraries() {
	for p, name := range a.wheels() {
		if needs, ok := libraries[name]; ok {
			a.add(shell.Finding{Check: "C12", Warning: true, Path: a.tree.Relative(p), Problem: fmt.Sprintf("needs the system's %s, which images for servers seldom have", needs[0]),
				Hint: "vendor " + needs[1] + " in its place"})
		}
	}
}

// checkHooks looks for wheels with a .pth file in a folder of PYTHONPATH: Python
// reads such files in site-packages alone, and what they put on its path is then
// missing. Source: Python, module site.
func (a *analysis) checkHooks() {
	for _, m := range a.withInline() {
		if slices.ContainsFunc(m.parsed.Calls, func(c python.Call) bool { return c.Name == "site.addsitedir" }) {
			return
		}
	}
	for _, st := range a.main.Steps {
		in, _ := shell.InstallOf(st.Argv)
		given := a.wheelsOf(in, st)
		for i := range a.shippedWheels {
			w := &a.shippedWheels[i]
			if len(w.Hooks) == 0 || len(in.Targets) == 0 || given[path.Join(a.tree.Root, w.Path)] == "" {
				continue
			}
			a.add(shell.Finding{Check: "C11", Warning: true, Path: w.Path, Problem: fmt.Sprintf("brings %s, which Python does not read in a folder of PYTHONPATH", strings.Join(w.Hooks, ", ")),
				Got: fmt.Sprintf("installed with --target by %s, line %d", st.Path, st.Line), Hint: "install it into a virtual environment, or say site.addsitedir(FOLDER) before the first import"})
		}
	}
}
