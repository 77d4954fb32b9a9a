package python

import (
	"slices"
	"strings"
)

// block is a compound statement whose body the next, deeper lines are.
type block struct {
	column int
	kind   string   // its first word; "never" for what no interpreter runs
	within []string // calls of with statements, this one's and those around it

	function function // of a def; of a class its name
}

// reader turns logical lines into a Module.
type reader struct {
	src    string
	module Module
	blocks []block

	assigned  map[string]string // what a name, or dotted name, was last assigned: the name of a call
	bound     map[string]int    // how often a name is assigned
	constants map[string]string // the strings among them
	calls     int               // how many were looked at for what they set

	wantsKeys bool // the source has a word of which readKeys is to know

	argv     int  // line where sys.argv is used other than as a whole; 0: nowhere
	readArgv bool // sys.argv is used at all
	parsers  parserFacts
}

// parserFacts is what a module does with argparse beyond add_argument.
type parserFacts struct {
	made       bool // it makes one
	subclassed int  // line of a class that is an ArgumentParser
}

func (r *reader) text(t token) string { return r.src[t.start:t.end] }

// is reports whether a token is one of the words or operators.
func (r *reader) is(t token, words ...string) bool {
	return t.kind != stringToken && slices.Contains(words, r.text(t))
}

var compound = []string{"if", "elif", "else", "while", "for", "try", "except", "finally", "with", "class", "def", "async", "match", "case"}

func (r *reader) logicalLine(l logicalLine) {
	for n := len(r.blocks); n > 0 && r.blocks[n-1].column >= l.column; n-- {
		r.blocks = r.blocks[:n-1]
	}
	tokens := l.tokens
	header := r.is(tokens[0], compound...)
	kind := r.kindOf(tokens)
	within := r.within()
	if header && kind == "with" {
		within = r.withCalls(tokens, within)
	}
	own := block{column: l.column, kind: kind, within: within}
	r.readFunction(tokens, &own)
	r.definition(tokens)
	r.statements(tokens, own, header)
	r.readAssignment(tokens)
	r.readArguments(tokens)
	if !r.allStrings(tokens) {
		r.readStrings(tokens)
	}
	first := len(r.module.Calls)
	r.readCalls(tokens)
	optional, deferred, _ := r.placed(nil)
	in := r.function()
	if kind == "def" && !r.is(tokens[len(tokens)-1], ":") {
		in = own.function // its body stands on this line
	}
	for i := first; i < len(r.module.Calls); i++ {
		r.module.Calls[i].Optional, r.module.Calls[i].Deferred, r.module.Calls[i].in = optional, deferred, in
	}
	if r.wantsKeys {
		r.readKeys(tokens)
	}
	r.readNames(tokens)
	r.readConstant(tokens)
	r.readEnvironment(tokens)
	r.readTable(tokens)
	if r.is(tokens[len(tokens)-1], ":") {
		r.blocks = append(r.blocks, own)
	}
}

// kindOf classifies a compound statement by its first words.
func (r *reader) kindOf(tokens []token) string {
	first := r.text(tokens[0])
	if first == "async" && len(tokens) > 1 {
		first = r.text(tokens[1])
	}
	if first != "if" && first != "elif" || len(tokens) < 3 {
		return first
	}
	alone := func(at int) bool {
		return len(tokens) > at+1 && r.is(tokens[at], "TYPE_CHECKING") && r.is(tokens[at+1], ":")
	}
	switch {
	case r.is(tokens[1], "__name__") && r.is(tokens[2], "=="):
		return "main"
	case alone(1), r.is(tokens[2], ".") && alone(3):
		return "never"
	}
	return first
}

// within returns the calls of the with statements around the current line.
func (r *reader) within() []string {
	if n := len(r.blocks); n > 0 {
		return r.blocks[n-1].within
	}
	return nil
}

// withCalls adds the calls that a with statement enters.
func (r *reader) withCalls(tokens []token, within []string) []string {
	within = slices.Clip(within)
	if len(within) > maxNesting {
		return within
	}
	for i, t := range tokens {
		switch name := ""; {
		case i == 0:
		case r.is(t, "(") && tokens[i-1].kind == nameToken:
			if name = r.chainBefore(tokens, i); name != "" && !(lastPart(name) == "device" && r.isCPU(tokens[i+1:])) {
				within = append(within, name)
			}
		case r.is(t, ":", ",", "as", ")") && tokens[i-1].kind == nameToken: // "with name:"
			if name = r.assigned[r.chainBefore(tokens, i)]; name != "" {
				within = append(within, name)
			}
		}
		if len(within) > maxNesting {
			break
		}
	}
	return within
}

// isCPU reports whether tokens begin with the whole arguments ("cpu").
func (r *reader) isCPU(tokens []token) bool {
	return len(tokens) > 1 && strings.Trim(r.text(tokens[0]), `"'`) == "cpu" && r.is(tokens[1], ")")
}

// chainBefore returns the dotted name that ends before tokens[end].
func (r *reader) chainBefore(tokens []token, end int) string {
	start := end - 1
	for start >= 2 && r.is(tokens[start-1], ".") && tokens[start-2].kind == nameToken {
		start -= 2
	}
	return r.joined(tokens[start:end])
}

// joined writes tokens without what stands between them.
func (r *reader) joined(tokens []token) string {
	if len(tokens) == 0 {
		return ""
	}
	length := 0
	for _, t := range tokens {
		length += int(t.end - t.start)
	}
	whole := r.src[tokens[0].start:tokens[len(tokens)-1].end]
	if len(whole) == length {
		return whole
	}
	text := make([]byte, 0, length)
	for _, t := range tokens {
		text = append(text, r.text(t)...)
	}
	return string(text)
}

// placed says whether a statement below the open blocks, and own where it stands
// on that header's line, always runs when the module does.
func (r *reader) placed(own *block) (optional, deferred, never bool) {
	conditional, function := false, false
	see := func(kind string) {
		switch kind {
		case "def":
			function = true
		case "never":
			never = true
		case "class", "with", "main":
		default:
			conditional = true
		}
	}
	for _, b := range r.blocks {
		see(b.kind)
	}
	if own != nil {
		see(own.kind)
	}
	return conditional || function, function && !conditional, never
}

func (r *reader) allStrings(tokens []token) bool {
	return !slices.ContainsFunc(tokens, func(t token) bool { return t.kind != stringToken })
}

// definition notes a function or class, and one that is an ArgumentParser.
func (r *reader) definition(tokens []token) {
	for i, t := range tokens {
		if i > 1 || !r.is(t, "def", "class", "async") {
			return
		}
		if r.is(t, "async") || i+1 >= len(tokens) {
			continue
		}
		r.module.defines[r.text(tokens[i+1])] = true
		if r.is(t, "class") && slices.ContainsFunc(tokens, func(t token) bool { return r.is(t, "ArgumentParser") }) {
			r.parsers.subclassed = int(t.line)
		}
		return
	}
}
