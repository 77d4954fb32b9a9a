package shell

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// external handles a program that is no part of the shell.
func (s *shell) external(args []string, at syntax.Node, replaces bool) {
	l := unwrap(args)
	args, given := l.args, l.given
	if len(args) == 0 { // env alone
		s.print(Unknown)
		return
	}
	if s.lacksWrapper(l, replaces) {
		return
	}
	variables, folder := s.variables, s.folder
	s.variables, s.folder, s.launch = l.environment(s.variables), s.absolute(l.folder), l
	s.start(args, given, at, replaces)
	s.variables, s.folder, s.launch = variables, folder, launch{}
}

// start starts a program: simulated, interpreted as another shell's script, or
// only written down.
func (s *shell) start(args []string, given map[string]string, at syntax.Node, replaces bool) {
	if program, ok := programs[path.Base(args[0])]; ok && !(path.Base(args[0]) == "rsync" && CopiesFromHost(args)) && (!strings.Contains(args[0], "/") || !s.run.Tree.Within(s.absolute(args[0]))) {
		s.status = s.judge(program(s, args), at)
		return
	}
	base := path.Base(args[0])
	if base == "xargs" {
		s.xargs(args, given, at)
		return
	}
	if asks(args) {
		s.interactive(strings.Join(args[:min(2, len(args))], " "))
		return
	}
	if slices.Contains([]string{"bash", "sh", "dash"}, base) && len(args) > 1 {
		if done := s.shellProgram(args, given, replaces); done {
			return
		}
	}
	p, there := s.search(args[0])
	if !Known(args[0]) {
		p, there = args[0], perhapsYes
	}
	n, found := s.run.Tree.Get(p)
	if there == No && strings.Contains(args[0], "/") {
		s.cannotStart(args[0], p, n, found)
		return
	}
	if there != No && strings.Contains(args[0], "/") && found == Yes {
		if s.onNoExec(p) && !s.run.Tree.Within(p) {
			s.status = 126
			if s.tested == 0 {
				s.run.find(Finding{Check: "C20", Path: s.path, Line: s.line(), Problem: Shown(p) + " lies on a mount where nothing can be executed",
					Hint: "copy it to a folder that allows it"})
			}
			s.record(args, given, replaces)
			return
		}
		if n.Source != "" && IsShell(n) && n.Data != nil {
			s.record(args, given, false)
			s.script(n, args, given, replaces)
			return
		}
	}
	st := s.record(args, given, replaces)
	s.print(Unknown + "\n")
	if there == No {
		s.status = 127
		if s.tested == 0 {
			s.run.find(Finding{Check: "C20", Path: s.path, Line: s.line(), Problem: fmt.Sprintf("calls %s, which the grader's image does not have", Shown(args[0])),
				Hint: "do without it, or ship it"})
		}
		return
	}
	s.effects(args)
	d := decision{key: s.key(at.Pos()), choices: 1, text: "when " + clipped(Shown(strings.Join(args, " "))) + " fails", path: s.path, line: s.line(), Asked: st}
	if s.tested > 0 || s.onFailure != "" && !replaces && !s.subshell {
		d.choices = 2
	}
	s.status = s.run.choose(d)
}

// asks reports whether a program asks somebody at a terminal.
func asks(args []string) bool {
	switch path.Base(args[0]) {
	case "vi", "vim", "nano", "emacs", "passwd", "dialog", "whiptail":
		return true
	case "pip", "pip3":
		return len(args) > 1 && args[1] == "uninstall" && !has(args, "--yes", 'y')
	}
	return false
}

// clipped bounds a command line that is quoted in a sentence.
func clipped(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "..."
	}
	return text
}

// cannotStart is a program of the submission that is absent or not executable.
func (s *shell) cannotStart(word, p string, n *Node, found Answer) {
	s.status = 127
	switch {
	case s.tested > 0:
	case found == No:
		s.missing(word, p)
	case n.Folder:
		s.run.find(Finding{Check: "C18", Path: s.path, Line: s.line(), Problem: Shown(word) + " is a folder"})
	default:
		s.status = 126
		s.run.find(Finding{Check: "C18", Path: s.path, Line: s.line(), Problem: s.run.Tree.Relative(p) + " is started and is not executable",
			Want: "mode 0755", Got: "mode 0644", Hint: "chmod +x " + s.run.Tree.Relative(p) + ", or start it through its interpreter"})
	}
}

// onNoExec reports whether the image says that nothing can be executed at p.
func (s *shell) onNoExec(p string) bool {
	m, ok := s.run.Tree.image.MountOf(p)
	return ok && m.NoExec != nil && *m.NoExec
}

// shellProgram interprets bash -c TEXT and bash FILE; false where it is neither.
func (s *shell) shellProgram(args []string, given map[string]string, replaces bool) (done bool) {
	i := 1
	for ; i < len(args) && strings.HasPrefix(args[i], "-"); i++ {
		if strings.Contains(args[i], "c") && !strings.HasPrefix(args[i], "--") {
			if i+1 >= len(args) {
				return false
			}
			text := args[i+1]
			if !Known(text) || len(text) > MaxScriptBytes || TooDeep([]byte(text)) {
				return false
			}
			file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
			if err != nil {
				return false
			}
			c := s.child(given, replaces)
			c.name = "bash"
			if rest := args[i+2:]; len(rest) > 0 {
				c.name, c.parameters = rest[0], rest[1:]
			}
			c.quoted, c.replaced = true, replaces && isOneCommand(file)
			c.statements(file.Stmts)
			s.status = c.status
			return true
		}
	}
	if i >= len(args) || !Known(args[i]) {
		return false
	}
	n, there := s.run.Tree.Get(s.absolute(args[i]))
	if there == No {
		s.status = 127
		s.missing(args[i], s.absolute(args[i]))
		return true
	}
	if n.Data == nil || n.Source == "" {
		return false
	}
	s.script(n, args[i:], given, replaces)
	return true
}

// isOneCommand reports whether a text is one plain command, which takes the place
// of the shell that was started for it: bash and dash both do that for -c.
func isOneCommand(file *syntax.File) bool {
	if len(file.Stmts) != 1 || file.Stmts[0].Background || file.Stmts[0].Negated {
		return false
	}
	_, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	return ok
}

// child is the shell of another script: variables that are exported, and no
// functions.
func (s *shell) child(given map[string]string, replaces bool) *shell {
	c := s.sub()
	c.functions, c.parameters = map[string]function{}, nil
	c.variables = map[string]expand.Variable{}
	for name, v := range s.variables {
		if v.Exported && v.Kind == expand.String {
			c.variables[name] = v
		}
	}
	for name, value := range given {
		c.variables[name] = expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: value}
	}
	c.errexit, c.nounset, c.pipefail, c.noglob, c.allexport, c.loops, c.calls = false, false, false, false, false, 0, 0
	c.tested, c.onFailure, c.replaced, c.launch = 0, "", false, launch{}
	c.subshell = s.subshell || !replaces
	return c
}

// script interprets another shell script of the submission.
func (s *shell) script(n *Node, args []string, given map[string]string, replaces bool) {
	file, problem, line := ParseScript(n.Source, n.Data[:min(len(n.Data), MaxScriptBytes)])
	if problem != "" {
		s.run.find(Finding{Check: "C18", Path: n.Source, Line: line, Problem: problem})
	}
	s.carriageReturns(n)
	c := s.child(given, replaces)
	if file == nil || c.nesting > maxNesting {
		s.status = 2
		return
	}
	c.name, c.parameters, c.path, c.language = args[0], args[1:], n.Source, language(n.Data)
	c.name, c.quoted = s.absolute(args[0]), false
	c.statements(file.Stmts)
	s.status = c.status
}

// record writes a command down.
func (s *shell) record(args []string, given map[string]string, replaces bool) *Step {
	variables := s.exported()
	maps.Copy(variables, given)
	st := &Step{
		Command: Command{Argv: slices.Clone(args), Variables: variables, Path: s.path, Line: s.line(), Exec: replaces && !s.subshell},
		Folder:  s.folder, TimeLimit: s.launch.limit, Background: s.background || s.launch.forks, Piped: s.piped,
		Session: s.launch.session, OnFailure: s.failing,
		Tested: s.tested > 0, Fatal: s.errexit && s.tested == 0, subshell: s.subshell, Choice: len(s.run.Taken),
	}
	if s.hasInput {
		st.Input, st.InputLine = s.input, s.inputLine
	}
	s.run.Steps = append(s.run.Steps, st)
	return st
}

// wrote records a change of the file system.
func (s *shell) wrote(what, to string) {
	if !Known(to) || strings.HasPrefix(to, "/dev/") && !strings.HasPrefix(to, "/dev/shm/") || strings.HasPrefix(to, "/proc/") {
		return
	}
	if strings.HasPrefix(path.Base(to), "=") {
		return // a version that the shell reads as a file's name: checkWords says so
	}
	s.run.Writes = append(s.run.Writes, Write{What: what, To: to, Path: s.path, Line: s.line(), Guarded: s.tested > 0})
	if n, there := s.run.Tree.Get(to); there == No || n == nil {
		s.run.Tree.made[to] = &Node{}
	}
}

// effects are what installers leave behind.
func (s *shell) effects(args []string) {
	s.changes(args)
	if in, ok := InstallOf(args); ok {
		for _, to := range in.Targets {
			s.wrote(strings.Join(in.Name, " "), s.absolute(to))
			s.run.Tree.made[s.absolute(to)] = &Node{Folder: true}
			s.run.Tree.unpacked[s.absolute(to)] = true // programs too: pip puts them into bin
		}
		return
	}
	if i := slices.Index(args, "venv"); i > 0 && args[i-1] == "-m" || len(args) > 0 && path.Base(args[0]) == "virtualenv" {
		folder := args[len(args)-1]
		if !strings.HasPrefix(folder, "-") {
			p := s.absolute(folder)
			s.wrote("venv", p)
			s.run.Tree.made[p] = &Node{Folder: true}
			s.run.Tree.made[p+"/bin"] = &Node{Folder: true}
			for _, name := range []string{"python", "python3", "pip", "activate"} {
				s.run.Tree.made[p+"/bin/"+name] = &Node{Executable: true}
			}
		}
	}
}
