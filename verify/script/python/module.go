// Package python reads Python source without running it, as far as a check of a
// submission needs: which command-line options a script takes, what it imports,
// what it calls and with which arguments, and which strings it holds; and it
// knows which distributions and programs such calls need beyond what is
// imported. It works on tokens and logical lines, in one pass over the source.
//
// What cannot be known that way is said to be unknown, never guessed: a script
// whose options are computed is OpenEnded, an import that may not happen is
// Optional. A source that is no Python at all has a Problem.
package python

import (
	"fmt"
	"slices"
	"strings"
)

// maxSourceBytes bounds what is scanned; a token takes 16 bytes.
const maxSourceBytes = 4 << 20

// Module is what one source file says.
type Module struct {
	Options []Option // of argparse, in order; those of subcommands too
	// OpenEnded says why the script may take other options than Options; "" where
	// it takes these and no others.
	OpenEnded string
	// Abbreviates: a long option may be cut to any unambiguous beginning, which
	// is argparse's default.
	Abbreviates bool

	Imports []Import
	Calls   []Call
	Strings []Literal // docstrings left out; adjacent literals as one
	Tables  []Table   // data that is written out in the source

	Constants   map[string]string // names of the module that are bound once, to a plain string
	Environment []Variable        // variables without which the module's import fails
	Sets        []Setting         // variables that the module sets itself
	SetsMore    bool              // it sets others, which cannot be told

	Problem string // why the source is no Python; what comes before it was read

	defines map[string]bool   // functions and classes
	aliases map[string]string // names that imports bind, and what they are
	keys    []key
	names   map[string][]ModelName // by what they are given to, as NameOf has it
	takes   map[string]string      // names that take the value of another
	shown   map[string]bool        // dicts by name: whether the source shows all their keys
}

// Option is what one add_argument call declares, by argparse's rules.
type Option struct {
	Names      []string // "--port", "-p"; of a positional argument its one name
	Positional bool
	Required   bool
	TakesValue bool
	NArgs      string   // as argparse has it: "", "?", "*", "+", "2", "..." (the rest)
	Choices    []string // nil: any
	Default    string   // its source, "" where there is none
	Line       int
}

// Setting is a variable of the environment that a module sets. Value is nil where
// it is no plain string.
type Setting struct {
	Name  string
	Value *string
	Line  int
}

// Import is one imported module. Of "from a import b" it is a.
type Import struct {
	Module   string   // "a.b"; ".a" and "..a" where it is relative
	Names    []string // what is imported from it; "*" for all
	Line     int
	Optional bool // below try, a condition or a loop, or in a function's body
	Deferred bool // in a function's body, and below nothing else that makes it optional
}

// Call is a call, or a decorator, which is one.
type Call struct {
	Name      string // dotted as written: "AutoModel.from_pretrained"; ".to" where a call's result is called upon
	Arguments []Argument
	Within    []string // calls of the with statements around it, and those whose result a name in them has, outermost first
	Line      int
	Optional  bool // as an import's
	Deferred  bool // as an import's

	in function
}

// Argument is one argument of a call.
type Argument struct {
	Keyword string  // "*" and "**" for unpacked ones
	Text    string  // its source
	Literal *string // its value where it is a plain string literal
}

// Literal is a string of the source. An f-string's replacement fields stay as
// they are written.
type Literal struct {
	Text string
	Line int
}

// Table is a statement with much literal data in it.
type Table struct {
	Pairs   int // of a string, ":" and a string, list or tuple
	Numbers int // in lists, tuples and dicts
	Line    int
}

// From how many on a statement's literals make a Table.
const (
	tablePairs   = 100
	tableNumbers = 1000
)

// Keyword returns the argument of a keyword.
func (c *Call) Keyword(name string) (Argument, bool) {
	for _, a := range c.Arguments {
		if a.Keyword == name {
			return a, true
		}
	}
	return Argument{}, false
}

// Defines reports whether the module has a function or class of a name.
func (m *Module) Defines(name string) bool { return m.defines[name] }

// Scan reads a source file: text that Python 3.8 to 3.14 would accept gives no
// Problem. It never fails, takes time linear in the source's size, and holds on
// to the source.
func Scan(source []byte) Module {
	if len(source) > maxSourceBytes {
		return Module{Problem: fmt.Sprintf("its %d bytes are more than is read of a source file", len(source)),
			OpenEnded: "it was not read"}
	}
	r := reader{src: trimMark(string(source)), module: Module{defines: map[string]bool{}, aliases: map[string]string{}}, bound: map[string]int{}, constants: map[string]string{}}
	r.wantsKeys = slices.ContainsFunc(telling, func(word string) bool { return strings.Contains(r.src, word) })
	t := tokenizer{src: r.src, line: 1}
	for {
		line, ok := t.next()
		if !ok {
			break
		}
		r.logicalLine(line)
	}
	r.module.Problem = t.problem
	r.module.Constants = r.constantsOnce()
	r.readOptions()
	r.module.readOptionNames()
	return r.module
}

// trimMark drops a UTF-8 byte order mark.
func trimMark(source string) string {
	const mark = "\ufeff"
	if len(source) >= len(mark) && source[:len(mark)] == mark {
		return source[len(mark):]
	}
	return source
}

// MoveLines gives everything the line that a function makes of its own: of a
// source that stands in another file.
func (m *Module) MoveLines(moved func(line int) int) {
	for i := range m.Options {
		m.Options[i].Line = moved(m.Options[i].Line)
	}
	for i := range m.Imports {
		m.Imports[i].Line = moved(m.Imports[i].Line)
	}
	for i := range m.Calls {
		m.Calls[i].Line = moved(m.Calls[i].Line)
	}
	for i := range m.Strings {
		m.Strings[i].Line = moved(m.Strings[i].Line)
	}
	for i := range m.Tables {
		m.Tables[i].Line = moved(m.Tables[i].Line)
	}
	for i := range m.Sets {
		m.Sets[i].Line = moved(m.Sets[i].Line)
	}
	for _, names := range m.names {
		for i := range names {
			names[i].Line = moved(names[i].Line)
		}
	}
	for i := range m.Environment {
		m.Environment[i].Line = moved(m.Environment[i].Line)
	}
}
