package shell

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// builtin is a command of the shell itself. It returns its status.
type builtin func(s *shell, args []string, at syntax.Node) int

var builtins map[string]builtin

func init() { // refers to itself by eval and command
	builtins = map[string]builtin{
		":": succeed, "true": succeed, "umask": succeed, "ulimit": succeed, "hash": succeed, "jobs": succeed,
		"disown": succeed, "times": succeed, "alias": succeed, "enable": succeed, "bind": succeed, "fg": succeed,
		"false": func(*shell, []string, syntax.Node) int { return 1 },
		"cd":    changeFolder, "pushd": changeFolder, "popd": succeed,
		"pwd":  func(s *shell, _ []string, _ syntax.Node) int { s.print(s.folder + "\n"); return 0 },
		"echo": echo, "printf": printf, "test": test, "[": test,
		"set": setOptions, "shopt": shopt, "shift": shift, "unset": unset, "exec": execute,
		"exit": leave, "return": giveBack, "break": loopControl(breaking), "continue": loopControl(continuing),
		"eval": evaluate, "source": readIn, ".": readIn, "read": read, "mapfile": readLines, "readarray": readLines,
		"trap": trap, "command": command, "builtin": command, "type": lookUp, "getopts": func(*shell, []string, syntax.Node) int { return 1 },
		"export": declareWords("export"), "readonly": declareWords("readonly"), "local": declareWords("local"),
		"declare": declareWords("declare"), "typeset": declareWords("typeset"), "let": succeed,
		"[[": func(s *shell, args []string, at syntax.Node) int {
			if len(args) > 0 && args[len(args)-1] == "]]" {
				args = args[:len(args)-1]
			}
			return test(s, args, at)
		},
		"wait": wait, "kill": kill,
	}
}

func succeed(*shell, []string, syntax.Node) int { return 0 }

func changeFolder(s *shell, args []string, at syntax.Node) int {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		args = args[1:]
	}
	to := s.variables["HOME"].Str
	if len(args) > 0 {
		to = args[0]
	}
	if to == "-" {
		to = s.variables["OLDPWD"].Str
	}
	n, there := s.run.Tree.Get(s.absolute(to))
	if !Known(to) {
		there = perhapsYes
	}
	if there == Yes && !n.Folder {
		there = No
	}
	status := s.judge(there, at)
	if status == 0 {
		s.set("OLDPWD", s.folder)
		s.folder = s.absolute(to)
		s.set("PWD", s.folder)
	}
	return status
}

func echo(s *shell, args []string, _ syntax.Node) int {
	end, escapes := "\n", false
	for len(args) > 0 && len(args[0]) > 1 && strings.Trim(args[0], "-neE") == "" && args[0][0] == '-' {
		if strings.Contains(args[0], "n") {
			end = ""
		}
		escapes = escapes || strings.Contains(args[0], "e")
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		if formatted, _, err := expand.Format(s.config(), strings.ReplaceAll(text, "%", "%%"), nil); err == nil {
			text = formatted
		}
	}
	s.print(text + end)
	return 0
}

func printf(s *shell, args []string, _ syntax.Node) int {
	if len(args) > 1 && args[0] == "-v" {
		s.set(args[1], Unknown)
		return 0
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return 2
	}
	format, rest := args[0], args[1:]
	for range maxLoop {
		text, n, err := expand.Format(s.config(), format, rest)
		if err != nil {
			s.print(Unknown)
			return 0
		}
		s.print(text)
		rest = rest[n:]
		if n == 0 || len(rest) == 0 {
			break
		}
	}
	return 0
}

func setOptions(s *shell, args []string, _ syntax.Node) int {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			s.parameters = args[i+1:]
			return 0
		case len(arg) < 2 || arg[0] != '-' && arg[0] != '+':
			s.parameters = args[i:]
			return 0
		}
		on := arg[0] == '-'
		for _, letter := range arg[1:] {
			if letter == 'o' && i+1 < len(args) {
				i++
				s.option(args[i], on)
				continue
			}
			s.option(string(letter), on)
		}
	}
	return 0
}

func (s *shell) option(name string, on bool) {
	switch name {
	case "e", "errexit":
		s.errexit = on
	case "E", "errtrace":
		s.errtrace = on
	case "u", "nounset":
		s.nounset = on
	case "f", "noglob":
		s.noglob = on
	case "a", "allexport":
		s.allexport = on
	case "pipefail":
		if s.pipefail = on; s.language == syntax.LangPOSIX {
			s.run.find(Finding{Check: "C18", Warning: true, Path: s.path, Line: s.line(), Problem: "sets pipefail under a first line that asks for sh: older ones, as Debian's, end there",
				Hint: "begin it with #!/bin/bash"})
		}
	}
}

func shopt(s *shell, args []string, _ syntax.Node) int {
	if len(args) > 1 && slices.Contains(args[1:], "nullglob") {
		s.nullglob = args[0] == "-s"
	}
	return 0
}

func shift(s *shell, args []string, _ syntax.Node) int {
	n := 1
	if len(args) > 0 {
		n, _ = strconv.Atoi(args[0])
	}
	if n < 0 || n > len(s.parameters) {
		return 1
	}
	s.parameters = s.parameters[n:]
	return 0
}

func unset(s *shell, args []string, _ syntax.Node) int {
	for _, name := range args {
		delete(s.variables, name)
		if slices.Contains(args, "-f") {
			delete(s.functions, name)
		}
	}
	return 0
}

func execute(s *shell, args []string, at syntax.Node) int {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-a" && len(args) > 1 {
			args = args[1:]
		}
		if args = args[1:]; len(args) > 0 && args[0] == "--" {
			args = args[1:]
			break
		}
	}
	if len(args) == 0 {
		s.keep = true
		return 0
	}
	s.external(args, at, true)
	s.flow = exiting
	return s.status
}

func leave(s *shell, args []string, _ syntax.Node) int {
	status := s.status
	if len(args) > 0 {
		status, _ = strconv.Atoi(args[0])
	}
	s.end(s.line())
	return status & 255
}

func giveBack(s *shell, args []string, _ syntax.Node) int {
	status := 0
	if len(args) > 0 {
		status, _ = strconv.Atoi(args[0])
	}
	s.flow = returning
	return status & 255
}

func loopControl(how flow) builtin {
	return func(s *shell, args []string, _ syntax.Node) int {
		if s.loops == 0 {
			return 0
		}
		s.levels = 1
		if len(args) > 0 {
			s.levels, _ = strconv.Atoi(args[0])
		}
		s.flow = how
		return 0
	}
}

func evaluate(s *shell, args []string, _ syntax.Node) int {
	text := strings.Join(args, " ")
	if !Known(text) || len(text) > MaxScriptBytes || TooDeep([]byte(text)) {
		s.run.note("%s, line %d: what eval runs cannot be known here", s.path, s.line())
		return 0
	}
	file, err := syntax.NewParser(syntax.Variant(s.language)).Parse(strings.NewReader(text), "")
	if err != nil {
		return 1
	}
	was := s.quoted
	s.quoted = true
	s.nested(file.Stmts)
	s.quoted = was
	return s.status
}

// nested interprets statements of another text at the same depth of calls.
func (s *shell) nested(list []*syntax.Stmt) {
	at := s.at
	s.nesting++
	if s.nesting > maxNesting {
		s.stop("calls itself too deeply to be followed")
	}
	s.status = 0
	s.statements(list)
	s.nesting--
	s.at = at
}

func command(s *shell, args []string, at syntax.Node) int {
	if len(args) > 0 && (args[0] == "-v" || args[0] == "-V") {
		return lookUp(s, args[1:], at)
	}
	for len(args) > 0 && (args[0] == "-p" || args[0] == "--") {
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	if b, ok := builtins[args[0]]; ok {
		return b(s, args[1:], at)
	}
	s.external(args, at, false)
	return s.status
}

// lookUp says where a command is: command -v, type and which.
func lookUp(s *shell, args []string, at syntax.Node) int {
	for _, name := range args {
		if strings.HasPrefix(name, "-") {
			continue
		}
		if _, ok := s.functions[name]; ok {
			s.print(name + "\n")
			continue
		}
		if _, ok := builtins[name]; ok {
			s.print(name + "\n")
			continue
		}
		p, there := s.search(name)
		if s.judge(there, at) != 0 {
			return 1
		}
		s.print(p + "\n")
	}
	return 0
}

// search finds a program by name or path.
func (s *shell) search(name string) (p string, there Answer) {
	if strings.Contains(name, "/") {
		p = s.absolute(name)
		n, found := s.run.Tree.Get(p)
		if found == Yes && (n.Folder || !n.Executable) {
			return p, No
		}
		return p, found
	}
	for _, folder := range strings.Split(s.variables["PATH"].Str, ":") {
		if p := s.absolute(path.Join(folder, name)); s.run.Tree.Within(p) || s.run.Tree.made[p] != nil {
			if n, _ := s.run.Tree.Get(p); n != nil && !n.Folder && n.Executable {
				return p, Yes
			}
		}
	}
	return "/usr/bin/" + name, ProgramOf(s.run.Tree.image, name)
}

// missing records that a file of the submission is not there.
func (s *shell) missing(word, p string) {
	if s.tested > 0 {
		return
	}
	f := Finding{Check: "C20", Path: s.path, Line: s.line(), Problem: fmt.Sprintf("%s is not there", Shown(word)),
		Hint: "ship it, or name the file that is shipped"}
	if s.run.Tree.Within(p) {
		f.Problem = fmt.Sprintf("%s is not in the submission", Shown(s.run.Tree.Relative(p)))
	}
	s.run.find(f)
}

// IsShell reports whether a file's first line asks for a shell.
func IsShell(n *Node) bool {
	line := FirstLine(n.Head)
	return strings.HasPrefix(line, "#!") && (strings.HasSuffix(strings.TrimSpace(line), "sh") || strings.Contains(line, "sh "))
}
