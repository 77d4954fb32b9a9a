package shell

import (
	"fmt"
	"strings"
)

// Unknown stands in words for what only a run can tell: a private character,
// so that no script holds it.
const Unknown = "\uE000"

// Bounds of one run and of all of them. A script that needs more is not one
// that starts a server.
const (
	maxSteps      = 20_000
	maxLoop       = 200
	maxNesting    = 60
	maxTextBytes  = 64 << 10 // of one variable or output
	maxRuns       = 128
	maxConditions = 3 // failures at once
	maxAllSteps   = 60_000
	maxList       = 4_000   // elements of an array
	maxMade       = 100_000 // files that a run makes
)

// Run is one interpretation of serve.sh.
type Run struct {
	Tree    *Tree
	forced  map[string]int // how to take decisions that are not taken for success
	seen    map[string]int
	open    []decision // taken by default, in order
	Taken   []decision // forced ones, in order
	count   int        // of steps
	Stopped string     // why it was cut short

	Steps    []*Step
	Findings []Finding
	Writes   []Write
	Notes    []string
	Traps    []string // signals that the script handles
	Ignored  []string // signals that it ignores, and with it what it starts
	Waits    bool
	jobs     map[string]int // status of background commands by process
	Status   int            // of the whole script
	Ended    int            // the line at which it ended early; 0: it did not
}

// decision is a point at which the way on depends on what is not known here.
type decision struct {
	key     string
	choices int
	choice  int
	text    string // when it goes the other way: "when X fails"
	path    string
	line    int
	Asked   *Step // the command whose success is asked for, or nil
}

// Step is a program that a run started.
type Step struct {
	Command
	Folder     string
	TimeLimit  string // of timeout in front of it, as written
	Background bool
	Piped      bool
	Session    bool   // it is given a session of its own
	OnFailure  bool   // trap starts it for ERR
	Tested     bool   // its failure is provided for
	Fatal      bool   // its failure ends the shell that starts it
	Input      string // what it reads, where that is known
	InputLine  int    // of the script in which Input stands as it is; 0: nowhere
	subshell   bool
	Choice     int // how many decisions were forced before it
}

// Write is something that a run would write.
type Write struct {
	What    string // "mkdir"
	To      string // absolute
	Path    string
	Line    int
	Guarded bool
	Size    int64 // 0: not known
}

func newRun(t *Tree, forced map[string]int) *Run {
	return &Run{Tree: t.copied(), forced: forced, seen: map[string]int{}, jobs: map[string]int{}}
}

// choose takes a decision: the forced one, or the first, which is noted.
func (r *Run) choose(d decision) int {
	n := r.seen[d.key]
	r.seen[d.key] = n + 1
	if n > 3 {
		return 0 // a loop asks again: what it does then is known by now
	}
	d.key = fmt.Sprintf("%s#%d", d.key, n)
	if choice, ok := r.forced[d.key]; ok {
		d.choice = choice
		r.Taken = append(r.Taken, d)
		return choice
	}
	if d.choices > 1 {
		r.open = append(r.open, d)
	}
	return 0
}

// Condition says in words when the run departs from the main path.
func (r *Run) Condition() string {
	var parts []string
	for _, d := range r.Taken {
		parts = append(parts, d.text)
	}
	return strings.Join(parts, ", and ")
}

func (r *Run) find(f Finding) { r.Findings = append(r.Findings, f) }

func (r *Run) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}
