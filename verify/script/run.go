package script

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// unknown stands in words for what only a run can tell: a private character,
// so that no script holds it.
const unknown = "\uE000"

// Bounds of one run and of all of them. A script that needs more is not one
// that starts a server.
const (
	maxSteps      = 20_000
	maxLoop       = 200
	maxNesting    = 60
	maxTextBytes  = 64 << 10 // of one variable or output
	maxRuns       = 128
	maxConditions = 3 // failures at once
)

// run is one interpretation of serve.sh.
type run struct {
	options Options
	tree    *tree
	forced  map[string]int // how to take decisions that are not taken for success
	seen    map[string]int
	open    []decision // taken by default, in order
	taken   []decision // forced ones, in order
	count   int        // of steps
	stopped string     // why it was cut short

	steps    []*step
	findings []Finding
	writes   []write
	notes    []string
	traps    []string // signals that the script handles
	waits    bool
	status   int // of the whole script
	ended    int // the line at which it ended early; 0: it did not
}

// decision is a point at which the way on depends on what is not known here.
type decision struct {
	key     string
	choices int
	choice  int
	text    string // when it goes the other way: "when X fails"
	path    string
	line    int
	asked   *step // the command whose success is asked for, or nil
}

// step is a program that a run started.
type step struct {
	Command
	folder     string
	raw        []string // as called, with env, nohup and the like
	background bool
	piped      bool
	tested     bool // its failure is provided for
	subshell   bool
	choice     int // how many decisions were forced before it
}

// write is something that a run would write.
type write struct {
	what    string // "mkdir"
	to      string // absolute
	path    string
	line    int
	guarded bool
	size    int64 // 0: not known
}

func newRun(o Options, t *tree, forced map[string]int) *run {
	return &run{options: o, tree: t.copied(), forced: forced, seen: map[string]int{}}
}

// choose takes a decision: the forced one, or the first, which is noted.
func (r *run) choose(d decision) int {
	n := r.seen[d.key]
	r.seen[d.key] = n + 1
	if n > 3 {
		return 0 // a loop asks again: what it does then is known by now
	}
	d.key = fmt.Sprintf("%s#%d", d.key, n)
	if choice, ok := r.forced[d.key]; ok {
		d.choice = choice
		r.taken = append(r.taken, d)
		return choice
	}
	if d.choices > 1 {
		r.open = append(r.open, d)
	}
	return 0
}

// condition says in words when the run departs from the main path.
func (r *run) condition() string {
	var parts []string
	for _, d := range r.taken {
		parts = append(parts, d.text)
	}
	return strings.Join(parts, ", and ")
}

func (r *run) find(f Finding) { r.findings = append(r.findings, f) }

func (r *run) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// parse reads a script. A fault is a finding, and the file is then nil where it
// is none of the shell at all.
func (a *analysis) parse(p string, data []byte) *syntax.File {
	file, problem, line := parseScript(p, data)
	if problem != "" {
		a.add(Finding{Check: "C18", Path: p, Line: line, Problem: problem, Hint: "check the script with bash -n"})
	}
	return file
}

// language is what a script's first line asks for.
func language(data []byte) syntax.LangVariant {
	line := strings.TrimRight(firstLine(data), "\r")
	if strings.HasPrefix(line, "#!") {
		words := strings.Fields(strings.TrimPrefix(line, "#!"))
		if len(words) > 1 && path.Base(words[0]) == "env" {
			words = words[1:]
		}
		if len(words) > 0 && slices.Contains([]string{"sh", "dash", "ash"}, path.Base(words[0])) {
			return syntax.LangPOSIX
		}
	}
	return syntax.LangBash
}

// parseScript parses in the language of the first line. What only bash
// understands under a plain sh is a problem, and parsed all the same.
func parseScript(p string, data []byte) (file *syntax.File, problem string, line int) {
	if tooDeep(data) {
		return nil, "nests its brackets too deeply to be read", 0
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	file, err := syntax.NewParser(syntax.Variant(language(data))).Parse(bytes.NewReader(data), p)
	if err == nil {
		return file, "", 0
	}
	if language(data) == syntax.LangPOSIX {
		if bash, bashErr := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(data), p); bashErr == nil {
			text, at := parseProblem(err)
			return bash, "is bash under a first line that asks for sh: " + text, at
		}
	}
	text, at := parseProblem(err)
	return nil, "is no valid shell script: " + text, at
}

func parseProblem(err error) (text string, line int) {
	var parse syntax.ParseError
	var lang syntax.LangError
	switch {
	case errors.As(err, &parse):
		return parse.Text, int(parse.Pos.Line())
	case errors.As(err, &lang):
		return lang.Feature + " is not part of it", int(lang.Pos.Line())
	}
	return err.Error(), 0
}

// tooDeep bounds what the recursive parser is given.
func tooDeep(data []byte) bool {
	depth := 0
	for _, b := range data {
		switch b {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth = max(0, depth-1)
		}
		if depth > 300 {
			return true
		}
	}
	return false
}

// explore interprets the script as if everything succeeded, then once more for
// each failure that it provides for.
func (a *analysis) explore(file *syntax.File) {
	a.main = a.interpret(file, nil, a.tree.root)
	var plans []map[string]int
	schedule := func(r *run, forced map[string]int) {
		if len(forced) >= maxConditions {
			return
		}
		for _, d := range r.open {
			if _, done := forced[d.key]; done {
				continue
			}
			for choice := 1; choice < d.choices; choice++ {
				next := maps.Clone(forced)
				if next == nil {
					next = map[string]int{}
				}
				next[d.key] = choice
				plans = append(plans, next)
			}
		}
	}
	schedule(a.main, nil)
	planned := map[string]bool{}
	for i := 0; i < len(plans) && len(a.branches) < maxRuns; i++ {
		key := fmt.Sprint(plans[i])
		if planned[key] {
			continue
		}
		planned[key] = true
		r := a.interpret(file, plans[i], a.tree.root)
		if len(r.taken) < len(plans[i]) {
			continue // one of the points is not reached this way
		}
		a.branches = append(a.branches, r)
		schedule(newOnly(a.main, r), plans[i])
	}
	if len(plans) > 0 && len(a.branches) >= maxRuns {
		a.result.Undecided = fmt.Sprintf("serve.sh has more than %d branches: the others were not followed", maxRuns)
	}
}

// newOnly leaves the decisions that the main path does not have: those of both
// are planned from there.
func newOnly(main, r *run) *run {
	only := &run{}
	for _, d := range r.open {
		if !slices.ContainsFunc(main.open, func(m decision) bool { return m.key == d.key }) {
			only.open = append(only.open, d)
		}
	}
	return only
}

// interpret runs the script once, from a folder.
func (a *analysis) interpret(file *syntax.File, forced map[string]int, folder string) *run {
	r := newRun(a.options, a.tree, forced)
	s := &shell{
		run: r, variables: map[string]expand.Variable{}, functions: map[string]function{},
		name: path.Join(r.tree.root, EntryPath), folder: folder, path: EntryPath,
		language: language(a.tree.submitted(EntryPath).data),
	}
	for name, value := range map[string]string{
		"SUBMISSION_DIR": r.tree.root, "HOME": r.tree.home(), "PWD": folder,
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	} {
		s.variables[name] = expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: value}
	}
	s.given = maps.Clone(s.variables)
	s.statements(file.Stmts)
	r.status = s.status
	return r
}
