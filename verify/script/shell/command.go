package shell

import (
	"strings"
)

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

// Known reports whether a word holds nothing that only a run can tell.
func Known(word string) bool { return !strings.Contains(word, Unknown) }

// Shown is a word as a report shows it.
func Shown(word string) string { return strings.ReplaceAll(word, Unknown, "?") }
