// Package script reads a submission's serve.sh as the grader's shell would run
// it, and runs nothing: every program that the script calls is either simulated
// over the submission's own listing or only written down. From the command
// lines and variables that result it says what would end the start. What cannot
// be known here (whether a program of the grader's machine succeeds, what it
// prints) is never guessed at in silence: the main path takes success, and each
// failure that the script provides for is followed too, as a branch.
package script

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"slipway/verify/image"
)

// EntryPath is the script that a grader runs.
const EntryPath = "serve.sh"

// Submission is what the analysis may look at.
type Submission struct{ Files []File }

// File is one file of a submission. Data is nil where its bytes were not kept;
// Head holds its first bytes even then.
type File struct {
	Path       string
	Size       int64
	Executable bool
	Data       []byte
	Head       []byte
}

// Options are what is known of the grader.
type Options struct {
	Image        *image.Image // nil: nothing is known of the machine
	Port         int          // where the grader looks for the server; 0: unknown
	StartSeconds float64      // limit of the start; 0: none
}

// Finding is one fault. Line is 0 where it concerns a whole file.
type Finding struct {
	Check   string // as "C19"
	Warning bool   // deserves a look, and does not fail the gate
	Path    string
	Line    int
	Problem string
	Want    string
	Got     string
	Hint    string
}

// Command is a program that the script starts. Variables are those that the
// script itself exports or assigns in front of the command. A word that cannot
// be known here is "?", alone or within a longer word.
type Command struct {
	Argv      []string
	Variables map[string]string
	Path      string // the script that starts it
	Line      int
	Exec      bool   // it takes the place of the shell that the grader started
	Branch    string // the condition under which it runs; "" on the main path
}

// Analysis is the outcome.
type Analysis struct {
	Commands  []Command
	Main      int // index in Commands of what serves; -1: none was found
	Findings  []Finding
	Notes     []string
	Undecided string // why nothing was decided, or ""
}

// maxScriptBytes bounds the scripts that are interpreted: parsing is recursive.
const maxScriptBytes = 64 << 10

// Analyse interprets a submission's serve.sh and checks what it would do. It
// never fails: what it cannot do it says in Undecided.
func Analyse(s Submission, o Options) Analysis {
	a := &analysis{options: o, tree: newTree(s, o.Image)}
	a.result.Main = -1
	entry := a.tree.submitted(EntryPath)
	switch {
	case entry == nil:
		a.add(Finding{Check: "C18", Path: EntryPath, Problem: "is missing", Hint: "write the script that starts the server"})
		return a.finish()
	case entry.data == nil && entry.size > 0:
		a.result.Undecided = "the bytes of serve.sh were not kept: it is too large for a script, or could not be read"
		return a.finish()
	case len(entry.data) > maxScriptBytes || tooDeep(entry.data):
		a.result.Undecided = "serve.sh is too long, or nested too deeply, to interpret"
		return a.finish()
	}
	a.checkText(entry)
	file := a.parse(EntryPath, entry.data)
	if file == nil {
		return a.finish()
	}
	a.checkWords(EntryPath, file)
	a.explore(file)
	a.check()
	a.checkElsewhere(file)
	return a.finish()
}

// analysis is the state of Analyse.
type analysis struct {
	options  Options
	tree     *tree // as submitted; runs work on copies
	result   Analysis
	main     *run   // everything that can succeed does
	branches []*run // one failure, or a few, that the script provides for
	server   *step  // of the main path; nil where none was found
	modules  []module
	brought  map[string]bool // distributions of the submission, once asked for
}

func (a *analysis) add(f Finding) { a.result.Findings = append(a.result.Findings, f) }

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
	a.checkNetwork()
	a.checkBranches()
	a.checkCompilers()
	a.checkPackages()
	a.checkStart()
}

// finish removes what was found twice and orders the rest as people read.
func (a *analysis) finish() Analysis {
	slices.SortStableFunc(a.result.Findings, func(x, y Finding) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), cmp.Compare(x.Line, y.Line),
			strings.Compare(x.Check, y.Check), strings.Compare(x.Problem, y.Problem))
	})
	a.result.Findings = slices.Compact(a.result.Findings)
	return a.result
}

// known reports whether a word holds nothing that only a run can tell.
func known(word string) bool { return !strings.Contains(word, unknown) }

// shown is a word as a report shows it.
func shown(word string) string { return strings.ReplaceAll(word, unknown, "?") }

// firstLine returns the text up to the first newline.
func firstLine(data []byte) string {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return string(line)
}
