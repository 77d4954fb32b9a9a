package python

import "strings"

// statements reads the import statements of a logical line: its first one, those
// after ";" and, on the line of a compound statement, the one after its ":".
func (r *reader) statements(tokens []token, own block, header bool) {
	depth := 0
	var inBody *block
	starts := true
	for i, t := range tokens {
		if starts && r.is(t, "import", "from") {
			r.imported(tokens[i:], inBody)
		}
		starts = false
		switch {
		case t.kind != operatorToken:
		case r.is(t, "(", "[", "{"):
			depth++
		case r.is(t, ")", "]", "}"):
			depth--
		case depth == 0 && r.is(t, ";"):
			starts = true
		case depth == 0 && header && r.is(t, ":"):
			starts, inBody = true, &own
		}
	}
}

// imported reads one import statement, up to the end of its tokens or ";".
func (r *reader) imported(tokens []token, inBody *block) {
	optional, deferred, never := r.placed(inBody)
	if never {
		return // only type checkers read it
	}
	at := 1
	module := func() string {
		start := at
		for at < len(tokens) && (r.is(tokens[at], ".", "...") || tokens[at].kind == nameToken && !r.is(tokens[at], "import", "as")) {
			at++
		}
		return r.joined(tokens[start:at])
	}
	base := Import{Line: int(tokens[0].line), Optional: optional, Deferred: deferred}
	if r.is(tokens[0], "from") {
		base.Module = module()
		if at < len(tokens) && r.is(tokens[at], "import") && base.Module != "" {
			base.Names = r.importedNames(base.Module, tokens[at+1:])
			r.module.Imports = append(r.module.Imports, base)
		}
		return
	}
	for at < len(tokens) {
		one := base
		if one.Module = module(); one.Module == "" || strings.HasPrefix(one.Module, ".") {
			return
		}
		r.module.Imports = append(r.module.Imports, one)
		r.module.aliases[rootOf(one.Module)] = rootOf(one.Module)
		if at+1 < len(tokens) && r.is(tokens[at], "as") {
			r.module.aliases[r.text(tokens[at+1])] = one.Module
			at += 2
		}
		if at >= len(tokens) || !r.is(tokens[at], ",") {
			return
		}
		at++
	}
}

// importedNames lists what follows "import" in "from a import (b as c, d)", and
// notes which names that binds.
func (r *reader) importedNames(module string, tokens []token) (names []string) {
	wanted := true
	for i, t := range tokens {
		switch {
		case r.is(t, ";", ")"):
			return names
		case r.is(t, ","):
			wanted = true
		case wanted && (t.kind == nameToken || r.is(t, "*")):
			name := r.text(t)
			names = append(names, name)
			bound := name
			if i+2 < len(tokens) && r.is(tokens[i+1], "as") {
				bound = r.text(tokens[i+2])
			}
			r.module.aliases[bound] = module + "." + name
			wanted = false
		}
	}
	return names
}

// importedByCall adds what __import__("a") and importlib.import_module("a") name.
func (r *reader) importedByCall(c Call) {
	name := lastPart(c.Name)
	if name != "__import__" && name != "import_module" || len(c.Arguments) == 0 {
		return
	}
	module := c.Arguments[0].Literal
	if module == nil || *module == "" || strings.HasPrefix(*module, ".") || strings.ContainsAny(*module, " /\n") {
		return
	}
	optional, deferred, never := r.placed(nil)
	if !never {
		r.module.Imports = append(r.module.Imports, Import{Module: *module, Line: c.Line, Optional: optional, Deferred: deferred})
	}
}

// lastPart returns the part of a dotted name behind its last dot.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// rootOf returns the part of a dotted name before its first dot.
func rootOf(name string) string {
	root, _, _ := strings.Cut(name, ".")
	return root
}
