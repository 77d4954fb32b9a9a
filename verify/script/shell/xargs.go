package shell

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// xargsValued are the options of xargs whose value may be a word of its own.
const xargsValued = "-a --arg-file -d --delimiter -E -I -L --max-lines -n --max-args -P --max-procs -s --max-chars --process-slot-var"

// xargs starts its program with the words that it reads, as far as these are
// known; what is not known is one word more. Source: POSIX, xargs, and the manual
// of GNU's.
func (s *shell) xargs(args []string, given map[string]string, at syntax.Node) {
	options, program := xargsOptions(args[1:])
	if len(program) == 0 {
		program = []string{"echo"}
	}
	text, known := s.input, s.hasInput && Known(s.input)
	if file := options["-a"]; file != "" {
		n, there := s.run.Tree.Get(s.absolute(file))
		if known = Known(file) && there == Yes && n.Data != nil; known {
			text = clip(string(n.Data))
		}
	}
	words := strings.Fields(text)
	switch delimiter, given := options["-d"]; {
	case !known || len(text) >= maxTextBytes:
		words = []string{Unknown}
	case options["-0"] != "":
		words = strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
	case given && (delimiter == `\n` || delimiter == "\n") || options["-I"] != "":
		words = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	case given || strings.ContainsAny(text, `"'\`):
		words = []string{Unknown}
	}
	if len(words) == 0 && options["-r"] != "" {
		return
	}
	if s.hasInput { // the program's own input is another
		s.input, s.inputLine, s.hasInput = "", 0, true
	}
	for _, line := range commandLines(program, words, options) {
		s.status = 0
		if name := path.Base(line[0]); name == "echo" || name == "printf" {
			s.status = builtins[name](s, line[1:], at)
			continue
		}
		line = slices.Clone(line)
		s.externalWith(line, given, at)
	}
	if s.status != 0 && s.status < 126 {
		s.status = 123
	}
}

// externalWith starts a program with variables that are given to it.
func (s *shell) externalWith(args []string, given map[string]string, at syntax.Node) {
	if len(given) > 0 {
		words := []string{"env"}
		for name, value := range given {
			words = append(words, name+"="+value)
		}
		slices.Sort(words[1:])
		args = append(words, args...)
	}
	s.external(args, at, false)
}

// xargsOptions reads the options in front of the program, by their short names.
func xargsOptions(words []string) (options map[string]string, program []string) {
	options = map[string]string{}
	short := map[string]string{"--arg-file": "-a", "--delimiter": "-d", "--max-lines": "-L", "--max-args": "-n", "--null": "-0", "--no-run-if-empty": "-r"}
	for len(words) > 0 && strings.HasPrefix(words[0], "-") && words[0] != "-" {
		option, value, joined := strings.Cut(words[0], "=")
		if words = words[1:]; option == "--" {
			break
		}
		if !strings.HasPrefix(option, "--") && len(option) > 2 && slices.Contains(strings.Fields(xargsValued), option[:2]) {
			value, option, joined = strings.TrimPrefix(option+"="+value, option[:2]), option[:2], true
			value = strings.TrimSuffix(value, "=")
		}
		if !joined && slices.Contains(strings.Fields(xargsValued), option) && len(words) > 0 {
			value, words = words[0], words[1:]
		}
		if name, long := short[option]; long {
			option = name
		}
		if value == "" {
			value = "yes"
		}
		options[option] = value
	}
	return options, words
}

// commandLines are those that xargs makes of a program and the words that it reads.
func commandLines(program, words []string, options map[string]string) (lines [][]string) {
	if mark := options["-I"]; mark != "" {
		for _, word := range words[:min(len(words), maxLoop)] {
			line := slices.Clone(program)
			for i := range line {
				line[i] = strings.ReplaceAll(line[i], mark, strings.TrimLeft(word, " \t"))
			}
			lines = append(lines, line)
		}
		return lines
	}
	most, err := strconv.Atoi(options["-n"])
	if err != nil || most < 1 || len(words) == 0 {
		return [][]string{slices.Concat(program, words)}
	}
	for chunk := range slices.Chunk(words, most) {
		if lines = append(lines, slices.Concat(program, chunk)); len(lines) == maxLoop {
			break
		}
	}
	return lines
}
