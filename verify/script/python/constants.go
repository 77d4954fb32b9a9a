package python

import (
	"slices"
	"strings"
)

// Variable is a use of os.environ["NAME"], which fails where NAME is not set.
type Variable struct {
	Name string
	Line int
}

// readConstant notes a name that the module itself assigns a plain string, and
// forgets one that is assigned, or is a parameter, anywhere else.
func (r *reader) readConstant(tokens []token) {
	if r.is(tokens[0], "def", "class", "async", "for", "global", "with", "lambda") {
		for _, t := range tokens {
			if t.kind == nameToken {
				r.bound[r.text(t)]++
			}
		}
		return
	}
	equals := slices.IndexFunc(tokens[:min(len(tokens), 64)], func(t token) bool { return r.is(t, "=", "+=", "(") })
	if equals < 1 || r.is(tokens[equals], "(") {
		return
	}
	for _, t := range tokens[:equals] {
		if t.kind == nameToken {
			r.bound[r.text(t)]++
		}
	}
	plain := equals == 1 || r.is(tokens[1], ":")
	if value := r.plainString(tokens[equals+1:]); plain && len(r.blocks) == 0 && r.is(tokens[equals], "=") && value != nil && equals+1 < len(tokens) {
		r.constants[r.text(tokens[0])] = *value
	}
}

// constantsOnce are the constants that were bound once.
func (r *reader) constantsOnce() map[string]string {
	once := map[string]string{}
	for name, value := range r.constants {
		if r.bound[name] == 1 {
			once[name] = value
		}
	}
	return once
}

// readEnvironment notes variables of the environment that the module uses as it
// is imported, and those that it sets itself.
func (r *reader) readEnvironment(tokens []token) {
	optional, _, never := r.placed(nil)
	guarded := optional || never || slices.ContainsFunc(tokens, func(t token) bool { return r.is(t, "if", "lambda", "def", "del", "try") })
	for i := 0; i+3 < len(tokens); i++ {
		if !r.is(tokens[i], "environ") || !r.is(tokens[i+1], "[") || !r.is(tokens[i+3], "]") || tokens[i+2].kind != stringToken {
			continue
		}
		name, plain := literalText(r.text(tokens[i+2]))
		switch {
		case !plain:
		case i+4 < len(tokens) && r.is(tokens[i+4], "=", "+="):
			setting := Setting{Name: name, Line: int(tokens[i].line)}
			if r.is(tokens[i+4], "=") && i+5 < len(tokens) {
				setting.Value = r.plainString(tokens[i+5:])
			}
			r.module.Sets = append(r.module.Sets, setting)
		case !guarded && (i == 0 || i > 1 && r.is(tokens[i-1], ".") && r.is(tokens[i-2], "os") || !r.is(tokens[i-1], ".")):
			r.module.Environment = append(r.module.Environment, Variable{name, int(tokens[i].line)})
		}
	}
	for _, c := range r.module.Calls[r.calls:] {
		if name := c.Name; strings.HasSuffix(name, "environ.setdefault") || strings.HasSuffix(name, "putenv") {
			if len(c.Arguments) > 0 && c.Arguments[0].Literal != nil {
				setting := Setting{Name: *c.Arguments[0].Literal, Line: c.Line}
				if len(c.Arguments) > 1 {
					setting.Value = c.Arguments[1].Literal
				}
				r.module.Sets = append(r.module.Sets, setting)
			}
		}
		if strings.HasSuffix(c.Name, "environ.update") || strings.HasSuffix(c.Name, "load_dotenv") {
			r.module.SetsMore = true
		}
	}
	r.calls = len(r.module.Calls)
}
