package python

import (
	"slices"
	"strings"
)

// function is the definition around a statement.
type function struct {
	name     string // of a class's __init__ that of the class; "" outside of functions
	keywords string // name of its ** parameter
	line     int
}

// key is a keyword of the table of rules that the source writes into a dict, or
// gives to a call: what a ** argument may carry.
type key struct {
	Argument
	holder   string // name of the dict
	call     string // of the call that is given it
	in       function
	optional bool // below a condition
}

// maxKeys bounds those that are kept, of a module and of a program.
const maxKeys = 500

// ruleKeywords are the keywords that rules of calls ask for.
var ruleKeywords = func() map[string]bool {
	names := map[string]bool{}
	for i := range rules {
		if rules[i].keyword != "" {
			names[rules[i].keyword] = true
		}
	}
	return names
}()

// telling are words without one of which a source has no keyword of a rule: "loop"
// and "http", which many have, are uvicorn's.
var telling = func() (words []string) {
	for name := range ruleKeywords {
		if name != "loop" && name != "http" {
			words = append(words, name)
		}
	}
	return append(words, "uvicorn")
}()

// function returns the innermost definition around the current line.
func (r *reader) function() function {
	for i := len(r.blocks) - 1; i >= 0; i-- {
		if r.blocks[i].kind == "def" {
			return r.blocks[i].function
		}
	}
	return function{}
}

// readFunction reads the header of a def or class for its block.
func (r *reader) readFunction(tokens []token, own *block) {
	at := slices.IndexFunc(tokens[:min(2, len(tokens))], func(t token) bool { return r.is(t, "def", "class") })
	if at < 0 || at+1 >= len(tokens) {
		return
	}
	own.function = function{name: r.text(tokens[at+1]), line: int(tokens[at].line)}
	if n := len(r.blocks); n > 0 && own.function.name == "__init__" && r.blocks[n-1].kind == "class" {
		own.function.name = r.blocks[n-1].function.name
	}
	for i := at; i+1 < len(tokens); i++ {
		if r.is(tokens[i], "**") && tokens[i+1].kind == nameToken && r.is(tokens[i-1], "(", ",") {
			own.function.keywords = r.text(tokens[i+1])
		}
	}
}

// readKeys notes the keywords of rules that a logical line writes, and the dicts
// all of whose keys it shows.
func (r *reader) readKeys(tokens []token) {
	target, value := r.target(tokens)
	r.readDict(target, tokens[value:])
	var open []int // brackets
	optional, deferred, _ := r.placed(nil)
	for i, t := range tokens {
		switch {
		case t.kind == operatorToken && r.is(t, "(", "[", "{"):
			open = append(open, i)
		case t.kind == operatorToken && r.is(t, ")", "]", "}"):
			open = open[:max(0, len(open)-1)]
		case t.kind == stringToken, t.kind == nameToken:
			name := strings.Trim(r.text(t), `"'`)
			if !ruleKeywords[name] || len(open) == 0 || i+2 >= len(tokens) {
				continue
			}
			k := key{in: r.function(), optional: optional && !deferred}
			bracket := open[len(open)-1]
			if from, ok := r.keyAt(tokens, i, bracket, &k); ok {
				if len(open) == 1 && target != "" && (bracket == value && r.is(tokens[value], "{") || bracket == value+1 && r.is(tokens[value], "dict")) {
					k.holder = target
				}
				k.Argument = r.valueFrom(tokens, from)
				k.Keyword = name
				if len(r.module.keys) < maxKeys {
					r.module.keys = append(r.module.keys, k)
				}
			}
		}
	}
}

// keyAt says where the value of the keyword tokens[i] begins, which stands in the
// bracket tokens[at], and who holds it.
func (r *reader) keyAt(tokens []token, i, at int, k *key) (from int, ok bool) {
	next, text := tokens[i+1], tokens[i].kind == stringToken
	switch {
	case text && r.is(tokens[at], "{") && r.is(next, ":"):
		return i + 2, true
	case text && r.is(tokens[at], "[") && i == at+1 && r.is(next, "]") && r.is(tokens[i+2], "=") && at > 0:
		k.holder = r.chainBefore(tokens, at)
		return i + 3, true
	case !r.is(tokens[at], "(") || at == 0 || tokens[at-1].kind != nameToken || at > 1 && r.is(tokens[at-2], "def"):
		return 0, false
	}
	k.call = r.chainBefore(tokens, at)
	holder, method := "", lastPart(k.call)
	if method != k.call {
		holder = strings.TrimSuffix(k.call, "."+method)
	}
	switch {
	case text && method == "setdefault" && i == at+1 && r.is(next, ","):
		k.holder = holder
		return i + 2, true
	case !text && r.is(next, "=") && r.is(tokens[i-1], "(", ","):
		if method == "update" {
			k.holder = holder
		}
		return i + 2, true
	}
	return 0, false
}

// valueFrom reads an expression up to the comma or bracket that ends it.
func (r *reader) valueFrom(tokens []token, from int) (a Argument) {
	depth, end := 0, from
	for ; end < min(len(tokens), from+maxReach); end++ {
		if r.is(tokens[end], "(", "[", "{") {
			depth++
		} else if r.is(tokens[end], ")", "]", "}") {
			depth--
		}
		if depth < 0 || depth == 0 && r.is(tokens[end], ",", ";") {
			break
		}
	}
	if end > from {
		a.Text = r.src[tokens[from].start:tokens[end-1].end]
		a.Literal = r.plainString(tokens[from:end])
	}
	return a
}

// target returns the name that "name = value" and "self.name: Type = value"
// assign, and where the value begins; "" and 0 of other statements.
func (r *reader) target(tokens []token) (name string, value int) {
	if tokens[0].kind != nameToken {
		return "", 0
	}
	equals := slices.IndexFunc(tokens[:min(len(tokens), 64)], func(t token) bool { return r.is(t, "=", "(") })
	if equals < 1 || !r.is(tokens[equals], "=") || equals+1 >= len(tokens) {
		return "", 0
	}
	target := tokens[:equals]
	if colon := slices.IndexFunc(target, func(t token) bool { return r.is(t, ":") }); colon >= 0 {
		target = target[:colon]
	}
	return r.joined(target), equals + 1
}

// readDict notes whether all keys of a dict that is assigned stand there.
func (r *reader) readDict(target string, value []token) {
	if target == "" {
		return
	}
	shown := r.is(value[0], "{") || r.is(value[0], "dict") && len(value) > 1 && r.is(value[1], "(")
	shown = shown && r.is(value[len(value)-1], "}", ")") &&
		!slices.ContainsFunc(value, func(t token) bool { return r.is(t, "**", "|", "for", "else", "or", "and") })
	if shown && r.is(value[0], "dict") && len(value) > 4 && !r.is(value[3], "=") {
		shown = false // dict(other)
	}
	if before, seen := r.module.shown[target]; seen {
		shown = shown && before
	}
	if r.module.shown == nil {
		r.module.shown = map[string]bool{}
	}
	r.module.shown[target] = shown
}

// carries says whether a call's ** argument gives it a key that a module of the
// program writes, and whether that is certain.
func (p *program) carries(in *Module, c *Call, text string, of *Module, k *key) (carried, certain bool) {
	inline := strings.HasPrefix(text, "{") && (strings.Contains(text, `"`+k.Keyword+`"`) || strings.Contains(text, "'"+k.Keyword+"'")) ||
		strings.HasPrefix(text, "dict(") && strings.Contains(text, k.Keyword)
	same := in == of
	if c.in.keywords == text && c.in.name != "" { // the function passes on what it is given
		if lastPart(k.call) == c.in.name {
			return same || p.imports(of, in, c.in.name, k.call), !k.optional
		}
		if k.holder != text || k.in != c.in {
			return same && k.call == "" && p.spread[c.in.name], false
		}
	}
	switch {
	case !same:
		return false, false
	case inline:
		return true, true
	case strings.HasPrefix(text, "{") && !strings.Contains(text, "**") || strings.HasPrefix(text, "dict(") && !strings.Contains(text, "**"):
		return false, false
	case k.holder == text && (k.in == c.in || k.in.name == "" || strings.Contains(text, ".")):
		return true, !k.optional
	case in.shown[text]:
		return false, false
	}
	return len(rulesOf[lastPart(k.call)]) == 0, false
}
