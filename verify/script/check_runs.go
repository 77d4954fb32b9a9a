package script

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// findServer finds what serves, and lists all commands.
func (a *analysis) findServer() {
	a.server = a.serverIn(a.main, 0)
	seen := map[string]bool{}
	for _, st := range a.main.steps {
		seen[st.identity()] = true
		if st == a.server {
			a.result.Main = len(a.result.Commands)
		}
		a.result.Commands = append(a.result.Commands, st.reported(""))
	}
	for _, r := range a.branches {
		for _, st := range r.steps {
			if st.choice > 0 && !seen[st.identity()] {
				seen[st.identity()] = true
				a.result.Commands = append(a.result.Commands, st.reported(r.condition()))
			}
		}
	}
	if st := a.server; st != nil {
		a.note(fmt.Sprintf("%s, line %d starts: %s", st.Path, st.Line, commandLine(st.Command)))
	}
}

// identity tells commands apart.
func (st *step) identity() string {
	return fmt.Sprintf("%s:%d %q", st.Path, st.Line, st.Argv)
}

// reported is a command as a report shows it.
func (st *step) reported(branch string) Command {
	c := st.Command
	c.Argv, c.Variables, c.Branch = slices.Clone(c.Argv), map[string]string{}, branch
	for i := range c.Argv {
		c.Argv[i] = shown(c.Argv[i])
	}
	for name, value := range st.Variables {
		c.Variables[name] = shown(value)
	}
	return c
}

// commandLine is a command with its variables, as it could be typed.
func commandLine(c Command) string {
	var words []string
	var names []string
	for name := range c.Variables {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		words = append(words, name+"="+quoted(c.Variables[name]))
	}
	for _, word := range c.Argv {
		words = append(words, quoted(word))
	}
	return strings.Join(words, " ")
}

func quoted(word string) string {
	word = shown(word)
	if len(word) > 200 {
		word = strings.ToValidUTF8(word[:200], "") + "..."
	}
	if word == "" || strings.ContainsAny(word, " \t\n'\"$&|;<>()*[]{}\\") {
		return "'" + strings.ReplaceAll(strings.ReplaceAll(word, "'", `'\''`), "\n", `\n`) + "'"
	}
	return word
}

// checkRuns takes over what the runs themselves found. In a branch it is a
// warning: the main path does not go there.
func (a *analysis) checkRuns() {
	for _, f := range a.main.findings {
		a.add(f)
	}
	for _, text := range a.main.notes {
		a.note(text)
	}
	for _, r := range a.branches {
		for _, f := range r.findings {
			if !slices.Contains(a.main.findings, f) && len(r.taken) > 0 {
				f.Warning = true
				f.Got = strings.TrimPrefix(f.Got+", "+r.condition(), ", ")
				a.add(f)
			}
		}
	}
	if r := a.main; r.stopped != "" && a.server != nil {
		a.note("not followed to its end: " + r.stopped)
	}
}

// allSteps calls f for each command once: those of the main path, then those
// that only branches have.
func (a *analysis) allSteps(f func(r *run, st *step, main bool)) {
	seen := map[string]bool{}
	for _, st := range a.main.steps {
		seen[st.identity()] = true
		f(a.main, st, true)
	}
	for _, r := range a.branches {
		for _, st := range r.steps {
			if id := st.identity(); !seen[id] {
				seen[id] = true
				f(r, st, false)
			}
		}
	}
}

// checkElsewhere runs the script once more as a grader does that starts it from
// another folder.
func (a *analysis) checkElsewhere(file *syntax.File) {
	if a.server == nil {
		return
	}
	r := a.interpret(file, nil, "/")
	st := a.serverIn(r, 0)
	if st != nil && a.programIdentity(r, st) == a.programIdentity(a.main, a.server) && slices.Equal(a.places(r, st), a.places(a.main, a.server)) {
		return
	}
	a.add(Finding{Check: "C20", Warning: true, Path: a.server.Path, Line: a.server.Line, Problem: "works only where a grader starts it in the submission's own folder",
		Hint: "begin with cd \"$(dirname \"$0\")\""})
}

// places are the files and folders of the submission among a command's words.
func (a *analysis) places(r *run, st *step) (places []string) {
	for _, word := range st.Argv[1:] {
		at := absoluteIn(st.folder, word)
		if n, there := r.tree.get(at); there == yes && n != nil && r.tree.within(at) && at != r.tree.root {
			places = append(places, at)
		}
	}
	return places
}
