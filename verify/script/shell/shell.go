// Package shell interprets a shell script and runs nothing: what it calls is
// simulated over a listing of files, or only written down. What cannot be known
// here is a decision, which the first run takes for success; Explore follows the
// others too. It says what would be started, written and found missing, and
// judges no more than that.
package shell

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// flow is why a shell does not go on with the next statement.
type flow int

const (
	onward flow = iota
	exiting
	returning
	breaking
	continuing
)

// function is a shell function and the file that it stands in.
type function struct {
	body *syntax.Stmt
	path string
}

// shell interprets statements, one after the other: pipelines and background
// commands too, so that two runs see the same.
type shell struct {
	run        *Run
	variables  map[string]expand.Variable
	given      map[string]expand.Variable // those of the grader
	functions  map[string]function
	parameters []string
	name       string // $0
	folder     string
	path       string // of the script, as findings name it
	language   syntax.LangVariant

	onFailure string     // what trap runs for ERR
	failureAt syntax.Pos // of that trap
	failing   bool       // it runs
	quoted    bool       // what runs stands in a word of the script: its own lines mean nothing

	errexit, errtrace, nounset, pipefail, noglob, allexport, nullglob bool

	status  int
	flow    flow
	levels  int // of loops to leave
	tested  int // above 0 where a failure is asked for
	nesting int
	loops   int
	calls   int
	locals  []map[string]expand.Variable // to restore at a function's end

	input      string
	inputLine  int // where it begins, of a here-document
	hasInput   bool
	endless    bool             // what it reads does not end
	pours      bool             // nor does what it writes, until nobody reads it
	output     *strings.Builder // nil: nobody reads it
	keep       bool             // redirections of exec stay
	background bool
	piped      bool
	subshell   bool
	replaced   bool   // its one command takes its place
	launch     launch // that of the program that is being started
	at         syntax.Pos
}

// firstProcess is the number of the first background command.
const firstProcess = 4242

// sub returns a subshell: what it changes does not come back.
func (s *shell) sub() *shell {
	c := *s
	c.variables, c.functions = maps.Clone(s.variables), maps.Clone(s.functions)
	c.subshell, c.flow, c.locals = true, onward, nil
	c.nesting++
	c.replaced = false
	if !s.errtrace {
		c.onFailure = ""
	}
	return &c
}

// step counts, and ends a run that does not end by itself.
func (s *shell) step(at syntax.Pos) bool {
	if at.IsValid() && !s.quoted {
		s.at = at
	}
	s.run.count++
	switch {
	case s.flow != onward:
		return false
	case s.run.count > maxSteps:
		s.stop("takes too many steps to be followed to its end")
	case s.nesting > maxNesting:
		s.stop("calls itself too deeply to be followed")
	default:
		return true
	}
	return false
}

func (s *shell) stop(why string) {
	if s.run.Stopped == "" {
		s.run.Stopped = fmt.Sprintf("%s, line %d: %s", s.path, s.line(), why)
	}
	s.flow, s.status = exiting, 1
}

func (s *shell) line() int { return int(s.at.Line()) }

func (s *shell) statements(list []*syntax.Stmt) {
	for _, st := range list {
		s.statement(st)
		if s.flow != onward {
			return
		}
	}
}

func (s *shell) statement(st *syntax.Stmt) {
	if !s.step(st.Pos()) {
		return
	}
	if st.Background || st.Coprocess || st.Disown {
		c := s.sub()
		c.background = true
		plain := *st
		plain.Background, plain.Coprocess, plain.Disown = false, false, false
		c.statement(&plain)
		process := strconv.Itoa(firstProcess + len(s.run.jobs))
		s.run.jobs[process] = c.status
		s.status = 0
		s.set("!", process)
		return
	}
	input, inputLine, hasInput, endless, output := s.input, s.inputLine, s.hasInput, s.endless, s.output
	ok := true
	for _, rd := range st.Redirs {
		ok = s.redirect(rd) && ok
	}
	s.status = 0
	if !ok {
		s.status = 1
	} else if st.Cmd != nil {
		if st.Negated {
			s.tested++
		}
		s.command(st.Cmd)
		if st.Negated {
			s.tested--
			s.status = oneIf(s.status == 0)
		}
	}
	if s.keep {
		s.keep = false
	} else {
		s.input, s.inputLine, s.hasInput, s.endless, s.output = input, inputLine, hasInput, endless, output
	}
	s.errorExit(st)
}

// errorExit ends the shell after a failure under set -e that nothing asks for.
func (s *shell) errorExit(st *syntax.Stmt) {
	if s.status == 0 || !s.errexit && s.onFailure == "" || s.tested > 0 || st.Negated || s.flow != onward {
		return
	}
	if b, ok := st.Cmd.(*syntax.BinaryCmd); ok && (b.Op == syntax.AndStmt || b.Op == syntax.OrStmt) {
		return
	}
	if text := s.onFailure; text != "" {
		status, at := s.status, s.at
		s.onFailure, s.at, s.failing = "", s.failureAt, true
		evaluate(s, []string{text}, nil)
		s.at, s.failing = at, false
		if s.flow != onward {
			return
		}
		s.status, s.onFailure = status, text
		if !s.errexit {
			return
		}
	}
	if s.quoted {
		s.end(s.line())
		return
	}
	s.end(int(st.Pos().Line()))
}

// end ends the shell at a line.
func (s *shell) end(line int) {
	s.flow = exiting
	if !s.subshell {
		s.run.Ended = line
	}
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *shell) command(c syntax.Command) {
	switch c := c.(type) {
	case *syntax.CallExpr:
		s.call(c)
	case *syntax.Block:
		s.statements(c.Stmts)
	case *syntax.Subshell:
		s.inSub(c.Stmts)
	case *syntax.BinaryCmd:
		s.binary(c)
	case *syntax.IfClause:
		s.ifClause(c)
	case *syntax.WhileClause:
		s.while(c)
	case *syntax.ForClause:
		s.forClause(c)
	case *syntax.CaseClause:
		s.caseClause(c)
	case *syntax.FuncDecl:
		if c.Name != nil {
			s.functions[c.Name.Value] = function{c.Body, s.path}
		}
	case *syntax.TestClause:
		s.status = s.judge(s.bashTest(c.X), c)
	case *syntax.ArithmCmd:
		s.status = oneIf(s.arithmetic(c.X) == 0)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			s.status = oneIf(s.arithmetic(x) == 0)
		}
	case *syntax.DeclClause:
		s.declare(c)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			s.statement(c.Stmt)
		}
	case *syntax.CoprocClause:
		c2 := s.sub()
		c2.background = true
		c2.statement(c.Stmt)
	}
}

func (s *shell) inSub(list []*syntax.Stmt) {
	c := s.sub()
	c.statements(list)
	s.status = c.status
}

// judge turns an answer into a status, asking for a decision where it is not
// known.
func (s *shell) judge(a Answer, node syntax.Node) int {
	if a.Certain() {
		return oneIf(a == No)
	}
	text := "unless " + source(node)
	if a == PerhapsNo {
		text = "when " + source(node)
	}
	choice := s.run.choose(decision{key: s.key(node.Pos()), choices: 1 + oneIf(s.tested > 0), text: text, path: s.path, line: s.line()})
	return oneIf((a == perhapsYes) == (choice == 1))
}

func (s *shell) key(at syntax.Pos) string {
	return fmt.Sprintf("%s:%d:%d", s.path, at.Line(), at.Col())
}

// source is a node as it is written, on one line.
func source(node syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, node); err != nil {
		return "?"
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	if len(text) > 120 {
		text = strings.ToValidUTF8(text[:120], "") + "..."
	}
	return text
}

// print writes to the standard output, where something reads it.
func (s *shell) print(text string) {
	if s.output != nil && s.output.Len() < maxTextBytes {
		s.output.WriteString(text)
	}
}
