package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

func (s *shell) binary(c *syntax.BinaryCmd) {
	switch c.Op {
	case syntax.AndStmt, syntax.OrStmt:
		s.tested++
		s.statement(c.X)
		s.tested--
		if s.flow == onward && (s.status == 0) == (c.Op == syntax.AndStmt) {
			s.statement(c.Y)
		}
	default:
		s.pipeline(c)
	}
}

// brokenPipe is the status of a program that SIGPIPE ended.
const brokenPipe = 128 + 13

// pipeline runs its two sides one after the other. One that writes without end
// is ended by SIGPIPE once the other has read enough.
func (s *shell) pipeline(c *syntax.BinaryCmd) {
	var text strings.Builder
	left := s.sub()
	left.output, left.piped, left.errexit, left.pours = &text, true, false, false
	if !s.pipefail {
		left.tested = 0
	}
	left.statement(c.X)
	if left.pours {
		left.status = brokenPipe
	}
	right := s.sub()
	right.input, right.inputLine, right.hasInput, right.piped = clip(text.String()), 0, true, true
	right.endless, right.pours = left.pours, false
	right.statement(c.Y)
	s.status, s.pours = right.status, right.pours
	if s.pipefail && s.status == 0 {
		s.status = left.status
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

// wait returns the status of the last of some background commands. One that
// cannot be known was taken for success.
func wait(s *shell, args []string, _ syntax.Node) int {
	s.run.Waits = true
	status := 0
	for _, word := range args {
		status = s.run.jobs[word]
	}
	return status
}

// kill fails for certain where it names a job and none was started.
func kill(s *shell, args []string, at syntax.Node) int {
	if len(args) > 0 && strings.HasPrefix(args[len(args)-1], "%") && len(s.run.jobs) == 0 {
		return 1
	}
	return s.judge(perhapsYes, at)
}

func trap(s *shell, args []string, _ syntax.Node) int {
	if len(args) < 2 {
		return 0
	}
	for _, signal := range args[1:] {
		signal = strings.TrimPrefix(strings.ToUpper(signal), "SIG")
		if signal == "ERR" {
			s.onFailure, s.failureAt = strings.TrimPrefix(args[0], "-"), s.at
		}
		if !s.subshell {
			s.run.Ignored = slices.DeleteFunc(s.run.Ignored, func(i string) bool { return i == signal })
		}
		switch {
		case args[0] == "" && !s.subshell:
			s.run.Ignored = append(s.run.Ignored, signal)
		case args[0] != "-" && args[0] != "":
			s.run.Traps = append(s.run.Traps, signal)
		}
	}
	return 0
}
