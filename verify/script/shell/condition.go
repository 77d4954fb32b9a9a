package shell

import (
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// bashTest evaluates what stands between [[ and ]].
func (s *shell) bashTest(x syntax.TestExpr) Answer {
	switch x := x.(type) {
	case *syntax.Word:
		return nonEmpty(s.literal(x))
	case *syntax.ParenTest:
		return s.bashTest(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			return s.bashTest(x.X).not()
		}
		word, _ := x.X.(*syntax.Word)
		return s.unary(x.Op.String(), s.literal(word))
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest:
			return both(s.bashTest(x.X), func() Answer { return s.bashTest(x.Y) })
		case syntax.OrTest:
			return both(s.bashTest(x.X).not(), func() Answer { return s.bashTest(x.Y).not() }).not()
		}
		left, _ := x.X.(*syntax.Word)
		right, _ := x.Y.(*syntax.Word)
		a := s.literal(left)
		switch x.Op {
		case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
			p := s.pattern(right)
			equal := IsTrue(matches(p, a))
			if !Known(a) || !Known(p) {
				equal = PerhapsNo
			}
			if x.Op == syntax.TsNoMatch {
				return equal.not()
			}
			return equal
		case syntax.TsReMatch:
			p := s.literal(right)
			re, err := regexp.Compile(p)
			if err != nil || !Known(a) || !Known(p) {
				return perhapsYes
			}
			return IsTrue(re.MatchString(a))
		}
		return s.compare(x.Op.String(), a, s.literal(right))
	}
	return perhapsYes
}

func nonEmpty(text string) Answer {
	if !Known(text) {
		return perhapsYes
	}
	return IsTrue(text != "")
}

// both is "and": the second is asked only where it matters.
func both(a Answer, second func() Answer) Answer {
	if a == No {
		return No
	}
	b := second()
	switch {
	case a == Yes || b == No:
		return b
	case b == Yes || a == PerhapsNo:
		return a
	}
	return b
}

// test is the builtin test, and [.
func test(s *shell, args []string, at syntax.Node) int {
	if call, ok := at.(*syntax.CallExpr); ok && len(call.Args) > 0 && call.Args[0].Lit() == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			return 2
		}
		args = args[:len(args)-1]
	}
	if len(args) == 0 {
		return 1
	}
	p := &classic{s: s, words: args}
	result := p.or()
	if p.bad || len(p.words) > 0 {
		return 2
	}
	return s.judge(result, at)
}

// classic parses the words of test.
type classic struct {
	s     *shell
	words []string
	depth int
	bad   bool
}

func (p *classic) next() string {
	if len(p.words) == 0 {
		p.bad = true
		return ""
	}
	word := p.words[0]
	p.words = p.words[1:]
	return word
}

func (p *classic) peek(i int) string {
	if i < len(p.words) {
		return p.words[i]
	}
	return ""
}

func (p *classic) or() Answer {
	a := p.and()
	for p.peek(0) == "-o" {
		p.next()
		b := p.and()
		a = both(a.not(), func() Answer { return b.not() }).not()
	}
	return a
}

func (p *classic) and() Answer {
	a := p.primary()
	for p.peek(0) == "-a" && len(p.words) > 1 {
		p.next()
		b := p.primary()
		a = both(a, func() Answer { return b })
	}
	return a
}

func (p *classic) primary() Answer {
	if p.depth++; p.depth > maxNesting {
		p.bad = true
		return No
	}
	defer func() { p.depth-- }()
	switch {
	case len(p.words) >= 3 && isComparison(p.peek(1)):
		a, op, b := p.next(), p.next(), p.next()
		return p.s.compare(op, a, b)
	case p.peek(0) == "!" && len(p.words) > 1:
		p.next()
		return p.primary().not()
	case p.peek(0) == "(" && len(p.words) > 2:
		p.next()
		a := p.or()
		p.bad = p.bad || p.next() != ")"
		return a
	case len(p.words) >= 2 && len(p.peek(0)) == 2 && strings.Contains("-e-f-d-c-b-p-S-L-h-k-g-u-G-O-N-r-w-x-s-t-z-n-v-a", p.peek(0)):
		op, x := p.next(), p.next()
		return p.s.unary(op, x)
	}
	return nonEmpty(p.next())
}

func isComparison(op string) bool {
	switch op {
	case "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "<", ">":
		return true
	}
	return false
}

// compare is a test of two words.
func (s *shell) compare(op, a, b string) Answer {
	if !Known(a) || !Known(b) {
		if op == "=" || op == "==" {
			return PerhapsNo
		}
		return perhapsYes
	}
	switch op {
	case "=", "==":
		return IsTrue(a == b)
	case "!=":
		return IsTrue(a != b)
	case "<":
		return IsTrue(a < b)
	case ">":
		return IsTrue(a > b)
	case "-nt", "-ot", "-ef":
		return PerhapsNo
	}
	x, errX := strconv.Atoi(strings.TrimSpace(a))
	y, errY := strconv.Atoi(strings.TrimSpace(b))
	if errX != nil || errY != nil {
		return No
	}
	return IsTrue(map[string]bool{"-eq": x == y, "-ne": x != y, "-lt": x < y, "-le": x <= y, "-gt": x > y, "-ge": x >= y}[op])
}

// unary is a test of one word.
func (s *shell) unary(op, word string) Answer {
	switch op {
	case "-z":
		return nonEmpty(word).not()
	case "-n":
		return nonEmpty(word)
	case "-v":
		return IsTrue(environment{s}.Get(word).IsSet())
	case "-t", "-o", "-R", "-N", "-p", "-S", "-b", "-c", "-k", "-g", "-u", "-L", "-h":
		if strings.HasPrefix(word, "/dev/") && op == "-c" || op == "-S" {
			return PerhapsNo
		}
		return No
	}
	if word == "" {
		return No
	}
	if !Known(word) {
		return perhapsYes
	}
	p := s.absolute(word)
	n, there := s.run.Tree.Get(p)
	if there != Yes {
		return there
	}
	switch op {
	case "-d":
		return IsTrue(n.Folder)
	case "-f":
		return IsTrue(!n.Folder && !strings.HasPrefix(p, "/dev/"))
	case "-s":
		return IsTrue(n.Folder || n.Size > 0)
	case "-x":
		return IsTrue(n.Folder || n.Executable)
	case "-w":
		return IsTrue(!s.readOnly(p))
	}
	return Yes
}

// readOnly reports whether nothing can be written at a path: graders mount the
// submission so, unless their image says otherwise.
func (s *shell) readOnly(p string) bool {
	if m, ok := s.run.Tree.image.MountOf(p); ok && m.ReadOnly != nil && (m.Path != "/" || !s.run.Tree.Within(p)) {
		return *m.ReadOnly
	}
	return s.run.Tree.Within(p)
}
