package script

import (
	"fmt"
	"path"
	"slices"
	"strings"
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
		d := r.taken[len(r.taken)-1]
		again := d.asked != nil && sameCommand(d.asked.Argv, a.server.Argv)
		if !again && st.identity() == a.server.identity() {
			continue
		}
		a.compareServers(r, st, again)
	}
	a.checkSecondServer()
}

// compareServers says what a fallback changes. again: it follows a failure of
// the server itself.
func (a *analysis) compareServers(r *run, st *step, again bool) {
	f := Finding{Check: "C24", Path: st.Path, Line: st.Line, Got: shown(strings.Join(st.Argv, " ")), Want: shown(strings.Join(a.server.Argv, " ")),
		Hint: "remove the fallback: make the first way work, and let the script fail where it does not"}
	mine, other := a.programIdentity(a.main, a.server), a.programIdentity(r, st)
	dropped, changed, added := differences(a.words(a.main, a.server), a.words(r, st))
	switch {
	case mine != other:
		f.Problem = fmt.Sprintf("a fallback starts another server, %s in place of %s %s", other, mine, r.condition())
	case len(dropped) > 0:
		f.Problem = fmt.Sprintf("a fallback starts the server without %s %s", strings.Join(dropped, ", "), r.condition())
	case slices.ContainsFunc(changed, isModelChange):
		f.Problem = fmt.Sprintf("a fallback serves another model %s: %s", r.condition(), strings.Join(changed, ", "))
	case len(changed) > 0:
		f.Warning, f.Problem = true, fmt.Sprintf("a fallback changes %s %s", strings.Join(changed, ", "), r.condition())
	case again:
		f.Warning, f.Problem = true, "starts the server a second time after it failed: what it held, memory and port, may not be free yet"
	case len(added) > 0:
		if text := fmt.Sprintf("%s, line %d: the same server is started with %s too", st.Path, st.Line, strings.Join(added, ", ")); !slices.ContainsFunc(a.result.Notes, func(n string) bool { return strings.HasPrefix(n, text) }) {
			a.note(text + " " + r.condition())
		}
		return
	default:
		return
	}
	a.add(f)
}

// programIdentity is what a server is, wherever it was copied to.
func (a *analysis) programIdentity(r *run, st *step) string {
	if name, _ := serverOf(st.Argv); name != "" {
		return name
	}
	if p, ok := a.pythonOf(r, st); ok {
		if file := a.moduleOf(r, st, p); file != "" {
			return file
		}
		if p.module != "" {
			return "python3 -m " + p.module
		}
		return shown(p.file)
	}
	if n, _ := r.tree.get(absoluteIn(st.folder, st.Argv[0])); strings.Contains(st.Argv[0], "/") && n != nil && n.source != "" {
		return n.source
	}
	return shown(path.Base(st.Argv[0]))
}

// words are the arguments of a server, files by what they are copies of.
func (a *analysis) words(r *run, st *step) []string {
	_, args := serverOf(st.Argv)
	if args == nil {
		if p, ok := a.pythonOf(r, st); ok {
			args = p.args
		} else {
			args = st.Argv[1:]
		}
	}
	words := slices.Clone(args)
	for i, word := range words {
		if n, there := r.tree.get(absoluteIn(st.folder, word)); strings.Contains(word, "/") && there == yes && n.source != "" {
			words[i] = path.Join(r.tree.root, n.source)
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
			dropped = append(dropped, shown(name))
		case value != a[name]:
			changed = append(changed, shown(fmt.Sprintf("%s from %q to %q", name, a[name], value)))
		}
	}
	for _, name := range optionNames(other) {
		if _, there := a[name]; !there {
			added = append(added, shown(name))
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
	ports := map[string]*step{}
	for _, st := range a.main.steps {
		if st != a.server && !(st.background && a.isServer(a.main, st)) {
			continue
		}
		port := optionMap(st.Argv[1:])["--port"]
		first, taken := ports[port]
		ports[port] = st
		if len(ports) < 2 && !taken {
			continue
		}
		f := Finding{Check: "C24", Path: st.Path, Line: st.Line, Got: shown(strings.Join(st.Argv, " ")), Hint: "start one"}
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
func (a *analysis) isServer(r *run, st *step) bool {
	if name, _ := serverOf(st.Argv); name != "" {
		return true
	}
	return a.serves(r, st) && slices.ContainsFunc(st.Argv, func(w string) bool { return strings.HasPrefix(w, "--port") })
}
