// Package script reads a submission's serve.sh as the grader's shell would run
// it, and runs nothing: every program that the script calls is either simulated
// over the submission's own listing or only written down. From the command
// lines and variables that result it says what would end the start. What cannot
// be known here (whether a program of the grader's machine succeeds, what it
// prints) is never guessed at in silence: the main path takes success, and each
// failure that the script provides for is followed too, as a branch.
package script

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"slipway/verify/image"
	"slipway/verify/script/shell"
)

// EntryPath is the script that a grader runs.
const EntryPath = "serve.sh"

// Submission is what the analysis may look at.
type Submission struct {
	Files  []shell.File
	Wheels []Wheel // what was read of those among Files
}

// Options are what is known of the grader.
type Options struct {
	Image        *image.Image // nil: nothing is known of the machine
	Port         int          // where the grader looks for the server; 0: unknown
	StartSeconds float64      // limit of the start; 0: none
	BodyBytes    int          // of the largest requests; 0: small ones alone
}

// Analysis is the outcome.
type Analysis struct {
	Commands  []shell.Command
	Main      int // index in Commands of what serves; -1: none was found
	Findings  []shell.Finding
	Notes     []string
	Undecided string // why nothing was decided, or ""
}

// Analyse interprets a submission's serve.sh and checks what it would do. It
// never fails: what it cannot do it says in Undecided.
func Analyse(s Submission, o Options) Analysis {
	a := &analysis{options: o, tree: shell.NewTree(s.Files, o.Image), shippedWheels: normalWheels(s.Wheels)}
	a.result.Main = -1
	entry := a.tree.Submitted(EntryPath)
	switch {
	case entry == nil:
		a.add(shell.Finding{Check: "C18", Path: EntryPath, Problem: "is missing", Hint: "write the script that starts the server"})
		return a.finish()
	case entry.Data == nil && entry.Size > 0:
		a.result.Undecided = "the bytes of serve.sh were not kept: it is too large for a script, or could not be read"
		return a.finish()
	case len(entry.Data) > shell.MaxScriptBytes || shell.TooDeep(entry.Data):
		a.result.Undecided = "serve.sh is too long, or nested too deeply, to interpret"
		return a.finish()
	}
	a.checkText(entry)
	if program, _ := shell.Interpreter(entry.Data); program != "" && !isShellName(program) {
		a.add(shell.Finding{Check: "C18", Warning: true, Path: EntryPath, Line: 1, Problem: fmt.Sprintf("asks for %s: a grader that starts it with bash cannot", program),
			Hint: "begin it with #!/bin/sh, and start the program from there"})
		a.result.Undecided = fmt.Sprintf("serve.sh is a program of %s and no shell script: what it does is not followed", path.Base(program))
		return a.finish()
	}
	file := a.parse(EntryPath, entry.Data)
	if file == nil {
		return a.finish()
	}
	a.checkWords(EntryPath, file)
	a.main, a.branches, a.result.Undecided = shell.Explore(file, a.tree)
	a.check()
	a.checkElsewhere(file)
	return a.finish()
}

// analysis is the state of Analyse.
type analysis struct {
	options  Options
	tree     *shell.Tree // as submitted; runs work on copies
	result   Analysis
	main     *shell.Run   // everything that can succeed does
	branches []*shell.Run // one failure, or a few, that the script provides for
	server   *shell.Step  // of the main path; nil where none was found
	modules  []module
	inline   []module        // Python that stands in commands of the main path
	brought  map[string]bool // distributions of the submission, once asked for

	redirected []int // lines of serve.sh on which a version is taken for a redirection

	shippedWheels []Wheel // those of which something was read, by path
}

func (a *analysis) add(f shell.Finding) { a.result.Findings = append(a.result.Findings, f) }

func (a *analysis) note(text string) {
	if !slices.Contains(a.result.Notes, text) {
		a.result.Notes = append(a.result.Notes, text)
	}
}

// check runs the checks over what interpreting left.
func (a *analysis) check() {
	a.findServer()
	a.checkEnd()
	a.checkRuns()
	a.checkServer()
	a.readModules()
	a.checkStarted()
	a.checkAddress()
	a.checkArguments()
	a.checkPaths()
	a.checkEnvironment()
	a.checkVariables()
	a.checkQuestions()
	a.checkNetwork()
	a.checkBodies()
	a.checkBranches()
	a.checkCompilers()
	a.checkPackages()
	a.checkStart()
}

// finish removes what was found twice and orders the rest as people read.
func (a *analysis) finish() Analysis {
	slices.SortStableFunc(a.result.Findings, func(x, y shell.Finding) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), cmp.Compare(x.Line, y.Line),
			strings.Compare(x.Check, y.Check), strings.Compare(x.Problem, y.Problem))
	})
	a.result.Findings = slices.Compact(a.result.Findings)
	return a.result
}

// parse reads a script. A fault is a finding, and the file is then nil where it
// is none of the shell at all.
func (a *analysis) parse(p string, data []byte) *syntax.File {
	file, problem, line := shell.ParseScript(p, data)
	if problem != "" {
		a.add(shell.Finding{Check: "C18", Path: p, Line: line, Problem: problem, Hint: "check the script with bash -n"})
	}
	return file
}
