package script

import (
	"path"
	"slices"
	"strings"

	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// module is a Python file that the submission's commands reach.
type module struct {
	path   string // relative to the root
	parsed python.Module
	main   bool // started by the main path

	started bool   // it is what a command of the main path runs, not only imported
	folder  string // in which it runs, absolute

	root    bool     // a command runs it
	imports []string // paths of the modules that it may load
}

// moduleOf returns the file behind a start of Python, relative to the root, or "".
func (a *analysis) moduleOf(r *shell.Run, st *shell.Step, p shell.PythonStart) string {
	if p.File != "" && p.File != "-" {
		n, _ := r.Tree.Get(absoluteIn(st.Folder, p.File))
		if n != nil && !n.Folder {
			return n.Source
		}
		return ""
	}
	if p.Module == "" {
		return ""
	}
	rest := strings.ReplaceAll(p.Module, ".", "/")
	for _, folder := range append([]string{st.Folder}, strings.Split(st.Variables["PYTHONPATH"], ":")...) {
		for _, suffix := range []string{".py", "/__main__.py"} {
			if n, _ := r.Tree.Get(absoluteIn(st.Folder, path.Join(folder, rest+suffix))); n != nil && n.Source != "" {
				return n.Source
			}
		}
	}
	return ""
}

// Bounds of the Python that is read.
const (
	maxModules     = 400
	maxModuleBytes = 4 << 20
	maxMembers     = 4 * maxModules // of all programs together
)

// readModules reads the Python files that the commands start and those of the
// submission that these import, and so on.
func (a *analysis) readModules() {
	seen, total := map[string]bool{}, 0
	var read func(file string, folders []string, main bool, working string)
	read = func(file string, folders []string, main bool, working string) {
		n := a.tree.Submitted(file)
		if n == nil || n.Data == nil || seen[file] {
			return
		}
		if total += len(n.Data); len(seen) >= maxModules || total > maxModuleBytes {
			a.note("more Python is imported than is read: the rest was not checked")
			return
		}
		seen[file] = true
		m, at := module{path: file, parsed: python.Scan(n.Data), main: main, folder: working}, len(a.modules)
		for _, i := range m.parsed.Imports {
			m.imports = append(m.imports, a.importedFiles(file, i, folders)...)
		}
		a.modules = append(a.modules, m)
		for _, imported := range a.modules[at].imports {
			read(imported, folders, main, working)
		}
	}
	a.allSteps(func(r *shell.Run, st *shell.Step, main bool) {
		p, ok := a.pythonOf(r, st)
		if !ok {
			return
		}
		if main {
			a.readInline(st, read)
		}
		folders := []string{}
		for _, entry := range strings.Split(st.Variables["PYTHONPATH"], ":") {
			if at := absoluteIn(st.Folder, entry); entry != "" && a.tree.Within(at) {
				folders = append(folders, a.relativeFolder(at))
			}
		}
		file := a.moduleOf(r, st, p)
		if file == "" {
			file = a.applicationOf(st)
		}
		if file == "" {
			return
		}
		folders = append(folders, path.Dir(file))
		if p.Module != "" && a.tree.Within(st.Folder) {
			folders = append(folders, a.relativeFolder(st.Folder))
		}
		read(file, folders, main, st.Folder)
		a.markRoot(file)
		if main && (st == a.server || !st.Tested) {
			a.markStarted(file)
		}
	})
	if st := a.server; st != nil {
		if file := a.applicationOf(st); file != "" {
			read(file, []string{path.Dir(file)}, true, st.Folder)
			a.markRoot(file)
			a.markStarted(file)
		}
	}
}

// withInline are the modules and what the main path gives to python3 -c or to its
// standard input. Their lines are those of the script.
func (a *analysis) withInline() []module {
	return append(slices.Clone(a.modules), a.inline...)
}

// readInline reads the Python that stands in a command of the main path itself.
// One that is the server is a module like any other.
func (a *analysis) readInline(st *shell.Step, read func(file string, folders []string, main bool, working string)) {
	code, first := inlineOf(st)
	if code == "" || !shell.Known(code) {
		return
	}
	m := module{path: st.Path, parsed: python.Scan([]byte(code)), main: st.Fatal || st.Exec, started: !st.Tested, folder: st.Folder, root: true}
	m.parsed.MoveLines(func(line int) int {
		if first == 0 {
			return st.Line
		}
		return first + line - 1
	})
	if m.parsed.Problem != "" && first > 0 {
		a.add(shell.Finding{Check: "C18", Warning: !st.Fatal, Path: st.Path, Line: first, Problem: "the here-document is no Python: " + m.parsed.Problem, Hint: "its lines are counted from its own first"})
	}
	folder := ""
	if a.tree.Within(st.Folder) { // Python looks for modules in the folder it is in
		folder = a.relativeFolder(st.Folder)
		for _, i := range m.parsed.Imports {
			m.imports = append(m.imports, a.importedFiles(path.Join(folder, "inline.py"), i, []string{folder})...)
		}
	}
	if st == a.server {
		a.modules = append(a.modules, m)
	} else {
		a.inline = append(a.inline, m)
	}
	for _, imported := range m.imports {
		read(imported, []string{folder}, m.main, st.Folder)
	}
}

// inlineOf is the Python that a command itself brings, and the line of the
// script at which it begins; 0 where its lines are not the script's.
func inlineOf(st *shell.Step) (code string, first int) {
	p, ok := shell.PythonOf(st.Argv)
	switch {
	case !ok || p.Module != "":
	case p.Code != "":
		return p.Code, 0
	case p.File == "-" || p.File == "" || p.File == "/dev/stdin":
		return st.Input, st.InputLine
	}
	return "", 0
}

// markStarted notes a file that a command of the main path runs.
func (a *analysis) markStarted(file string) {
	for i := range a.modules {
		a.modules[i].started = a.modules[i].started || a.modules[i].path == file
	}
}

// markRoot notes a file that some command runs.
func (a *analysis) markRoot(file string) {
	for i := range a.modules {
		a.modules[i].root = a.modules[i].root || a.modules[i].path == file
	}
}

// programs are the modules that are one process each: what a command runs, first,
// and all that this imports, as long as these are not too many in all.
func (a *analysis) programs() (programs [][]module) {
	at, total := map[string]int{}, 0
	for i, m := range a.modules {
		at[m.path] = i
	}
	for _, m := range a.withInline() {
		if !m.root {
			continue
		}
		members, seen := []module{m}, map[string]bool{m.path: true}
		for i := 0; i < len(members) && total+len(members) < maxMembers; i++ {
			for _, p := range members[i].imports {
				if j, ok := at[p]; ok && !seen[p] {
					seen[p] = true
					members = append(members, a.modules[j])
				}
			}
		}
		programs = append(programs, members)
		total += len(members)
	}
	return programs
}

// relativeFolder is a folder relative to the root, "." for the root.
func (a *analysis) relativeFolder(at string) string {
	if at == a.tree.Root {
		return "."
	}
	return a.tree.Relative(at)
}

// applicationOf finds the file of uvicorn's MODULE:NAME, or "".
func (a *analysis) applicationOf(st *shell.Step) string {
	server, args := serverOf(st.Argv)
	if server != "uvicorn" && server != "gunicorn" && server != "hypercorn" {
		return ""
	}
	folder := st.Folder
	for i, word := range args {
		name, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		if name == "--app-dir" || name == "--chdir" {
			folder = absoluteIn(st.Folder, value)
		}
	}
	for _, word := range args {
		if name, _, ok := strings.Cut(word, ":"); ok && !strings.HasPrefix(word, "-") && !strings.Contains(name, "/") && strings.Trim(name, ".0123456789") != "" {
			p := absoluteIn(folder, strings.ReplaceAll(name, ".", "/"))
			for _, suffix := range []string{".py", "/__init__.py"} {
				if n := a.tree.Base[p+suffix]; n != nil && n.Source != "" {
					return n.Source
				}
			}
		}
	}
	return ""
}

// importedFiles are the submission's files that an import may load.
func (a *analysis) importedFiles(file string, i python.Import, folders []string) (files []string) {
	name := i.Module
	if strings.HasPrefix(name, ".") {
		base := path.Dir(file)
		for name = name[1:]; strings.HasPrefix(name, "."); name = name[1:] {
			base = path.Dir(base)
		}
		folders = []string{base}
	}
	names := []string{name}
	for _, n := range i.Names {
		names = append(names, strings.TrimPrefix(name+"."+n, "."))
	}
	for _, folder := range folders {
		for _, n := range names {
			p := path.Join(folder, strings.ReplaceAll(n, ".", "/"))
			for _, candidate := range []string{p + ".py", path.Join(p, "__init__.py")} {
				if a.tree.Submitted(candidate) != nil && !slices.Contains(files, candidate) {
					files = append(files, candidate)
				}
			}
		}
	}
	return files
}
