package script

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"slipway/verify/script/shell"
)

// findServer finds what serves, and lists all commands.
func (a *analysis) findServer() {
	a.server = a.serverIn(a.main, 0)
	seen := map[string]bool{}
	for _, st := range a.main.Steps {
		seen[identity(st)] = true
		if st == a.server {
			a.result.Main = len(a.result.Commands)
		}
		a.result.Commands = append(a.result.Commands, reported(st, ""))
	}
	for _, r := range a.branches {
		for _, st := range r.Steps {
			if st.Choice > 0 && !seen[identity(st)] {
				seen[identity(st)] = true
				a.result.Commands = append(a.result.Commands, reported(st, r.Condition()))
			}
		}
	}
	if st := a.server; st != nil {
		a.note(fmt.Sprintf("%s, line %d starts: %s", st.Path, st.Line, commandLine(st.Command)))
	}
}

// identity tells commands apart.
func identity(st *shell.Step) string {
	return fmt.Sprintf("%s:%d %q", st.Path, st.Line, st.Argv)
}

// reported is a command as a report shows it.
func reported(st *shell.Step, branch string) shell.Command {
	c := st.Command
	c.Argv, c.Variables, c.Branch = slices.Clone(c.Argv), map[string]string{}, branch
	for i := range c.Argv {
		c.Argv[i] = shell.Shown(c.Argv[i])
	}
	for name, value := range st.Variables {
		c.Variables[name] = shell.Shown(value)
	}
	return c
}

// commandLine is a command with its variables, as it could be typed.
func commandLine(c shell.Command) string {
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
	word = shell.Shown(word)
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
	for _, f := range a.main.Findings {
		a.add(f)
	}
	for _, text := range a.main.Notes {
		a.note(text)
	}
	for _, r := range a.branches {
		for _, f := range r.Findings {
			if !slices.Contains(a.main.Findings, f) && len(r.Taken) > 0 {
				f.Warning = true
				f.Got = strings.TrimPrefix(f.Got+", "+r.Condition(), ", ")
				a.add(f)
			}
		}
	}
	if r := a.main; r.Stopped != "" && a.server != nil {
		a.note("not followed to its end: " + r.Stopped)
	}
}

// allSteps calls f for each command once: those of the main path, then those
// that only branches have.
func (a *analysis) allSteps(f func(r *shell.Run, st *shell.Step, main bool)) {
	seen := map[string]bool{}
	for _, st := range a.main.Steps {
		seen[identity(st)] = true
		f(a.main, st, true)
	}
	for _, r := range a.branches {
		for _, st := range r.Steps {
			if id := identity(st); !seen[id] {
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
	r := shell.Interpret(file, a.tree, nil, "/")
	st := a.serverIn(r, 0)
	if st != nil && a.programIdentity(r, st) == a.programIdentity(a.main, a.server) && slices.Equal(a.places(r, st), a.places(a.main, a.server)) {
		return
	}
	a.add(shell.Finding{Check: "C20", Warning: true, Path: a.server.Path, Line: a.server.Line, Problem: "works only where a grader starts it in the submission's own folder",
		Hint: "begin with cd \"$(dirname \"$0\")\""})
}

// places are the files and folders of the submission among a command's words.
func (a *analysis) places(r *shell.Run, st *shell.Step) (places []string) {
	for _, word := range st.Argv[1:] {
		at := absoluteIn(st.Folder, word)
		if n, there := r.Tree.Get(at); there == shell.Yes && n != nil && r.Tree.Within(at) && at != r.Tree.Root {
			places = append(places, at)
		}
	}
	return places
}
