package script

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"slipway/verify/script/shell"
)

//go:embed flags/*.txt
var flagFiles embed.FS

// serverFlags are the options that a known server has in some release, and
// those that end the start of current ones.
type serverFlags struct {
	known   []string
	removed map[string]string // option -> remedy
}

// flagsOf reads the data of a server; ok is false where there is none.
func flagsOf(server string) (f serverFlags, ok bool) {
	data, err := flagFiles.ReadFile("flags/" + server + ".txt")
	if err != nil {
		return f, false
	}
	f.removed = map[string]string{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch rest, removed := strings.CutPrefix(line, "removed "); {
		case removed:
			option, remedy, _ := strings.Cut(rest, ": ")
			f.removed[option] = remedy
		case strings.HasPrefix(line, "--"):
			f.known = append(f.known, line)
		}
	}
	return f, true
}

// checkServerFlags warns of options that no known release of a server has: its
// version is not known, so that only removed ones are errors.
func (a *analysis) checkServerFlags(server string, args []string, st *shell.Step, main bool) {
	flags, ok := flagsOf(server)
	if !ok {
		return
	}
	for _, word := range args {
		if word == "--" {
			return
		}
		if !strings.HasPrefix(word, "--") || !shell.Known(word) {
			continue
		}
		name, _, _ := strings.Cut(word, "=")
		name, _, _ = strings.Cut(strings.ReplaceAll(name, "_", "-"), ".")
		if remedy, removed := flags.removed[name]; removed {
			a.add(shell.Finding{Check: "C19", Warning: !main, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("%s has no option %s any more and ends with unrecognized arguments", server, name), Hint: remedy})
			continue
		}
		positive := "--" + strings.TrimPrefix(name, "--no-")
		if slices.ContainsFunc(flags.known, func(f string) bool { return strings.HasPrefix(f, name) || f == positive }) {
			continue
		}
		a.add(shell.Finding{Check: "C19", Warning: true, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("no release of %s that is known here has the option %s", server, name),
			Hint: "check it against the version that the grader has: " + server + " --help"})
	}
}
