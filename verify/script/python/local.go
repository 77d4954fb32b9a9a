package python

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// LocalProblem is a fault between the modules that a submission ships.
type LocalProblem struct {
	Path    string // of the module at fault
	Line    int    // 0 where it is the whole module
	Problem string
	Hint    string
	// Hides is the module that Path hides, where it is one of a distribution:
	// nothing is wrong unless that is installed. "" for Python's own and for
	// other problems, which are certain.
	Hides string
}

// Modules that the interpreter has loaded, or has built in, before a script
// begins: a file beside the script hides none of them.
var loadedEarly = setOf(`abc builtins codecs encodings errno faulthandler gc genericpath io itertools marshal nt ntpath os posix
	posixpath pwd signal site stat string sys time types zipimport`)

// LocalProblems finds modules that hide a standard or well-known one from the
// scripts beside them, and relative imports of what is not there. Files holds the
// submission's files by path; those that are no Python have the zero Module.
//
// A module hides another where scripts may be started in its folder: one that is
// no package (no __init__.py) and in which some module imports that name.
func LocalProblems(files map[string]Module) []LocalProblem {
	var problems []LocalProblem
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(p) != ".py" {
			continue
		}
		if by := hides(p, files); by != "" {
			_, name := moduleAt(p)
			problem := LocalProblem{Path: p, Hides: name, Hint: "give it another name"}
			whose := "the installed module"
			if IsStandard(name, 0) {
				whose, problem.Hides = "Python's own module", ""
			}
			problem.Problem = "hides " + whose + " " + name + " from " + by + ", which imports it"
			problems = append(problems, problem)
		}
		for _, i := range files[p].Imports {
			if strings.HasPrefix(i.Module, ".") && !i.Optional && !resolves(p, i, files) {
				problems = append(problems, LocalProblem{Path: p, Line: i.Line, Problem: "imports " + i.Module + ", which is not there",
					Hint: "ship the module, or remove the import"})
			}
		}
	}
	return problems
}

// moduleAt returns the folder from which a file is imported, and its name: of a
// package's __init__.py that of the package.
func moduleAt(p string) (folder, name string) {
	if path.Base(p) == "__init__.py" {
		return path.Dir(path.Dir(p)), path.Base(path.Dir(p))
	}
	return path.Dir(p), strings.TrimSuffix(path.Base(p), ".py")
}

// hides returns a module beside p that imports, by an absolute name, the standard
// or well-known module that p has the name of; "" where p hides nothing.
func hides(p string, files map[string]Module) string {
	folder, name := moduleAt(p)
	if _, isPackage := files[path.Join(folder, "__init__.py")]; isPackage || loadedEarly[name] {
		return ""
	}
	if !IsStandard(name, 0) && !wellKnown(name) {
		return ""
	}
	var by []string
	for other, m := range files {
		if other == p || path.Dir(other) != folder {
			continue
		}
		if slices.ContainsFunc(m.Imports, func(i Import) bool { return rootOf(i.Module) == name }) {
			by = append(by, other)
		}
	}
	if len(by) == 0 {
		return ""
	}
	return slices.Min(by)
}

// wellKnown reports whether a top-level module is one of a distribution that the
// table knows.
func wellKnown(name string) bool { return sameName[name] || distributions[name] != nil }

// resolves reports whether a relative import names a module, a folder or, for
// "from . import x", the package itself.
func resolves(p string, i Import, files map[string]Module) bool {
	rest := strings.TrimLeft(i.Module, ".")
	folder := path.Dir(p)
	for range len(i.Module) - len(rest) - 1 {
		folder = path.Dir(folder)
	}
	if rest == "" {
		return true // its names may be the package's own
	}
	target := path.Join(folder, strings.ReplaceAll(rest, ".", "/"))
	for other := range files {
		if tail, ok := strings.CutPrefix(other, target); ok && (tail == ".py" || strings.HasPrefix(tail, "/") ||
			strings.HasPrefix(tail, ".") && slices.Contains([]string{".so", ".pyd", ".pyc"}, path.Ext(tail))) {
			return true
		}
	}
	return false
}
