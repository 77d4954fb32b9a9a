package script

import (
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// bashTest evaluates what stands between [[ and ]].
func (s *shell) bashTest(x syntax.TestExpr) answer {
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
			return both(s.bashTest(x.X), func() answer { return s.bashTest(x.Y) })
		case syntax.OrTest:
			return both(s.bashTest(x.X).not(), func() answer { return s.bashTest(x.Y).not() }).not()
		}
		left, _ := x.X.(*syntax.Word)
		right, _ := x.Y.(*syntax.Word)
		a := s.literal(left)
		switch x.Op {
		case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
			p := s.pattern(right)
			equal := isTrue(matches(p, a))
			if !known(a) || !known(p) {
				equal = perhapsNo
			}
			if x.Op == syntax.TsNoMatch {
				return equal.not()
			}
			return equal
		case syntax.TsReMatch:
			p := s.literal(right)
			re, err := regexp.Compile(p)
			if err != nil || !known(a) || !known(p) {
				return perhapsYes
			}
			return isTrue(re.MatchString(a))
		}
		return s.compare(x.Op.String(), a, s.literal(right))
	}
	return perhapsYes
}

func nonEmpty(text string) answer {
	if !known(text) {
		return perhapsYes
	}
	return isTrue(text != "")
}

// both is "and": the second is asked only where it matters.
func both(a answer, second func() answer) answer {
	if a == no {
		return no
	}
	b := second()
	switch {
	case a == yes || b == no:
		return b
	case b == yes || a == perhapsNo:
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

func (p *classic) or() answer {
	a := p.and()
	for p.peek(0) == "-o" {
		p.next()
		b := p.and()
		a = both(a.not(), func() answer { return b.not() }).not()
	}
	return a
}

func (p *classic) and() answer {
	a := p.primary()
	for p.peek(0) == "-a" && len(p.words) > 1 {
		p.next()
		b := p.primary()
		a = both(a, func() answer { return b })
	}
	return a
}

func (p *classic) primary() answer {
	if p.depth++; p.depth > maxNesting {
		p.bad = true
		return no
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
func (s *shell) compare(op, a, b string) answer {
	if !known(a) || !known(b) {
		if op == "=" || op == "==" {
			return perhapsNo
		}
		return perhapsYes
	}
	switch op {
	case "=", "==":
		return isTrue(a == b)
	case "!=":
		return isTrue(a != b)
	case "<":
		return isTrue(a < b)
	case ">":
		return isTrue(a > b)
	case "-nt", "-ot", "-ef":
		return perhapsNo
	}
	x, errX := strconv.Atoi(strings.TrimSpace(a))
	y, errY := strconv.Atoi(strings.TrimSpace(b))
	if errX != nil || errY != nil {
		return no
	}
	return isTrue(map[string]bool{"-eq": x == y, "-ne": x != y, "-lt": x < y, "-le": x <= y, "-gt": x > y, "-ge": x >= y}[op])
}

// unary is a test of one word.
func (s *shell) unary(op, word string) answer {
	switch op {
	case "-z":
		return nonEmpty(word).not()
	case "-n":
		return nonEmpty(word)
	case "-v":
		return isTrue(environment{s}.Get(word).IsSet())
	case "-t", "-o", "-R", "-N", "-p", "-S", "-b", "-c", "-k", "-g", "-u", "-L", "-h":
		if strings.HasPrefix(word, "/dev/") && op == "-c" || op == "-S" {
			return perhapsNo
		}
		return no
	}
	if word == "" {
		return no
	}
	if !known(word) {
		return perhapsYes
	}
	p := s.absolute(word)
	n, there := s.run.tree.get(p)
	if there != yes {
		return there
	}
	switch op {
	case "-d":
		return isTrue(n.folder)
	case "-f":
		return isTrue(!n.folder && !strings.HasPrefix(p, "/dev/"))
	case "-s":
		return isTrue(n.folder || n.size > 0)
	case "-x":
		return isTrue(n.folder || n.executable)
	case "-w":
		return isTrue(!s.readOnly(p))
	}
	return yes
}

// readOnly reports whether nothing can be written at a path: graders mount the
// submission so, unless their image says otherwise.
func (s *shell) readOnly(p string) bool {
	if m, ok := s.options().Image.MountOf(p); ok && m.ReadOnly != nil && (m.Path != "/" || !s.run.tree.within(p)) {
		return *m.ReadOnly
	}
	return s.run.tree.within(p)
}
