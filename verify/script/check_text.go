package script

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"slipway/verify/script/shell"
)

// checkText looks at serve.sh as bytes: what a grader's kernel and shell make of
// it before its first command.
func (a *analysis) checkText(entry *shell.Node) {
	add := func(line int, warning bool, problem, hint string) {
		a.add(shell.Finding{Check: "C18", Warning: warning, Path: EntryPath, Line: line, Problem: problem, Hint: hint})
	}
	if !entry.Executable {
		a.add(shell.Finding{Check: "C18", Path: EntryPath, Problem: "is not executable: a grader that runs it as a program cannot start it",
			Want: "mode 0755", Got: "mode 0644", Hint: "chmod +x serve.sh"})
	}
	if bytes.HasPrefix(entry.Data, []byte("\xef\xbb\xbf")) {
		add(1, false, "begins with a byte order mark, so that its first line is no #! line", "save it without a byte order mark")
	}
	if i := bytes.Index(entry.Data, []byte("\r\n")); i >= 0 {
		add(1+bytes.Count(entry.Data[:i], []byte("\n")), false, "has lines that end in CR LF: the CR becomes part of words and of the interpreter's name",
			"save it with LF line ends: sed -i 's/\\r$//' serve.sh")
	}
	a.checkFirstLines()
	first := strings.TrimPrefix(shell.FirstLine(entry.Data), "\xef\xbb\xbf")
	if !strings.HasPrefix(first, "#!") {
		add(1, false, "has no #! line: a grader that runs it as a program cannot start it", interpreterHint)
		return
	}
	a.checkInterpreter(strings.Fields(strings.TrimRight(first[2:], "\r")))
}

const interpreterHint = "begin it with #!/bin/sh or #!/bin/bash"

// checkInterpreter looks at the words of the first line.
func (a *analysis) checkInterpreter(words []string) {
	add := func(warning bool, problem, hint string) {
		a.add(shell.Finding{Check: "C18", Warning: warning, Path: EntryPath, Line: 1, Problem: problem, Hint: hint})
	}
	if len(words) == 0 {
		add(false, "its #! line names no interpreter", interpreterHint)
		return
	}
	if _, there := a.tree.Get(words[0]); !path.IsAbs(words[0]) || there == shell.No {
		add(false, fmt.Sprintf("its interpreter %s is not on the grader's machine", words[0]), interpreterHint)
		return
	} else if there != shell.Yes {
		add(true, fmt.Sprintf("its interpreter %s may not be on the grader's machine", words[0]), interpreterHint)
	}
	// Linux hands all that follows the interpreter to it as one word.
	if rest := strings.Join(words[1:], " "); path.Base(words[0]) == "env" && len(words) > 2 && !strings.HasPrefix(rest, "-") {
		add(false, fmt.Sprintf("its #! line makes env look for a program that is called %q", rest), "name the program alone, and say set in the next line; or write env -S")
		return
	}
	program, options := shell.Interpreter(a.tree.Submitted(EntryPath).Data)
	if path.Base(words[0]) == "env" && program != "" && shell.ProgramOf(a.options.Image, program) == shell.No {
		add(false, fmt.Sprintf("its interpreter %s is not on the grader's machine", program), interpreterHint)
	}
	if isShellName(program) && len(options) > 0 {
		add(true, fmt.Sprintf("a grader that starts it with bash does not see the %s of its #! line", strings.Join(options, " ")), "say it in the next line: set -e, and so on")
	}
}

// isShellName reports whether a program is a shell whose scripts are followed.
func isShellName(program string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "zsh"}, path.Base(program))
}

// checkFirstLines looks for CR at the end of other files' #! lines: the kernel
// then looks for an interpreter of that name.
func (a *analysis) checkFirstLines() {
	for _, at := range a.tree.Below(a.tree.Root) {
		n := a.tree.Base[at]
		line := shell.FirstLine(n.Head)
		if n.Source == EntryPath || !strings.HasPrefix(line, "#!") || !strings.HasSuffix(line, "\r") {
			continue
		}
		a.add(shell.Finding{Check: "C18", Warning: !n.Executable, Path: n.Source, Line: 1, Problem: "its #! line ends in CR LF: no interpreter has that name",
			Hint: "save it with LF line ends"})
	}
}

// checkStarted looks at the first lines of the submitted programs that are
// started: a virtual environment's name the interpreter of the machine on which
// it was made.
func (a *analysis) checkStarted() {
	a.allSteps(func(r *shell.Run, st *shell.Step, main bool) {
		n, _ := r.Tree.Get(absoluteIn(st.Folder, st.Argv[0]))
		if !strings.Contains(st.Argv[0], "/") || n == nil || n.Source == "" {
			return
		}
		words := strings.Fields(strings.TrimPrefix(shell.FirstLine(n.Head), "#!"))
		if !strings.HasPrefix(shell.FirstLine(n.Head), "#!") || len(words) == 0 || !path.IsAbs(words[0]) {
			return
		}
		if _, there := r.Tree.Get(words[0]); there == shell.No {
			a.add(shell.Finding{Check: "C18", Warning: !main, Path: n.Source, Line: 1, Problem: fmt.Sprintf("its interpreter %s is not on the grader's machine", words[0]),
				Got: fmt.Sprintf("started by %s, line %d", st.Path, st.Line), Hint: "start its module with python3 -m, or begin it with #!/usr/bin/env python3"})
		}
	})
}

// checkWords looks for words that the shell takes for something else.
func (a *analysis) checkWords(p string, file *syntax.File) {
	data := a.tree.Submitted(p).Data
	emptied := bytes.Contains(data, []byte("nullglob")) || bytes.Contains(data, []byte("failglob"))
	syntax.Walk(file, func(node syntax.Node) bool {
		st, ok := node.(*syntax.Stmt)
		if !ok {
			return true
		}
		call, ok := st.Cmd.(*syntax.CallExpr)
		if ok {
			a.checkJoined(p, call, data)
		}
		if !ok || !isInstaller(call) {
			return true
		}
		for _, w := range call.Args {
			if word := w.Lit(); emptied && requirementName(word) != "" && strings.HasSuffix(word, "]") && strings.Contains(word, "[") {
				a.add(shell.Finding{Check: "C18", Path: p, Line: int(w.Pos().Line()), Problem: fmt.Sprintf("the shell takes %s for a pattern, and no file matches it: under nullglob it is left out, under failglob the command is", word),
					Hint: "quote the requirement: '" + word + "'"})
			}
		}
		for _, rd := range st.Redirs {
			word := rd.Word.Lit()
			if (rd.Op == syntax.RdrOut || rd.Op == syntax.RdrIn) && (strings.HasPrefix(word, "=") || word != "" && strings.Trim(word, "0123456789.") == "") && rd.N == nil {
				a.redirected = append(a.redirected, int(rd.OpPos.Line()))
				a.add(shell.Finding{Check: "C18", Path: p, Line: int(rd.OpPos.Line()),
					Problem: fmt.Sprintf("the shell reads %s%s as a redirection to a file, not as a version", rd.Op, word),
					Hint:    "quote the requirement: 'name" + rd.Op.String() + word + "'"})
			}
		}
		return true
	})
}

// checkJoined looks for a backslash that was to join the next line and, for a
// space after it, does not: that line is then a command of its own.
func (a *analysis) checkJoined(p string, call *syntax.CallExpr, data []byte) {
	if len(call.Args) == 0 {
		return
	}
	last := call.Args[len(call.Args)-1]
	word, end := last.Lit(), int(last.End().Offset())
	if len(word) > 1 && strings.Trim(word[1:], " \t") == "" && word[0] == '\\' && end <= len(data) && len(bytes.TrimLeft(data[end:], " \t")) > 0 && bytes.TrimLeft(data[end:], " \t")[0] == '\n' {
		a.add(shell.Finding{Check: "C18", Path: p, Line: int(last.Pos().Line()), Problem: "the backslash at the line's end has a space after it and does not join the next line", Hint: "remove the space"})
	}
}

func isInstaller(call *syntax.CallExpr) bool {
	pip, installs := false, false
	for _, w := range call.Args {
		switch word := path.Base(w.Lit()); {
		case word == "pip" || word == "pip3" || word == "uv":
			pip = true
		case word == "install":
			installs = pip
		}
	}
	return installs
}

// checkEnd says why the script ends before it starts a server.
func (a *analysis) checkEnd() {
	if a.server != nil {
		return
	}
	r := a.main
	switch {
	case r.Stopped != "":
		a.result.Undecided = "what serve.sh does could not be followed: " + r.Stopped
	case len(r.Findings) > 0 || slices.Contains(a.redirected, r.Ended): // they say why
	case r.Ended > 0:
		a.add(shell.Finding{Check: "C18", Path: EntryPath, Line: r.Ended, Problem: fmt.Sprintf("ends with status %d before it starts a server", r.Status),
			Hint: "run it with sh -x and look at the last command"})
	case len(r.Steps) == 0 || !a.mayServe():
		a.add(shell.Finding{Check: "C18", Path: EntryPath, Problem: "starts no server", Hint: "end it with exec and the server's command line"})
	default:
		a.result.Undecided = "no command of serve.sh is known to be a server"
	}
}

// mayServe reports whether a program whose nature is unknown was started.
func (a *analysis) mayServe() bool {
	for _, st := range a.main.Steps {
		if _, installs := shell.InstallOf(st.Argv); !installs && networkOf(st.Argv) == "" {
			return true
		}
	}
	return false
}

// checkServer looks at how the server is started: signals must reach it.
func (a *analysis) checkServer() {
	st := a.server
	if st == nil {
		return
	}
	if limit := st.TimeLimit; shell.Known(limit) && strings.Trim(limit, "0smhd.") != "" && limit != "infinity" {
		a.add(shell.Finding{Check: "C18", Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("timeout ends it after %s, and a grader asks for longer", limit), Got: shell.Shown(strings.Join(st.Argv, " ")),
			Hint: "start the server without timeout: a grader ends it"})
	}
	if slices.ContainsFunc(a.main.Ignored, func(signal string) bool { return signal == "TERM" || signal == "15" }) {
		a.add(shell.Finding{Check: "C18", Warning: true, Path: st.Path, Line: st.Line, Problem: "the script ignores SIGTERM, and with it the server that it starts, unless that sets a handler of its own", Got: shell.Shown(strings.Join(st.Argv, " ")),
			Hint: "say trap - TERM before the server's command"})
	}
	if st.OnFailure && !st.Tested {
		a.add(shell.Finding{Check: "C18", Warning: true, Path: st.Path, Line: st.Line, Problem: "the server is what trap starts for ERR: it runs only because a command before it failed", Got: shell.Shown(strings.Join(st.Argv, " ")),
			Hint: "start the server last, with exec, and let the script fail where a command does"})
	}
	if st.Exec && st.Session && !st.Background {
		a.add(shell.Finding{Check: "C18", Warning: true, Path: st.Path, Line: st.Line, Problem: "setsid starts the server in a session of its own: where the script leads its process group, setsid leaves it in the background and ends, and signals to that group do not reach it", Got: shell.Shown(strings.Join(st.Argv, " ")),
			Hint: "leave setsid out"})
	}
	if st.Exec {
		return
	}
	// Where a failure of the server is provided for, exec cannot stand: what is
	// then done is the graver fault.
	f := shell.Finding{Check: "C18", Warning: st.Tested, Path: st.Path, Line: st.Line, Got: shell.Shown(strings.Join(st.Argv, " "))}
	handled := false
	for _, signal := range a.main.Traps {
		handled = handled || signal == "TERM" || signal == "15" || signal == "EXIT"
	}
	switch {
	case st.Background && !a.main.Waits:
		f.Warning = true // where a grader ends it by its process group, nothing is lost
		f.Problem, f.Hint = "leaves the server in the background and ends: a grader may take that for the server's end", "start it last, with exec"
	case handled:
		return
	case st.Background:
		f.Problem, f.Hint = "waits for a server in the background: SIGTERM ends the shell and not the server", "start it last, with exec"
	case st.Piped:
		f.Problem, f.Hint = "pipes the server's output: SIGTERM ends the shell and not the server", "start it last, with exec, and leave its output alone"
	default:
		f.Problem, f.Hint = "starts the server without exec: SIGTERM ends the shell and not the server", "write exec in front of the server's command"
	}
	a.add(f)
}
