package shell

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

func (s *shell) config() *expand.Config {
	c := &expand.Config{Env: environment{s}, NullGlob: s.nullglob, ExtGlob: true}
	c.CmdSubst = func(w io.Writer, cs *syntax.CmdSubst) error {
		text, status := s.capture(cs)
		s.status = status
		_, err := io.WriteString(w, text)
		return err
	}
	c.ProcSubst = func(ps *syntax.ProcSubst) (string, error) {
		s.inSub(ps.Stmts)
		return "/dev/fd/63", nil
	}
	if !s.noglob {
		c.ReadDir2 = s.run.Tree.list
	}
	return c
}

// capture returns what a command substitution prints.
func (s *shell) capture(cs *syntax.CmdSubst) (text string, status int) {
	var b strings.Builder
	c := s.sub()
	c.output = &b
	c.piped = true
	if c.errexit && s.language == syntax.LangBash {
		c.errexit = false // bash leaves it behind in substitutions
	}
	if len(cs.Stmts) == 1 && cs.Stmts[0].Cmd == nil && len(cs.Stmts[0].Redirs) == 1 && cs.Stmts[0].Redirs[0].Op == syntax.RdrIn {
		if c.redirect(cs.Stmts[0].Redirs[0]) {
			return clip(c.input), 0
		}
		return "", 1
	}
	c.statements(cs.Stmts)
	return clip(b.String()), c.status
}

func clip(text string) string { return text[:min(len(text), maxTextBytes)] }

// unsetVariable is the variable that an expansion's error is about.
func unsetVariable(err error) (name, message string, ok bool) {
	var unset expand.UnsetParameterError
	if !errors.As(err, &unset) || unset.Node == nil || unset.Node.Param == nil {
		return "", "", false
	}
	return unset.Node.Param.Value, unset.Message, true
}

// expanded looks at the error of an expansion: one that ends a shell ends this.
func (s *shell) expanded(err error) {
	if err == nil {
		return
	}
	s.status = 1
	name, message, unset := unsetVariable(err)
	if unset {
		s.needs(name, message)
		s.end(s.line())
	}
}

// allSet reports whether a word uses no variable that is not set; under set -u
// such a word ends the shell. The words of ${X:+...} count only where X is set.
func (s *shell) allSet(w *syntax.Word) bool {
	if !s.nounset || w == nil {
		return true
	}
	missing := ""
	assigned := map[string]bool{}
	syntax.Walk(w, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.ParamExp:
			if node.Param == nil || node.Length || node.Excl {
				return true
			}
			name := node.Param.Value
			v := environment{s}.Get(name)
			set := v.IsSet() || assigned[name]
			if node.Exp != nil {
				switch node.Exp.Op {
				case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
					return set
				case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
					return !set || v.String() == ""
				case syntax.AssignUnset, syntax.AssignUnsetOrNull:
					assigned[name] = true
					return !set
				}
			}
			if !set && missing == "" {
				missing = name
			}
		}
		return true
	})
	if missing == "" {
		return true
	}
	s.status = 1
	s.needs(missing, "")
	s.end(s.line())
	return false
}

func (s *shell) fields(words []*syntax.Word) []string {
	for _, w := range words {
		if !s.allSet(w) {
			return nil
		}
	}
	fields, err := expand.Fields(s.config(), words...)
	s.expanded(err)
	for i := range fields {
		fields[i] = clip(fields[i])
	}
	return fields
}

func (s *shell) literal(w *syntax.Word) string {
	if w == nil || !s.allSet(w) {
		return ""
	}
	text, err := expand.Literal(s.config(), w)
	s.expanded(err)
	return clip(text)
}

func (s *shell) pattern(w *syntax.Word) string {
	text, err := expand.Pattern(s.config(), w)
	s.expanded(err)
	return text
}

func (s *shell) arithmetic(x syntax.ArithmExpr) int {
	n, err := expand.Arithm(s.config(), x)
	s.expanded(err)
	return n
}

// environment is how expansions see a shell's variables.
type environment struct{ s *shell }

func (e environment) Get(name string) expand.Variable {
	s := e.s
	text := func(v string) expand.Variable { return expand.Variable{Set: true, Kind: expand.String, Str: v} }
	switch name {
	case "#":
		return text(strconv.Itoa(len(s.parameters)))
	case "@", "*":
		return expand.Variable{Set: true, Kind: expand.Indexed, List: append([]string{}, s.parameters...)}
	case "?":
		return text(strconv.Itoa(s.status))
	case "$", "PPID", "RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "BASHPID":
		return text(Unknown)
	case "-":
		return text("")
	case "0":
		return text(s.name)
	case "LINENO":
		return text(strconv.Itoa(s.line()))
	case "UID", "EUID":
		if i := s.run.Tree.image; i != nil && i.User != nil {
			return text(strconv.Itoa(*i.User))
		}
		return text(Unknown)
	case "BASH_SOURCE":
		if s.language == syntax.LangBash {
			return expand.Variable{Set: true, Kind: expand.Indexed, List: []string{s.name}}
		}
	case "BASH_VERSION":
		if s.language == syntax.LangBash {
			return text("5.2.0(1)-release")
		}
	case "HOSTNAME":
		return text(Unknown)
	case "OSTYPE":
		return text("linux-gnu")
	case "OPTIND":
		if _, set := s.variables[name]; !set {
			return text("1")
		}
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 {
		if n <= len(s.parameters) {
			return text(s.parameters[n-1])
		}
		return expand.Variable{}
	}
	if strings.HasPrefix(name, "HOME ") { // of another user: never looked up here
		return text(Unknown)
	}
	return s.variables[name]
}

func (e environment) Set(name string, v expand.Variable) error { return e.s.assign(name, v) }

func (e environment) Each(f func(string, expand.Variable) bool) {
	for _, name := range slices.Sorted(maps.Keys(e.s.variables)) {
		if !f(name, e.s.variables[name]) {
			return
		}
	}
}
