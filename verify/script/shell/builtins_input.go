package shell

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

func readIn(s *shell, args []string, at syntax.Node) int {
	if len(args) == 0 {
		return 2
	}
	p := s.absolute(args[0])
	n, there := s.run.Tree.Get(p)
	if s.language == syntax.LangPOSIX && there == Yes && !strings.Contains(args[0], "/") && Known(args[0]) {
		if found, _ := s.search(args[0]); found != p { // POSIX, "dot": PATH is searched, and nothing else
			s.run.find(Finding{Check: "C20", Path: s.path, Line: s.line(), Problem: fmt.Sprintf(". %s: sh looks for it on PATH, and not in the folder that it is in", args[0]),
				Hint: "write . ./" + args[0]})
		}
	}
	if there == No {
		s.missing(args[0], p)
		if s.language == syntax.LangPOSIX && s.tested == 0 {
			s.end(s.line())
		}
		return 1
	}
	if n.Data == nil {
		s.run.note("%s, line %d: %s is read into the shell, and what it does cannot be known here", s.path, s.line(), Shown(args[0]))
		return s.judge(there, at)
	}
	file, problem, line := ParseScript(n.Source, n.Data[:min(len(n.Data), MaxScriptBytes)])
	if problem != "" {
		s.run.find(Finding{Check: "C18", Path: n.Source, Line: line, Problem: problem})
	}
	if file == nil {
		return 1
	}
	s.carriageReturns(n)
	parameters, was, quoted := s.parameters, s.path, s.quoted
	s.quoted = false
	if len(args) > 1 {
		s.parameters = args[1:]
	}
	s.path = n.Source
	s.nested(file.Stmts)
	s.parameters, s.path, s.quoted = parameters, was, quoted
	if s.flow == returning {
		s.flow = onward
	}
	return s.status
}

// carriageReturns reports a script of which each line ends in CR LF. Of serve.sh
// itself, and of a #! line, that is said elsewhere.
func (s *shell) carriageReturns(n *Node) {
	if i := bytes.Index(n.Data, []byte("\r\n")); i >= 0 && n.Source != s.path && !strings.HasPrefix(FirstLine(n.Data), "#!") {
		s.run.find(Finding{Check: "C18", Path: n.Source, Line: 1 + bytes.Count(n.Data[:i], []byte("\n")),
			Problem: "has lines that end in CR LF: the CR becomes part of words and of values", Hint: "save it with LF line ends: sed -i 's/\\r$//' " + n.Source})
	}
}

func read(s *shell, args []string, _ syntax.Node) int {
	if !s.hasInput {
		if s.tested == 0 || !slices.ContainsFunc(args, func(w string) bool { return strings.HasPrefix(w, "-t") }) {
			s.interactive("read")
		}
		return 1
	}
	line, rest, _ := strings.Cut(s.input, "\n")
	if s.input == "" {
		return 1
	}
	s.input = rest
	var names []string
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains([]string{"-p", "-t", "-n", "-d", "-u", "-N", "-i"}, args[i]):
			i++
		case args[i] == "-a" && i+1 < len(args):
			s.variables[args[i+1]] = expand.Variable{Set: true, Kind: expand.Indexed, List: strings.Fields(line)}
			return 0
		case !strings.HasPrefix(args[i], "-"):
			names = append(names, args[i])
		}
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	values := expand.ReadFields(s.config(), line, len(names), true)
	for i, name := range names {
		value := ""
		if i < len(values) {
			value = values[i]
		}
		if !Known(line) {
			value = Unknown
		}
		s.set(name, value)
	}
	return 0
}

// interactive is a wait for somebody who is not there.
func (s *shell) interactive(what string) {
	s.status = 1
	hint := "leave it out"
	if what == "read" || what == "select" {
		hint = "take the value from a variable with a default"
	}
	s.run.find(Finding{Check: "C18", Path: s.path, Line: s.line(), Problem: what + " waits for an answer, and nobody gives one", Hint: hint})
}

func readLines(s *shell, args []string, _ syntax.Node) int {
	name := "MAPFILE"
	if len(args) > 0 && !strings.HasPrefix(args[len(args)-1], "-") {
		name = args[len(args)-1]
	}
	list := []string{}
	for line := range strings.Lines(s.input) {
		list = append(list, strings.TrimSuffix(line, "\n"))
	}
	s.variables[name] = expand.Variable{Set: true, Kind: expand.Indexed, List: list}
	return 0
}
