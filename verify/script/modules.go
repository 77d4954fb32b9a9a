package script

import (
	"path"
	"slices"
	"strings"

	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// maxModules bounds how much Python is read.
const maxModules = 400

// readModules reads the Python files that the commands start and those of the
// submission that these import, and so on.
func (a *analysis) readModules() {
	seen := map[string]bool{}
	var read func(file string, folders []string, main bool, working string)
	read = func(file string, folders []string, main bool, working string) {
		n := a.tree.Submitted(file)
		if n == nil || n.Data == nil || seen[file] || len(seen) >= maxModules {
			return
		}
		seen[file] = true
		m := module{path: file, parsed: python.Scan(n.Data), main: main, folder: working}
		a.modules = append(a.modules, m)
		for _, i := range m.parsed.Imports {
			for _, imported := range a.importedFiles(file, i, folders) {
				read(imported, folders, main, working)
			}
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
		if main && (st == a.server || !st.Tested) {
			a.markStarted(file)
		}
	})
	if st := a.server; st != nil {
		if file := a.applicationOf(st); file != "" {
			read(file, []string{path.Dir(file)}, true, st.Folder)
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
	m := module{path: st.Path, parsed: python.Scan([]byte(code)), main: st.Fatal || st.Exec, started: !st.Tested, folder: st.Folder}
	m.parsed.MoveLines(func(line int) int {
		if first == 0 {
			return st.Line
		}
		return first + line - 1
	})
	if m.parsed.Problem != "" && first > 0 {
		a.add(shell.Finding{Check: "C18", Warning: !st.Fatal, Path: st.Path, Line: first, Problem: "the here-document is no Python: " + m.parsed.Problem, Hint: "its lines are counted from its own first"})
	}
	if st == a.server {
		a.modules = append(a.modules, m)
	} else {
		a.inline = append(a.inline, m)
	}
	if a.tree.Within(st.Folder) { // Python looks for modules in the folder it is in
		folder := a.relativeFolder(st.Folder)
		for _, i := range m.parsed.Imports {
			for _, imported := range a.importedFiles(path.Join(folder, "inline.py"), i, []string{folder}) {
				read(imported, []string{folder}, m.main, st.Folder)
			}
		}
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
