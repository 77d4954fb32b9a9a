package script

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"slipway/verify/script/shell"
)

// checkBranches compares what would serve after each failure that the script
// provides for with what serves on the main path: a fallback is seldom tried,
// and serves other than what was tested.
func (a *analysis) checkBranches() {
	if a.server == nil {
		return
	}
	for _, r := range a.branches {
		st := a.serverIn(r, 1)
		if st == nil {
			continue
		}
		d := r.Taken[len(r.Taken)-1]
		again := d.Asked != nil && sameCommand(d.Asked.Argv, a.server.Argv)
		if again || identity(st) != identity(a.server) {
			a.compareServers(r, st, again)
		}
		a.compareVariables(r, st)
	}
	a.checkSecondServer()
}

// compareServers says what a fallback changes. again: it follows a failure of
// the server itself.
func (a *analysis) compareServers(r *shell.Run, st *shell.Step, again bool) {
	f := shell.Finding{Check: "C24", Path: st.Path, Line: st.Line, Got: shell.Shown(strings.Join(st.Argv, " ")), Want: shell.Shown(strings.Join(a.server.Argv, " ")),
		Hint: "remove the fallback: make the first way work, and let the script fail where it does not"}
	mine, other := a.programIdentity(a.main, a.server), a.programIdentity(r, st)
	dropped, changed, added := differences(a.words(a.main, a.server), a.words(r, st))
	switch {
	case mine != other:
		f.Problem = fmt.Sprintf("a fallback starts another server, %s in place of %s %s", other, mine, r.Condition())
	case len(dropped) > 0:
		f.Problem = fmt.Sprintf("a fallback starts the server without %s %s", strings.Join(dropped, ", "), r.Condition())
	case slices.ContainsFunc(changed, isModelChange):
		f.Problem = fmt.Sprintf("a fallback serves another model %s: %s", r.Condition(), strings.Join(changed, ", "))
	case len(changed) > 0:
		f.Warning, f.Problem = true, fmt.Sprintf("a fallback changes %s %s", strings.Join(changed, ", "), r.Condition())
	case again:
		f.Warning, f.Problem = true, "starts the server a second time after it failed: what it held, memory and port, may not be free yet"
	case len(added) > 0:
		if text := fmt.Sprintf("%s, line %d: the same server is started with %s too", st.Path, st.Line, strings.Join(added, ", ")); !slices.ContainsFunc(a.result.Notes, func(n string) bool { return strings.HasPrefix(n, text) }) {
			a.note(text + " " + r.Condition())
		}
		return
	default:
		return
	}
	a.add(f)
}

// machineVariables are parts of names of variables that say how a machine is
// used, and not what is served.
var machineVariables = []string{"THREADS", "CACHE", "TMPDIR", "LOG", "VERBOS", "LD_LIBRARY_PATH", "HOME", "USER", "PIP_"}

// compareVariables says which variables of the server a fallback changes: by
// them it may serve another model with the same command line.
func (a *analysis) compareVariables(r *shell.Run, st *shell.Step) {
	names := map[string]bool{}
	for _, variables := range []map[string]string{a.server.Variables, st.Variables} {
		for name := range variables {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		mine, set := a.server.Variables[name]
		other, kept := st.Variables[name]
		if mine == other && set == kept || name == "PATH" || slices.ContainsFunc(machineVariables, func(part string) bool { return strings.Contains(name, part) }) {
			continue
		}
		here, there := a.main.Tree.Sources(absoluteIn(a.server.Folder, mine)), r.Tree.Sources(absoluteIn(st.Folder, other))
		if mine != "" && other != "" && len(here) > 0 && slices.Equal(here, there) {
			continue // a copy of the same
		}
		weights := strings.Contains(strings.ToUpper(name), "MODEL") || strings.Contains(strings.ToUpper(name), "WEIGHT") || strings.Contains(strings.ToUpper(name), "CHECKPOINT")
		outside := shell.Known(other) && strings.Contains(other, "/") && len(there) == 0
		folder := other != "" && (len(there) > 0 || outside)
		a.add(shell.Finding{Check: "C24", Warning: !weights || !folder, Path: st.Path, Line: st.Line,
			Problem: fmt.Sprintf("a fallback changes the server's variable %s %s", name, r.Condition()),
			Want:    shell.Shown(shownVariable(mine, set)), Got: shell.Shown(shownVariable(other, kept)),
			Hint: "remove the fallback: make the first way work, and let the script fail where it does not"})
	}
}

func shownVariable(value string, set bool) string {
	if !set {
		return "not set"
	}
	return strconv.Quote(value)
}

// programIdentity is what a server is, wherever it was copied to.
func (a *analysis) programIdentity(r *shell.Run, st *shell.Step) string {
	if name, _ := serverOf(st.Argv); name != "" {
		return name
	}
	if p, ok := a.pythonOf(r, st); ok {
		if file := a.moduleOf(r, st, p); file != "" {
			return file
		}
		if p.Module != "" {
			return "python3 -m " + p.Module
		}
		return shell.Shown(p.File)
	}
	if n, _ := r.Tree.Get(absoluteIn(st.Folder, st.Argv[0])); strings.Contains(st.Argv[0], "/") && n != nil && n.Source != "" {
		return n.Source
	}
	return shell.Shown(path.Base(st.Argv[0]))
}

// words are the arguments of a server, files by what they are copies of.
func (a *analysis) words(r *shell.Run, st *shell.Step) []string {
	_, args := serverOf(st.Argv)
	if args == nil {
		if p, ok := a.pythonOf(r, st); ok {
			args = p.Args
		} else {
			args = st.Argv[1:]
		}
	}
	words := slices.Clone(args)
	for i, word := range words {
		if n, there := r.Tree.Get(absoluteIn(st.Folder, word)); strings.Contains(word, "/") && there == shell.Yes && n.Source != "" {
			words[i] = path.Join(r.Tree.Root, n.Source)
		}
	}
	return words
}

// differences compares two command lines option by option.
func differences(main, other []string) (dropped, changed, added []string) {
	a, b := optionMap(main), optionMap(other)
	for _, name := range optionNames(main) {
		value, there := b[name]
		switch {
		case !there:
			dropped = append(dropped, shell.Shown(name))
		case value != a[name]:
			changed = append(changed, shell.Shown(fmt.Sprintf("%s from %q to %q", name, a[name], value)))
		}
	}
	for _, name := range optionNames(other) {
		if _, there := a[name]; !there {
			added = append(added, shell.Shown(name))
		}
	}
	return dropped, changed, added
}

// optionNames lists options as they stand, words without an option by their
// place.
func optionNames(args []string) (names []string) {
	eachOption(args, func(name, _ string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	return names
}

func optionMap(args []string) map[string]string {
	m := map[string]string{}
	eachOption(args, func(name, value string) { m[name] = strings.TrimSpace(m[name] + " " + value) })
	return m
}

func eachOption(args []string, f func(name, value string)) {
	name, place := "", 0
	for _, word := range args {
		switch {
		case strings.HasPrefix(word, "-") && len(word) > 1 && !isNumber(word):
			option, value, _ := strings.Cut(word, "=")
			f(option, value)
			if name = option; strings.Contains(word, "=") {
				name = ""
			}
		case name != "":
			f(name, word)
		default:
			place++
			f(fmt.Sprintf("word %d", place), word)
		}
	}
}

func isModelChange(change string) bool {
	name, _, _ := strings.Cut(change, " from ")
	return slices.Contains(modelOptions, name) || strings.Contains(name, "weights") || strings.Contains(name, "checkpoint") || strings.Contains(name, "model") || strings.HasPrefix(name, "word ")
}

func sameCommand(a, b []string) bool { return slices.Equal(a, b) }

// checkSecondServer looks for two servers on one path.
func (a *analysis) checkSecondServer() {
	ports := map[string]*shell.Step{}
	for _, st := range a.main.Steps {
		if st != a.server && !(st.Background && a.isServer(a.main, st)) {
			continue
		}
		port := optionMap(st.Argv[1:])["--port"]
		first, taken := ports[port]
		ports[port] = st
		if len(ports) < 2 && !taken {
			continue
		}
		f := shell.Finding{Check: "C24", Path: st.Path, Line: st.Line, Got: shell.Shown(strings.Join(st.Argv, " ")), Hint: "start one"}
		if taken {
			f.Problem = fmt.Sprintf("starts a server while that of line %d runs in the background and holds the port", first.Line)
		} else {
			f.Warning, f.Problem = true, "starts a server while another runs in the background"
		}
		a.add(f)
	}
}

// isServer is stricter than serves: a known server, or a shipped one that is
// told a port.
func (a *analysis) isServer(r *shell.Run, st *shell.Step) bool {
	if name, _ := serverOf(st.Argv); name != "" {
		return true
	}
	return a.serves(r, st) && slices.ContainsFunc(st.Argv, func(w string) bool { return strings.HasPrefix(w, "--port") })
}
