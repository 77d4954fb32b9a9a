package python

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxChoicesBytes bounds what is read of an option's choices.
const maxChoicesBytes = 4096

// ReadsNone is OpenEnded of a script that does not look at its command line.
const ReadsNone = "it does not read its command line itself"

// optionLibraries read the command line in other ways than argparse does.
var optionLibraries = []string{
	"click", "typer", "fire", "absl.flags", "absl.app", "tyro", "docopt", "getopt", "optparse", "simple_parsing", "jsonargparse",
	"configargparse", "hydra", "plac", "cleo", "cyclopts", "pydantic_settings", "tap", "clize", "argh", "defopt",
}

// optionCalls are calls that declare options otherwise.
var optionCalls = []string{"HfArgumentParser", "CliApp", "FlexibleArgumentParser", "parse_known_args", "parse_known_intermixed_args"}

// readOptions makes Options, OpenEnded and Abbreviates of the calls that were
// read. The first reason for OpenEnded, in the source's order, is the one given.
func (r *reader) readOptions() {
	m := &r.module
	parsers := r.countCalls("ArgumentParser")
	declared := r.countCalls("add_argument")
	switch {
	case m.Problem != "":
		m.OpenEnded = "it could not be read to its end"
	case parsers+declared == 0 || !r.importsArgparse():
		m.OpenEnded = r.withoutArgparse()
		return
	}
	subcommands := r.countCalls("add_parser", "add_subparsers") > 0
	m.Abbreviates, r.parsers.made = true, parsers > 0
	help := parsers > 0
	for i := range m.Calls {
		c := &m.Calls[i]
		switch lastPart(c.Name) {
		case "ArgumentParser":
			help = r.readParser(c) && help
		case "add_argument":
			r.addOption(c, parsers > 1 || subcommands)
		default:
			r.openedBy(c)
		}
	}
	if help {
		m.Options = append(m.Options, Option{Names: []string{"-h", "--help"}, Line: firstLine(m.Calls, "ArgumentParser")})
	}
	if subcommands {
		m.Options = append(m.Options, Option{Names: []string{"command"}, Positional: true, TakesValue: true, NArgs: "...",
			Line: firstLine(m.Calls, "add_subparsers")})
	}
	if r.parsers.subclassed > 0 {
		r.open(r.parsers.subclassed, "it has a parser class of its own")
	}
	if r.argv > 0 {
		r.open(r.argv, "it reads or changes sys.argv itself")
	}
}

// open gives a reason, unless there is one.
func (r *reader) open(line int, reason string) {
	if r.module.OpenEnded == "" {
		r.module.OpenEnded = fmt.Sprintf("line %d: %s", line, reason)
	}
}

func (r *reader) countCalls(names ...string) (n int) {
	for i := range r.module.Calls {
		if slices.Contains(names, lastPart(r.module.Calls[i].Name)) {
			n++
		}
	}
	return n
}

func firstLine(calls []Call, name string) int {
	for i := range calls {
		if lastPart(calls[i].Name) == name {
			return calls[i].Line
		}
	}
	return 0
}

// importsArgparse tells argparse's add_argument from others, as selenium's.
func (r *reader) importsArgparse() bool {
	return slices.ContainsFunc(r.module.Imports, func(i Import) bool {
		return i.Module == "argparse" || slices.Contains(i.Names, "ArgumentParser") || slices.Contains(i.Names, "FlexibleArgumentParser") ||
			r.library(i) != ""
	}) || r.countCalls("ArgumentParser") > 0
}

// library returns the library by which an import reads options, or "".
func (r *reader) library(i Import) string {
	for _, l := range optionLibraries {
		if i.Module == l || strings.HasPrefix(i.Module, l+".") {
			return l
		}
		for _, name := range i.Names {
			if i.Module+"."+name == l {
				return l
			}
		}
	}
	return ""
}

// withoutArgparse says why a script without argparse takes unknown options.
func (r *reader) withoutArgparse() string {
	for _, i := range r.module.Imports {
		if l := r.library(i); l != "" {
			return fmt.Sprintf("line %d: its options are those of %s", i.Line, l)
		}
		if i.Module == "sys" && slices.Contains(i.Names, "argv") {
			return fmt.Sprintf("line %d: it reads sys.argv itself", i.Line)
		}
	}
	for i := range r.module.Calls {
		c := &r.module.Calls[i]
		name := lastPart(c.Name)
		if slices.Contains(optionCalls, name) || strings.HasPrefix(name, "parse_args") && !r.module.defines[name] {
			return fmt.Sprintf("line %d: its options are those of %s", c.Line, c.Name)
		}
	}
	if r.readArgv {
		return "it reads sys.argv itself"
	}
	return ReadsNone
}

// readParser reads ArgumentParser(...) and reports whether it has -h.
func (r *reader) readParser(c *Call) (help bool) {
	for _, a := range c.Arguments {
		switch {
		case a.Keyword == "**":
			r.open(c.Line, "its parser's settings are computed")
		case a.Keyword == "fromfile_prefix_chars" && a.Text != "None":
			r.open(c.Line, "options may come from files (fromfile_prefix_chars)")
		case a.Keyword == "prefix_chars":
			r.open(c.Line, "options may begin with other characters than - (prefix_chars)")
		case a.Keyword == "allow_abbrev" && a.Text == "False":
			r.module.Abbreviates = false
		}
	}
	a, given := c.Keyword("add_help")
	return !given || a.Text == "True"
}

// addOption reads one add_argument call. With several parsers nobody knows which
// of them reads the command line: then nothing is required.
func (r *reader) addOption(c *Call, several bool) {
	o := Option{TakesValue: true, Line: c.Line}
	for _, a := range c.Arguments {
		switch {
		case a.Keyword == "" && a.Literal != nil:
			o.Names = append(o.Names, *a.Literal)
		case a.Keyword == "", a.Keyword == "*":
			r.open(c.Line, "names of options are computed")
			return
		case a.Keyword == "**":
			r.open(c.Line, "settings of options are computed")
		}
	}
	if len(o.Names) == 0 {
		r.open(c.Line, "an option has no name")
		return
	}
	o.Positional = !strings.HasPrefix(o.Names[0], "-")
	o.Required = o.Positional
	o.settings(c)
	if o.Positional && slices.Contains([]string{"?", "*", "..."}, o.NArgs) || several {
		o.Required = false
	}
	r.module.Options = append(r.module.Options, o)
}

// settings reads the keywords that matter on the command line.
func (o *Option) settings(c *Call) {
	for _, a := range c.Arguments {
		switch a.Keyword {
		case "action":
			o.action(a)
		case "required":
			o.Required = a.Text == "True"
		case "nargs":
			o.NArgs = nargs(a)
		case "default":
			o.Default = a.Text
		case "choices":
			o.Choices = stringList(a.Text)
		}
	}
	if o.Positional && !o.TakesValue {
		o.TakesValue, o.NArgs = true, "?"
	}
}

func (o *Option) action(a Argument) {
	if a.Literal == nil {
		if lastPart(a.Text) != "BooleanOptionalAction" {
			o.NArgs = "?" // an action class of its own: with or without a value
			return
		}
		o.TakesValue = false
		for _, name := range o.Names {
			if strings.HasPrefix(name, "--") {
				o.Names = append(o.Names, "--no-"+name[2:])
			}
		}
		return
	}
	switch *a.Literal {
	case "store_true", "store_false", "store_const", "append_const", "count", "help", "version":
		o.TakesValue = false
	}
}

// nargs returns argparse's spelling; "*" for what is computed.
func nargs(a Argument) string {
	switch {
	case a.Literal != nil:
		return *a.Literal
	case lastPart(a.Text) == "REMAINDER":
		return "..."
	case lastPart(a.Text) == "OPTIONAL":
		return "?"
	case lastPart(a.Text) == "ONE_OR_MORE":
		return "+"
	case a.Text == "None":
		return ""
	}
	if _, err := strconv.ParseUint(a.Text, 10, 16); err != nil {
		return "*"
	}
	return a.Text
}

// stringList returns the strings of a list or tuple of plain literals; nil for
// everything else.
func stringList(source string) []string {
	if len(source) > maxChoicesBytes || !strings.HasPrefix(source, "[") && !strings.HasPrefix(source, "(") && !strings.HasPrefix(source, "{") {
		return nil
	}
	t := tokenizer{src: source, line: 1}
	l, _ := t.next()
	if t.problem != "" || len(l.tokens) < 2 {
		return nil
	}
	var list []string
	for i, token := range l.tokens[1 : len(l.tokens)-1] {
		if i%2 == 1 {
			if source[token.start:token.end] != "," {
				return nil
			}
			continue
		}
		if token.kind != stringToken {
			return nil
		}
		text, plain := literalText(source[token.start:token.end])
		if !plain {
			return nil
		}
		list = append(list, text)
	}
	return list
}

// openedBy looks for calls by which a parser gets options from elsewhere, or is
// not given the command line.
func (r *reader) openedBy(c *Call) {
	name := lastPart(c.Name)
	switch {
	case slices.Contains(optionCalls, name):
		r.open(c.Line, c.Name+" takes other options too")
	case name == "parse_args" || name == "parse_intermixed_args":
		r.openedByParse(c)
	case r.module.defines[name]:
	default:
		for _, a := range c.Arguments {
			if _, parser := r.assigned[a.Text]; parser && r.isParser(a.Text) {
				r.open(c.Line, fmt.Sprintf("%s(%s) may add options", c.Name, a.Text))
			}
		}
	}
}

// isParser reports whether a name holds an argparse parser or group.
func (r *reader) isParser(name string) bool {
	switch lastPart(r.assigned[name]) {
	case "ArgumentParser", "add_argument_group", "add_mutually_exclusive_group", "add_parser":
		return true
	}
	return false
}

func (r *reader) openedByParse(c *Call) {
	receiver := strings.TrimSuffix(strings.TrimSuffix(c.Name, lastPart(c.Name)), ".")
	maker, known := r.assigned[receiver]
	switch {
	case receiver == "" && strings.HasPrefix(c.Name, "."): // ArgumentParser(...).parse_args(), make().parse_args()
	case receiver == "" && r.module.defines[c.Name]:
		return
	case receiver == "":
		r.open(c.Line, c.Name+" is another module's")
	case !known:
		if !r.parsers.made { // else it may be one of this module's, handed on
			r.open(c.Line, receiver+" is another module's parser")
		}
	case !r.isParser(receiver) && !r.module.defines[lastPart(maker)]:
		r.open(c.Line, fmt.Sprintf("%s comes from elsewhere and may have other options", receiver))
	}
	for _, a := range c.Arguments {
		if a.Keyword == "namespace" {
			continue
		}
		switch a.Text {
		case "sys.argv[1:]", "argv[1:]", "argv", "args", "None", "raw_args", "cli_args", "sys_args":
		default:
			r.open(c.Line, "what it parses is not the command line as it is")
		}
	}
}

// readArguments notes uses of sys.argv. Used whole it is what parse_args reads;
// taken apart or changed, the script takes what argparse does not know of.
func (r *reader) readArguments(tokens []token) {
	for i, t := range tokens {
		if i < 2 || !r.is(t, "argv") || !r.is(tokens[i-1], ".") || !r.is(tokens[i-2], "sys") {
			continue
		}
		after := func(n int) string {
			if i+n < len(tokens) {
				return r.text(tokens[i+n])
			}
			return ""
		}
		program := after(1) == "[" && after(2) == "0" && after(3) == "]"
		if !program {
			r.readArgv = true
		}
		changed := after(1) == "=" || after(1) == "+=" || after(1) == "." ||
			i > 2 && r.is(tokens[i-3], "in", "del") ||
			after(1) == "[" && after(3) == "]" && !program ||
			after(1) == "[" && after(4) == "]" && after(5) == "="
		if changed && r.argv == 0 {
			r.argv = int(t.line)
		}
	}
}
