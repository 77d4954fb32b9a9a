package shell

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// needs records that the shell ends for want of a variable.
func (s *shell) needs(name, message string) {
	if s.tested > 0 && s.subshell {
		return
	}
	got := "it is not set"
	if message != "" && message != "unbound variable" {
		got += fmt.Sprintf(" (%s)", Shown(message))
	}
	problem := "needs the variable " + name + ", which the grader does not set"
	if slices.Contains(strings.Split("@ * 1 2 3 4 5 6 7 8 9", " "), name) {
		problem = "needs the argument $" + name + ", and the grader gives none"
	}
	s.run.find(Finding{Check: "C21", Path: s.path, Line: s.line(), Problem: problem,
		Got: got, Hint: fmt.Sprintf("give it a default: ${%s:-...}", name)})
}

// absolute is a path as the shell's working folder sees it.
func (s *shell) absolute(p string) string {
	if p == "" {
		return s.folder
	}
	if !path.IsAbs(p) {
		p = path.Join(s.folder, p)
	}
	return path.Clean(p)
}

func (s *shell) set(name, value string) {
	v := s.variables[name]
	v.Set, v.Kind, v.Str, v.List, v.Map, v.Indexes = true, expand.String, clip(value), nil, nil, nil
	v.Exported = v.Exported || s.allexport
	s.variables[name] = v
}

func (s *shell) assign(name string, v expand.Variable) error {
	if v.Kind == expand.KeepValue {
		old := s.variables[name]
		old.Exported, old.ReadOnly = old.Exported || v.Exported, old.ReadOnly || v.ReadOnly
		s.variables[name] = old
		return nil
	}
	if !v.IsSet() {
		delete(s.variables, name)
		return nil
	}
	v.Str = clip(v.Str)
	v.Exported = v.Exported || s.allexport
	s.variables[name] = v
	return nil
}

// value returns a variable as an assignment leaves it.
func (s *shell) value(as *syntax.Assign) (name string, v expand.Variable) {
	name = as.Name.Value
	v = s.variables[name]
	if target, resolved := v.Resolve(environment{s}); target != "" {
		name, v = target, resolved
	}
	v.Set = true
	switch {
	case as.Index != nil:
		s.element(as, &v)
	case as.Array != nil:
		s.array(as, &v)
	case as.Append && v.Kind == expand.Indexed:
		v.List = slices.Clone(v.List)
		if len(v.List) == 0 {
			v.List = []string{""}
		}
		v.List[0] += s.literal(as.Value)
	case as.Append:
		v.Kind, v.Str = expand.String, v.Str+s.literal(as.Value)
	default:
		v = expand.Variable{Set: true, Exported: v.Exported, Kind: expand.String, Str: s.literal(as.Value)}
	}
	return name, v
}

// element assigns to one element of an array.
func (s *shell) element(as *syntax.Assign, v *expand.Variable) {
	if word, ok := as.Index.(*syntax.Word); ok && v.Kind == expand.Associative {
		v.Map = maps.Clone(v.Map)
		if v.Map == nil {
			v.Map = map[string]string{}
		}
		v.Map[s.literal(word)] = s.literal(as.Value)
		return
	}
	i := s.arithmetic(as.Index)
	v.Kind, v.List, v.Indexes = expand.Indexed, slices.Clone(v.List), nil
	if i < 0 || i > maxLoop {
		return
	}
	for len(v.List) <= i {
		v.List = append(v.List, "")
	}
	v.List[i] = s.literal(as.Value)
}

// array assigns or appends a whole array.
func (s *shell) array(as *syntax.Assign, v *expand.Variable) {
	if v.Kind == expand.Associative || len(as.Array.Elems) > 0 && as.Array.Elems[0].Index != nil {
		if v.Map = maps.Clone(v.Map); v.Map == nil || !as.Append {
			v.Map = map[string]string{}
		}
		v.Kind = expand.Associative
		for _, e := range as.Array.Elems {
			if word, ok := e.Index.(*syntax.Word); ok {
				v.Map[s.literal(word)] = s.literal(e.Value)
			}
		}
		return
	}
	list := []string{}
	if as.Append {
		if list = slices.Clone(v.List); v.Kind == expand.String && v.Str != "" {
			list = []string{v.Str}
		}
	}
	for _, e := range as.Array.Elems {
		list = append(list, s.fields([]*syntax.Word{e.Value})...)
	}
	v.Kind, v.List, v.Indexes, v.Str = expand.Indexed, list[:min(len(list), maxList)], nil, ""
}

// declaration is what the options of export, declare, local and their like say.
type declaration struct {
	variant       string
	export, local bool
	kind          expand.ValueKind
}

func (s *shell) declaration(variant string) declaration {
	return declaration{variant: variant, export: variant == "export",
		local: variant == "local" || s.calls > 0 && (variant == "declare" || variant == "typeset")}
}

// declare is such a command where the language has it as a keyword.
func (s *shell) declare(c *syntax.DeclClause) {
	d := s.declaration(c.Variant.Value)
	status := 0
	for _, as := range c.Args {
		if as.Naked && as.Name == nil { // an option, or a word that expands to an assignment
			words := s.fields([]*syntax.Word{as.Value})
			s.status = 0
			for _, word := range words {
				s.declareWord(&d, word)
			}
			status = max(status, s.status)
			continue
		}
		name := as.Name.Value
		s.declared(name, d.local, false)
		if as.Naked {
			if d.kind != expand.Unknown {
				s.variables[name] = expand.Variable{Set: true, Kind: d.kind}
			}
		} else {
			target, v := s.value(as)
			_ = s.assign(target, v)
		}
		s.declared(name, false, d.export)
	}
	if s.flow == onward {
		s.status = status // that of a substitution is lost: local x=$(false) succeeds
	}
}

// declareWords is such a command where it is one like any other, as in sh.
func declareWords(variant string) builtin {
	return func(s *shell, args []string, _ syntax.Node) int {
		d := s.declaration(variant)
		for _, word := range args {
			s.declareWord(&d, word)
		}
		return s.status
	}
}

// declareWord takes one word: an option, a name, or an assignment.
func (s *shell) declareWord(d *declaration, word string) {
	name, value, given := strings.Cut(word, "=")
	switch {
	case strings.HasPrefix(word, "--") || strings.HasPrefix(word, "-") && d.variant == "export" && strings.Trim(word, "-nfp") != "":
		s.badExport(word)
	case strings.HasPrefix(word, "-"):
		d.export = d.export || strings.Contains(word, "x")
		if strings.Contains(word, "A") {
			d.kind = expand.Associative
		}
		d.local = d.local && !strings.Contains(word, "g")
	case !syntax.ValidName(name):
		s.badExport(word)
	default:
		s.declared(name, d.local, d.export)
		if given {
			s.set(name, value)
		}
	}
}

// declared notes a local variable's old value and marks an exported one.
func (s *shell) declared(name string, local, export bool) {
	if local && len(s.locals) > 0 {
		if _, saved := s.locals[len(s.locals)-1][name]; !saved {
			s.locals[len(s.locals)-1][name] = s.variables[name]
		}
	}
	if export {
		v := s.variables[name]
		v.Exported = true
		s.variables[name] = v
	}
}

// badExport is a word that export cannot take: mostly the next line of the
// script, joined by a backslash.
func (s *shell) badExport(word string) {
	s.status = 1
	s.run.find(Finding{Check: "C18", Path: s.path, Line: s.line(),
		Problem: fmt.Sprintf("export cannot take the word %q", Shown(word)), Want: "NAME=VALUE",
		Hint: "a backslash at the end of the line joins the next line to export: remove it"})
}

// exported returns what the script itself exports.
func (s *shell) exported() map[string]string {
	out := map[string]string{}
	for name, v := range s.variables {
		if !v.Exported || !v.Set || v.Kind != expand.String {
			continue
		}
		if given, ok := s.given[name]; ok && given.Str == v.Str || name == "PWD" || name == "OLDPWD" {
			continue
		}
		out[name] = v.Str
	}
	return out
}

// call runs a simple command.
func (s *shell) call(c *syntax.CallExpr) {
	s.status = 0
	args := s.fields(c.Args)
	if s.flow != onward {
		return
	}
	if len(args) == 0 {
		for _, as := range c.Assigns {
			name, v := s.value(as)
			if s.flow != onward {
				return
			}
			_ = s.assign(name, v)
		}
		return
	}
	s.status = 0 // that of a substitution counts only for bare assignments
	saved := map[string]expand.Variable{}
	for _, as := range c.Assigns {
		name, v := s.value(as)
		if _, done := saved[name]; !done {
			saved[name] = s.variables[name]
		}
		v.Exported = true
		s.variables[name] = v
	}
	if s.flow == onward {
		s.dispatch(args, c)
	}
	for name, v := range saved {
		if v.Set {
			s.variables[name] = v
		} else {
			delete(s.variables, name)
		}
	}
}

// bashOnly are commands that a plain sh, as dash, does not have.
var bashOnly = []string{"[[", "source", "shopt", "declare", "typeset", "mapfile", "readarray", "pushd", "popd", "let"}

// dispatch runs a function, a builtin or a program.
func (s *shell) dispatch(args []string, at syntax.Node) {
	if f, ok := s.functions[args[0]]; ok {
		s.function(f, args[1:])
		return
	}
	if s.language == syntax.LangPOSIX && slices.Contains(bashOnly, args[0]) {
		s.run.find(Finding{Check: "C18", Path: s.path, Line: s.line(), Problem: "is bash under a first line that asks for sh: " + args[0],
			Hint: "begin it with #!/bin/bash"})
	}
	if b, ok := builtins[args[0]]; ok {
		s.status = b(s, args[1:], at)
		return
	}
	s.external(args, at, s.replaced)
}

func (s *shell) function(f function, args []string) {
	if s.nesting > maxNesting {
		s.stop("calls itself too deeply to be followed")
		return
	}
	parameters, loops, p := s.parameters, s.loops, s.path
	s.parameters, s.loops, s.path = args, 0, f.path
	quoted, onFailure := s.quoted, s.onFailure
	if s.quoted = false; !s.errtrace {
		s.onFailure = ""
	}
	s.locals = append(s.locals, map[string]expand.Variable{})
	s.calls++
	s.nesting++
	s.statement(f.body)
	s.nesting--
	s.calls--
	for name, v := range s.locals[len(s.locals)-1] {
		if v.Set {
			s.variables[name] = v
		} else {
			delete(s.variables, name)
		}
	}
	s.locals = s.locals[:len(s.locals)-1]
	s.parameters, s.loops, s.path, s.quoted = parameters, loops, p, quoted
	if s.onFailure == "" {
		s.onFailure = onFailure
	}
	if s.flow == returning {
		s.flow = onward
	}
}
