package python

import (
	"regexp"
	"slices"
	"strings"
)

// ModelName is the name of a model on a hub that the source gives to a name: a
// variable, a parameter, a key of a dict, an option of the command line.
type ModelName struct {
	Text string // "org/name"; replacement fields of an f-string stay as they are written
	Line int
}

var (
	modelName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]+/(?:[A-Za-z0-9_.-]|\{[^{}"']*\})+$`)
	dataType  = regexp.MustCompile(`^(?:u?int|fp|bf|float|q|nf|v)[0-9]+$`)
	quoted    = regexp.MustCompile(`["']([^"'\s]+/[^"'\s]+)["']`)
)

// notOrganisations begin other texts of the form a/b: media types, folders of a
// machine, time zones.
var notOrganisations = setOf(`application text image audio video font multipart message model chemical http https file
	tmp usr home opt proc dev var etc lib bin sys mnt root run srv data refs heads tests
	America Europe Asia Africa Australia Pacific Atlantic Indian Antarctica Etc`)

// fileSuffixes end the names of files.
var fileSuffixes = []string{".safetensors", ".json", ".jsonl", ".py", ".txt", ".bin", ".gguf", ".so", ".md", ".pt", ".pth", ".npz", ".npy",
	".onnx", ".yaml", ".yml", ".toml", ".sh", ".html", ".css", ".js", ".png", ".jpg", ".jpeg", ".csv", ".whl", ".gz", ".zip", ".log", ".parquet", ".jinja", ".model", ".cu", ".hpp"}

// IsModelName reports whether a text has the form of a hub's org/name, and not
// that of a media type, a file, a date, a data type or a route.
func IsModelName(text string) bool {
	if len(text) > 200 || !modelName.MatchString(text) {
		return false
	}
	organisation, name, _ := strings.Cut(text, "/")
	switch {
	case notOrganisations[organisation], dataType.MatchString(strings.ToLower(organisation)), len(name) < 2:
		return false
	case slices.ContainsFunc(fileSuffixes, func(s string) bool { return strings.HasSuffix(strings.ToLower(name), s) }):
		return false
	}
	return strings.ContainsFunc(name, func(c rune) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }) // 2026, 1.1
}

// readNames notes the model names of a logical line by what they are given to, and
// which name takes the value of another.
func (r *reader) readNames(tokens []token) {
	for i, t := range tokens {
		if t.kind != stringToken || t.end-t.start > 200 || !strings.Contains(r.text(t), "/") {
			continue
		}
		text, _ := literalText(r.text(t))
		if !IsModelName(text) {
			continue
		}
		if owner := r.owner(tokens[:i]); owner != "" {
			r.module.addName(owner, ModelName{text, int(t.line)})
		}
	}
	if target, value := r.target(tokens); target != "" && len(tokens) < 16 && tokens[value].kind == nameToken && tokens[len(tokens)-1].kind != stringToken {
		if from := NameOf(r.joined(tokens[value:])); from != "" && from != NameOf(target) {
			if r.module.takes == nil {
				r.module.takes = map[string]string{}
			}
			r.module.takes[NameOf(target)] = from
		}
	}
}

// owner returns what the value behind some tokens is given to, as NameOf has it:
// the nearest name or key on the way out of its brackets.
func (r *reader) owner(tokens []token) string {
	tokens = tokens[max(0, len(tokens)-maxReach):]
	depth := 0
	for i := len(tokens) - 1; i > 0; i-- {
		switch {
		case r.is(tokens[i], ")", "]", "}"):
			depth++
		case r.is(tokens[i], "(", "[", "{"):
			depth = max(0, depth-1)
		case depth == 0 && r.is(tokens[i], ":") && tokens[i-1].kind == stringToken:
			text, _ := literalText(r.text(tokens[i-1]))
			return "[" + text
		case depth == 0 && r.is(tokens[i], "="):
			return r.assignee(tokens[:i])
		}
	}
	return ""
}

// assignee returns the name in front of an equals sign, its annotation left out.
func (r *reader) assignee(tokens []token) string {
	depth, start := 0, len(tokens)
	for ; start > 0; start-- {
		t := tokens[start-1]
		if r.is(t, ")", "]", "}") {
			depth++
		} else if r.is(t, "(", "[", "{") {
			depth--
		}
		if depth < 0 || depth == 0 && r.is(t, ",", ";") {
			break
		}
	}
	segment := tokens[start:]
	if start == 0 && r.is(tokens[0], compound...) { // its body stands on its line
		segment = segment[r.headerEnd(tokens):]
	}
	if colon := slices.IndexFunc(segment, func(t token) bool { return r.is(t, ":") }); colon >= 0 {
		segment = segment[:colon]
	}
	return NameOf(r.joined(segment))
}

// headerEnd returns where the body of a compound statement begins on its line.
func (r *reader) headerEnd(tokens []token) int {
	depth := 0
	for i, t := range tokens {
		switch {
		case r.is(t, "(", "[", "{"):
			depth++
		case r.is(t, ")", "]", "}"):
			depth--
		case depth == 0 && r.is(t, ":"):
			return i + 1
		}
	}
	return 0
}

// NameOf is what a dotted name or subscript is known by: its last part, which is
// "[" and the key of a subscript by a plain string. It is "" of other expressions.
func NameOf(expression string) string {
	if open := strings.LastIndexByte(expression, '['); open > 0 && strings.HasSuffix(expression, "]") {
		key := strings.Trim(expression[open+1:len(expression)-1], `"'`)
		if len(key)+2 == len(expression)-open-2 {
			return "[" + key
		}
		return ""
	}
	if strings.ContainsFunc(expression, func(c rune) bool { return c < 0x80 && c != '.' && !startsName(byte(c)) && !isDigit(byte(c)) }) {
		return ""
	}
	return lastPart(expression)
}

// readOptionNames notes the model names that options of the command line default to.
func (m *Module) readOptionNames() {
	for i := range m.Calls {
		c := &m.Calls[i]
		value, ok := c.Keyword("default")
		if lastPart(c.Name) != "add_argument" || !ok || value.Literal == nil || !IsModelName(*value.Literal) {
			continue
		}
		name := ""
		for _, a := range c.Arguments {
			if a.Keyword == "dest" && a.Literal != nil {
				name = *a.Literal
				break
			}
			if a.Keyword == "" && a.Literal != nil && (name == "" || strings.HasPrefix(*a.Literal, "--") && len(name) == 1) {
				name = strings.ReplaceAll(strings.TrimLeft(*a.Literal, "-"), "-", "_")
			}
		}
		m.addName(name, ModelName{*value.Literal, c.Line})
	}
}

func (m *Module) addName(owner string, n ModelName) {
	if m.names == nil {
		m.names = map[string][]ModelName{}
	}
	m.names[owner] = append(m.names[owner], n)
}

// ModelNames lists the model names that the value of an expression may be, by the
// names in it: those that stand in it, and those that the module gives to its name.
func (m *Module) ModelNames(expression string, line int) (found []ModelName) {
	for _, match := range quoted.FindAllStringSubmatch(expression, -1) {
		if IsModelName(match[1]) {
			found = append(found, ModelName{match[1], line})
		}
	}
	name := NameOf(strings.Join(strings.Fields(expression), ""))
	for range maxTakes {
		if name == "" {
			break
		}
		found = append(found, m.names[name]...)
		name = m.takes[name]
	}
	return found
}

const (
	maxTakes = 4   // names that a value is followed through
	maxReach = 256 // tokens between a value and what it is given to
)
