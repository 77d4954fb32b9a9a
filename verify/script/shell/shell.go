// Package shell interprets a shell script and runs nothing: what it calls is
// simulated over a listing of files, or only written down. What cannot be known
// here is a decision, which the first run takes for success; Explore follows the
// others too. It says what would be started, written and found missing, and
// judges no more than that.
package shell

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
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
	input, inputLine, hasInput, output := s.input, s.inputLine, s.hasInput, s.output
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
		s.input, s.inputLine, s.hasInput, s.output = input, inputLine, hasInput, output
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
		s.onFailure, s.at = "", s.failureAt
		evaluate(s, []string{text}, nil)
		s.at = at
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

func (s *shell) binary(c *syntax.BinaryCmd) {
	switch c.Op {
	case syntax.AndStmt, syntax.OrStmt:
		s.tested++
		s.statement(c.X)
		s.tested--
		if s.flow == onward && (s.status == 0) == (c.Op == syntax.AndStmt) {
			s.statement(c.Y)
		}
	default: // a pipeline
		var text strings.Builder
		left := s.sub()
		left.output, left.piped, left.errexit = &text, true, false
		if !s.pipefail {
			left.tested = 0
		}
		left.statement(c.X)
		right := s.sub()
		right.input, right.inputLine, right.hasInput, right.piped = clip(text.String()), 0, true, true
		right.statement(c.Y)
		s.status = right.status
		if s.pipefail && s.status == 0 {
			s.status = left.status
		}
	}
}

func (s *shell) ifClause(c *syntax.IfClause) {
	if len(c.Cond) == 0 { // else
		s.statements(c.Then)
		return
	}
	s.tested++
	s.statements(c.Cond)
	s.tested--
	switch {
	case s.flow != onward:
	case s.status == 0:
		s.statements(c.Then)
	default:
		s.status = 0
		if c.Else != nil {
			s.ifClause(c.Else)
		}
	}
}

func (s *shell) while(c *syntax.WhileClause) {
	for range maxLoop {
		if !s.step(c.Pos()) {
			return
		}
		s.tested++
		s.statements(c.Cond)
		s.tested--
		stop := (s.status == 0) == c.Until
		s.status = 0
		if s.flow != onward || stop || s.body(c.Do) {
			return
		}
	}
	s.run.note("%s, line %d: the loop does not end by what can be known here, and was taken to end", s.path, c.Pos().Line())
}

// body runs a loop's statements once and reports whether the loop is left.
func (s *shell) body(list []*syntax.Stmt) (leave bool) {
	s.loops++
	s.statements(list)
	s.loops--
	switch s.flow {
	case breaking, continuing:
		how := s.flow
		if s.levels--; s.levels > 0 && s.loops > 0 {
			return true
		}
		s.flow = onward
		return how == breaking
	}
	return s.flow != onward
}

func (s *shell) forClause(c *syntax.ForClause) {
	if c.Select {
		s.interactive("select")
		return
	}
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		items := s.parameters
		if loop.InPos.IsValid() {
			items = s.fields(loop.Items)
		}
		for _, item := range items[:min(len(items), maxLoop)] {
			if !s.step(c.Pos()) {
				return
			}
			s.set(loop.Name.Value, item)
			if s.body(c.Do) {
				return
			}
		}
	case *syntax.CStyleLoop:
		s.optional(loop.Init)
		for range maxLoop {
			if !s.step(c.Pos()) || loop.Cond != nil && s.arithmetic(loop.Cond) == 0 || s.body(c.Do) {
				return
			}
			s.optional(loop.Post)
		}
	}
}

func (s *shell) optional(x syntax.ArithmExpr) {
	if x != nil {
		s.arithmetic(x)
	}
}

func (s *shell) caseClause(c *syntax.CaseClause) {
	word := s.literal(c.Word)
	if !Known(word) && len(c.Items) > 0 {
		choice := s.run.choose(decision{key: s.key(c.Pos()), choices: len(c.Items), text: "in another branch of case " + source(c.Word), path: s.path, line: s.line()})
		s.statements(c.Items[choice%len(c.Items)].Stmts)
		return
	}
	through := false
	for _, item := range c.Items {
		if !through && !slices.ContainsFunc(item.Patterns, func(p *syntax.Word) bool { return matches(s.pattern(p), word) }) {
			continue
		}
		s.statements(item.Stmts)
		if item.Op != syntax.Fallthrough && item.Op != syntax.Resume {
			return
		}
		through = item.Op == syntax.Fallthrough
	}
}

// matches reports whether a word matches a shell pattern.
func matches(p, word string) bool {
	matcher, err := pattern.Regexp(p, pattern.EntireString|pattern.ExtendedOperators)
	if err != nil {
		return false
	}
	re, err := regexp.Compile(matcher)
	return err == nil && re.MatchString(word)
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

// connects reports a redirection by which bash connects to another machine.
func (s *shell) connects(rd *syntax.Redirect) {
	if rd.Word == nil || s.language == syntax.LangPOSIX || !strings.HasPrefix(source(rd.Word), "/dev/") {
		return
	}
	parts := strings.Split(s.literal(rd.Word), "/")
	if len(parts) != 5 || parts[2] != "tcp" && parts[2] != "udp" || slices.Contains([]string{"localhost", "127.0.0.1", "0.0.0.0", "::1"}, parts[3]) || !Known(parts[3]) {
		return
	}
	s.run.find(Finding{Check: "C22", Warning: s.tested > 0, Path: s.path, Line: s.line(),
		Problem: "connects to " + parts[3] + ", and a grader has no network", Hint: "ship what it fetches"})
}

// redirect applies one redirection; false where it fails for certain.
func (s *shell) redirect(rd *syntax.Redirect) bool {
	errors := rd.N != nil && rd.N.Value != "1"
	s.connects(rd)
	switch rd.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		text, err := "", error(nil)
		if rd.Hdoc != nil && s.allSet(rd.Hdoc) {
			text, err = expand.Document(s.config(), rd.Hdoc)
		}
		s.expanded(err)
		s.input, s.hasInput, s.inputLine = text, true, 0
		if rd.Hdoc != nil && !s.quoted {
			s.inputLine = int(rd.Hdoc.Pos().Line())
		}
	case syntax.WordHdoc:
		s.input, s.hasInput, s.inputLine = s.literal(rd.Word)+"\n", true, 0
	case syntax.DplOut, syntax.DplIn:
		if rd.Op == syntax.DplOut && !errors && s.literal(rd.Word) != "1" {
			s.output = nil
		}
	case syntax.RdrIn, syntax.RdrInOut:
		n, there := s.run.Tree.Get(s.absolute(s.literal(rd.Word)))
		if there == No {
			return false
		}
		s.input, s.hasInput, s.inputLine = Unknown, true, 0
		if s.absolute(s.literal(rd.Word)) == "/dev/null" {
			s.input = ""
		}
		if n.Data != nil {
			s.input = clip(string(n.Data))
		}
	default: // output to a file
		to := s.absolute(s.literal(rd.Word))
		if !errors || rd.Op == syntax.RdrAll || rd.Op == syntax.AppAll {
			s.output = nil
		}
		s.wrote(rd.Op.String(), to)
	}
	return true
}
