package config

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"slipway/manifest"
)

// maxSourceBytes bounds a configuration file, and maxDepth its nesting: the
// parser recurses, and hostile input must not exhaust the stack.
const (
	maxSourceBytes = 64 << 10
	maxDepth       = 64
)

// Argument is the value of one argument and where it stands. One that was left
// out has its default and stands at its block.
type Argument[T any] struct {
	Value T
	At    Position
}

// section reads one block, or a whole file, strictly: every argument and block
// that is asked for becomes known, and finish reports the others.
type section struct {
	problems   *Diagnostics
	kind       string // "weights"; "the file" for the file itself
	label      string
	header     hcl.Range
	labelRange hcl.Range
	body       *hclsyntax.Body
	arguments  []string
	blocks     []string
}

// openFile parses a file; a nil section means that it is not HCL.
func openFile(data []byte, filename string) (*section, *Diagnostics) {
	problems := &Diagnostics{file: filename, source: data}
	start := hcl.Range{Filename: filename, Start: hcl.InitialPos, End: hcl.InitialPos}
	if len(data) > maxSourceBytes {
		problems.source = nil
		problems.add(start, "", "file of %d bytes is larger than %d", len(data), maxSourceBytes)
		return nil, problems
	}
	if at, deep := tooDeep(data, filename); deep {
		problems.add(at, "", "nested deeper than %d", maxDepth)
		return nil, problems
	}
	file, found := hclsyntax.ParseConfig(data, filename, hcl.InitialPos)
	if found.HasErrors() {
		problems.addSyntax(found)
		return nil, problems
	}
	body := file.Body.(*hclsyntax.Body) // what this parser always returns
	return &section{problems: problems, kind: "the file", header: start, body: body}, problems
}

// version reports whether the file says that it is written in the version that
// is read here; in another one, every further problem would mislead.
func (s *section) version(name string, want int64) bool {
	remedy := fmt.Sprintf("write %s = %d in the first line", name, want)
	expression := s.find(name)
	if expression == nil {
		for written, attribute := range s.body.Attributes {
			if misspells(written, name) {
				s.problems.add(attribute.NameRange, fmt.Sprintf("did you mean %q?", name), "unknown argument %q in %s", written, s.kind)
				return false
			}
		}
		s.fault(name, remedy, "the file has no %q", name)
		return false
	}
	given, ok := literalWhole(expression)
	switch {
	case !ok:
		s.fault(name, remedy, "%q is not a whole number", name)
	case given != want:
		s.fault(name, fmt.Sprintf("this program reads version %d", want), "%s = %d is another version", name, given)
	}
	return ok && given == want
}

// tooDeep finds where a file makes the parser recurse deeper than maxDepth.
// Operators and template directives, which no valid file holds, count as if
// each were inside the one before.
func tooDeep(data []byte, filename string) (hcl.Range, bool) {
	tokens, _ := hclsyntax.LexConfig(data, filename, hcl.InitialPos) // the parser reports the same faults again
	depth, operators := 0, 0
	for _, token := range tokens {
		switch token.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
			depth = max(depth-1, 0)
		case hclsyntax.TokenTemplateControl, hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenQuestion:
			operators++
		}
		if depth+operators > maxDepth {
			return token.Range, true
		}
	}
	return hcl.Range{}, false
}

// each returns the blocks of a type, which have one label or none.
func (s *section) each(kind, labelName string) []*section {
	s.blocks = append(s.blocks, kind)
	var found []*section
	for _, b := range s.body.Blocks {
		if b.Type != kind {
			continue
		}
		child := &section{problems: s.problems, kind: kind, header: b.TypeRange, labelRange: b.TypeRange, body: b.Body}
		switch {
		case labelName == "" && len(b.Labels) > 0:
			s.problems.add(b.LabelRanges[0], fmt.Sprintf("write %s { ... }", kind), "%s takes no label", kind)
		case labelName != "" && len(b.Labels) != 1:
			s.problems.add(b.TypeRange, fmt.Sprintf("write %s %q { ... }", kind, labelName), "%s takes one label, not %d", kind, len(b.Labels))
		case labelName != "":
			child.label, child.labelRange = b.Labels[0], b.LabelRanges[0]
		}
		found = append(found, child)
	}
	return found
}

// only returns the block of a type that may stand once, or nil.
func (s *section) only(kind, labelName string) *section {
	all := s.each(kind, labelName)
	if len(all) == 0 {
		return nil
	}
	for _, repeated := range all[1:] {
		s.problems.add(repeated.header, "remove one", "second %s block; the first stands on line %d", kind, all[0].header.Start.Line)
	}
	return all[0]
}

// distinct reports blocks whose label an earlier one has.
func distinct(all []*section) {
	first := map[string]*section{}
	for _, s := range all {
		if earlier, taken := first[s.label]; taken && s.label != "" {
			s.problems.add(s.labelRange, "give each a label of its own", "second %s %q; the first stands on line %d", s.kind, s.label, earlier.header.Start.Line)
			continue
		}
		first[s.label] = s
	}
}

// missingBlock is missing for a block of the file.
func (s *section) missingBlock(kind, example string) {
	for _, b := range s.body.Blocks {
		if misspells(b.Type, kind) {
			return
		}
	}
	s.problems.add(s.header, "write "+example, "the file has no %s block", kind)
}

// finish reports what was written but never asked for.
func (s *section) finish() {
	for name, attribute := range s.body.Attributes {
		if slices.Contains(s.arguments, name) {
			continue
		}
		remedy := Suggest(name, s.arguments)
		if slices.Contains(s.blocks, name) {
			remedy = fmt.Sprintf("%s is a block: write %s { ... } without an equals sign", name, name)
		}
		s.problems.add(attribute.NameRange, remedy, "unknown argument %q in %s", name, s.kind)
	}
	for _, b := range s.body.Blocks {
		if slices.Contains(s.blocks, b.Type) {
			continue
		}
		remedy := Suggest(b.Type, s.blocks)
		if slices.Contains(s.arguments, b.Type) {
			remedy = fmt.Sprintf("%s is an argument: write %s = ...", b.Type, b.Type)
		}
		s.problems.add(b.TypeRange, remedy, "unknown block %q in %s", b.Type, s.kind)
	}
}

// find returns an argument's expression, or nil, and makes its name known.
func (s *section) find(name string) hclsyntax.Expression {
	s.arguments = append(s.arguments, name)
	if attribute, given := s.body.Attributes[name]; given {
		return attribute.Expr
	}
	return nil
}

// at returns where an argument, or else its block, stands.
func (s *section) at(name string) hcl.Range {
	if attribute, given := s.body.Attributes[name]; given {
		return attribute.SrcRange
	}
	return s.header
}

// fault records a problem of one argument.
func (s *section) fault(name, remedy, format string, args ...any) {
	s.problems.add(s.at(name), remedy, format, args...)
}

// missing reports an argument that has to be there, unless it is there under a
// misspelt name: finish says that better.
func (s *section) missing(name, example string) {
	for written := range s.body.Attributes {
		if misspells(written, name) {
			return
		}
	}
	s.fault(name, fmt.Sprintf("write %s = %s", name, example), "%s has no %q", s.kind, name)
}

// text reads a string; where it is left out, fallback stands for it.
func (s *section) text(name, fallback string) Argument[string] {
	out := Argument[string]{fallback, position(s.at(name))}
	expression := s.find(name)
	if expression == nil {
		return out
	}
	value, ok := literalText(expression)
	switch {
	case !ok && isTemplate(expression):
		s.fault(name, "write $${ for a literal ${", "%q may not hold a reference", name)
	case !ok:
		s.fault(name, fmt.Sprintf(`write %s = "..."`, name), "%q is not a string in double quotes", name)
	case value == "":
		s.fault(name, "leave the argument out, or write a value", "%q is empty", name)
	case strings.ContainsFunc(value, isControl):
		s.fault(name, "", "%q contains a control character", name)
	default:
		out.Value = value
	}
	return out
}

// need is text that may not be left out.
func (s *section) need(name, example string) Argument[string] {
	if _, given := s.body.Attributes[name]; !given {
		s.find(name)
		s.missing(name, example)
		return Argument[string]{At: position(s.header)}
	}
	return s.text(name, "")
}

// choice reads one of a few words.
func (s *section) choice(name, fallback string, allowed ...string) Argument[string] {
	out := s.text(name, fallback)
	if out.Value != "" && !slices.Contains(allowed, out.Value) {
		s.fault(name, "expected here: "+strings.Join(allowed, ", "), "%q is %q", name, manifest.Clip(out.Value))
	}
	return out
}

// path reads a path below the folder of the file; "." is the folder itself.
func (s *section) path(name string) Argument[string] {
	out := s.text(name, "")
	if out.Value == "" {
		return out
	}
	if reason := pathFault(out.Value); reason != nil {
		s.fault(name, pathRemedy(out.Value), "%q: %v", name, reason)
		out.Value = ""
	}
	return out
}

func (s *section) needPath(name, example string) Argument[string] {
	if _, given := s.body.Attributes[name]; !given {
		return s.need(name, example)
	}
	return s.path(name)
}

// whole reads a whole number from low to high.
func (s *section) whole(name string, fallback, low, high int64) Argument[int64] {
	out := Argument[int64]{fallback, position(s.at(name))}
	expression := s.find(name)
	if expression == nil {
		return out
	}
	value, ok := literalWhole(expression)
	if !ok || value < low || value > high {
		s.fault(name, "", "%q is not a whole number %s", name, interval(low, high))
		return out
	}
	out.Value = value
	return out
}

func interval(low, high int64) string {
	if high == math.MaxInt64 {
		return fmt.Sprintf("of at least %d", low)
	}
	return fmt.Sprintf("from %d to %d", low, high)
}

// flag reads true or false.
func (s *section) flag(name string, fallback bool) Argument[bool] {
	out := Argument[bool]{fallback, position(s.at(name))}
	expression := s.find(name)
	if expression == nil {
		return out
	}
	value, ok := literalFlag(expression)
	if !ok {
		s.fault(name, fmt.Sprintf("write %s = true or %s = false", name, name), "%q is neither true nor false", name)
		return out
	}
	out.Value = value
	return out
}

// texts reads a list of strings. check, where given, looks at each of them.
func (s *section) texts(name string, fallback []string, submission bool, check func(string) error) Argument[[]string] {
	out := Argument[[]string]{fallback, position(s.at(name))}
	expression := s.find(name)
	if expression == nil {
		return out
	}
	elements, ok := literalList(expression)
	if !ok {
		s.fault(name, fmt.Sprintf(`write %s = ["..."]`, name), "%q is not a list of strings", name)
		return out
	}
	out.Value = []string{}
	for i, element := range elements {
		value, ok := templateText(element, submission)
		if !ok || value == "" {
			s.problems.add(element.Range(), "", "%s[%d] is not a non-empty string in double quotes without references", name, i)
			continue
		}
		if check != nil {
			if err := check(value); err != nil {
				s.problems.add(element.Range(), "", "%s[%d]: %v", name, i, err)
				continue
			}
		}
		out.Value = append(out.Value, value)
	}
	return out
}

// pathFault is manifest.CheckPath that lets "." stand for the folder itself.
func pathFault(p string) error {
	if p == "." {
		return nil
	}
	return manifest.CheckPath(p)
}

// pathRemedy says what to write for a faulty path.
func pathRemedy(p string) string {
	if clean := path.Clean(p); clean != p && pathFault(clean) == nil {
		return fmt.Sprintf("write %q", clean)
	}
	return "write a path below the folder of this file, with forward slashes"
}

func isTemplate(e hclsyntax.Expression) bool {
	switch e.(type) {
	case *hclsyntax.TemplateExpr, *hclsyntax.TemplateWrapExpr:
		return true
	}
	return false
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
