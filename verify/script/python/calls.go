package python

import (
	"slices"
	"strings"
)

// keywords that a parenthesis may follow without being a call.
var keywords = setOf(`False None True and as assert async await break class continue def del elif else except finally for from
	global if import in is lambda nonlocal not or pass raise return try while with yield`)

// setOf makes a set of words.
func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// frame is an open bracket. call is -1 where it opens no call.
type frame struct{ call, argument int }

// readCalls finds the calls of a logical line and their arguments.
func (r *reader) readCalls(tokens []token) {
	var frames []frame
	first := len(r.module.Calls)
	chain := -1 // where the dotted name that ends at the token before begins
	for i, t := range tokens {
		switch {
		case t.kind == nameToken:
			chain = r.chainStart(tokens, i, chain)
		case r.is(t, "."):
		case r.is(t, "(", "[", "{"):
			call := -1
			if r.is(t, "(") && chain >= 0 && i > 0 && tokens[i-1].kind == nameToken && !r.isDefinition(tokens, chain) {
				call = len(r.module.Calls)
				r.module.Calls = append(r.module.Calls, Call{Name: r.joined(tokens[chain:i]), Within: r.within(), Line: int(tokens[chain].line)})
			}
			frames = append(frames, frame{call, i + 1})
			chain = -1
		case r.is(t, ")", "]", "}", ","):
			if n := len(frames) - 1; n >= 0 {
				r.argument(frames[n].call, tokens[frames[n].argument:i])
				frames[n].argument = i + 1
				if !r.is(t, ",") {
					frames = frames[:n]
				}
			}
			chain = -1
		default:
			chain = -1
		}
	}
	r.readDecorator(tokens)
	for _, c := range r.module.Calls[first:] {
		r.importedByCall(c)
	}
}

// readDecorator takes a decorator without parentheses for the call that it is.
func (r *reader) readDecorator(tokens []token) {
	bare := !slices.ContainsFunc(tokens[1:], func(t token) bool { return t.kind != nameToken && !r.is(t, ".") })
	if r.is(tokens[0], "@") && len(tokens) > 1 && bare {
		r.module.Calls = append(r.module.Calls, Call{Name: r.joined(tokens[1:]), Within: r.within(), Line: int(tokens[0].line)})
	}
}

// chainStart returns where the dotted name that ends with the name tokens[i]
// begins; -1 for a keyword.
func (r *reader) chainStart(tokens []token, i, chain int) int {
	dotted := i > 0 && r.is(tokens[i-1], ".")
	switch {
	case dotted && chain >= 0:
		return chain
	case dotted && i > 1:
		return i - 1 // of a call's result: with the dot
	case keywords[r.text(tokens[i])]:
		return -1
	}
	return i
}

func (r *reader) isDefinition(tokens []token, at int) bool {
	return at > 0 && r.is(tokens[at-1], "def", "class")
}

// argument adds one argument to a call.
func (r *reader) argument(call int, tokens []token) {
	if call < 0 || len(tokens) == 0 {
		return
	}
	a := Argument{}
	switch {
	case r.is(tokens[0], "*", "**"):
		a.Keyword = r.text(tokens[0])
		tokens = tokens[1:]
	case len(tokens) > 1 && tokens[0].kind == nameToken && r.is(tokens[1], "="):
		a.Keyword = r.text(tokens[0])
		tokens = tokens[2:]
	}
	if len(tokens) == 0 {
		return
	}
	a.Text = r.src[tokens[0].start:tokens[len(tokens)-1].end]
	a.Literal = r.plainString(tokens)
	c := &r.module.Calls[call]
	c.Arguments = append(c.Arguments, a)
}

// plainString returns the value of tokens that are one string literal, or
// adjacent ones, possibly in parentheses; nil for everything else.
func (r *reader) plainString(tokens []token) *string {
	if n := len(tokens); n > 2 && r.is(tokens[0], "(") && r.is(tokens[n-1], ")") {
		tokens = tokens[1 : n-1]
	}
	var parts []string
	for _, t := range tokens {
		if t.kind != stringToken {
			return nil
		}
		text, plain := literalText(r.text(t))
		if !plain {
			return nil
		}
		parts = append(parts, text)
	}
	value := strings.Join(parts, "")
	return &value
}

// readStrings adds the string literals of a logical line.
func (r *reader) readStrings(tokens []token) {
	for i := 0; i < len(tokens); i++ {
		if tokens[i].kind != stringToken {
			continue
		}
		line := int(tokens[i].line)
		text, _ := literalText(r.text(tokens[i]))
		if i+1 < len(tokens) && tokens[i+1].kind == stringToken {
			parts := []string{text}
			for i+1 < len(tokens) && tokens[i+1].kind == stringToken {
				i++
				text, _ := literalText(r.text(tokens[i]))
				parts = append(parts, text)
			}
			text = strings.Join(parts, "")
		}
		r.module.Strings = append(r.module.Strings, Literal{text, line})
	}
}

// readTable counts the literals of a logical line that are data.
func (r *reader) readTable(tokens []token) {
	table := Table{Line: int(tokens[0].line)}
	for i := range tokens {
		switch {
		case i > 0 && tokens[i].kind == numberToken && r.is(tokens[i-1], ",", "[", "(", ":"):
			table.Numbers++
		case i > 1 && r.is(tokens[i-1], ":") && tokens[i-2].kind == stringToken && (tokens[i].kind == stringToken || r.is(tokens[i], "[", "(")):
			table.Pairs++
		}
	}
	if table.Pairs >= tablePairs || table.Numbers >= tableNumbers {
		r.module.Tables = append(r.module.Tables, table)
	}
}

// readAssignment notes "name = call(...)", also "self.name: Type = call(...)".
func (r *reader) readAssignment(tokens []token) {
	target, start := r.target(tokens)
	if target == "" {
		return
	}
	at := start
	for at < len(tokens) && (tokens[at].kind == nameToken || r.is(tokens[at], ".")) {
		at++
	}
	value := ""
	if at < len(tokens) && r.is(tokens[at], "(") && !(r.is(tokens[at-1], "device") && r.isCPU(tokens[at+1:])) {
		value = r.joined(tokens[start:at])
	}
	if r.assigned == nil {
		r.assigned = map[string]string{}
	}
	r.assigned[target] = value
}
