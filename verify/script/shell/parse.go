package shell

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// MaxScriptBytes bounds the scripts that are interpreted: parsing is recursive.
const MaxScriptBytes = 64 << 10

// FirstLine returns the text up to the first newline.
func FirstLine(data []byte) string {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return string(line)
}

// Interpreter reads a script's first line: the program that it asks for, by what
// stands behind env, and that program's options. Both are empty without a #! line.
func Interpreter(data []byte) (program string, options []string) {
	line, asks := strings.CutPrefix(strings.TrimRight(FirstLine(data), "\r"), "#!")
	words := strings.Fields(line)
	if !asks || len(words) == 0 {
		return "", nil
	}
	if path.Base(words[0]) == "env" {
		words = words[1:]
		for len(words) > 0 && (strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=")) {
			words = words[1:]
		}
		if len(words) == 0 {
			return "", nil
		}
	}
	return words[0], words[1:]
}

// language is what a script's first line asks for.
func language(data []byte) syntax.LangVariant {
	program, _ := Interpreter(data)
	if slices.Contains([]string{"sh", "dash", "ash"}, path.Base(program)) {
		return syntax.LangPOSIX
	}
	return syntax.LangBash
}

// firstLineOptions sets what the first line gives its shell, as in #!/bin/bash -e.
func (s *shell) firstLineOptions(data []byte) {
	_, options := Interpreter(data)
	for i, word := range options {
		if word == "-o" && i+1 < len(options) {
			s.option(options[i+1], true)
		}
		if strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") {
			for _, letter := range word[1:] {
				s.option(string(letter), true)
			}
		}
	}
}

// ParseScript parses in the language of the first line. What only bash
// understands under a plain sh is a problem, and parsed all the same.
func ParseScript(p string, data []byte) (file *syntax.File, problem string, line int) {
	if TooDeep(data) {
		return nil, "nests its brackets too deeply to be read", 0
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	file, err := syntax.NewParser(syntax.Variant(language(data))).Parse(bytes.NewReader(data), p)
	if err == nil {
		return file, "", 0
	}
	if language(data) == syntax.LangPOSIX {
		if bash, bashErr := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(data), p); bashErr == nil {
			text, at := parseProblem(err)
			return bash, "is bash under a first line that asks for sh: " + text, at
		}
	}
	text, at := parseProblem(err)
	return nil, "is no valid shell script: " + text, at
}

func parseProblem(err error) (text string, line int) {
	var parse syntax.ParseError
	var lang syntax.LangError
	switch {
	case errors.As(err, &parse):
		return parse.Text, int(parse.Pos.Line())
	case errors.As(err, &lang):
		return lang.Feature + " is not part of it", int(lang.Pos.Line())
	}
	return err.Error(), 0
}

// TooDeep bounds what the recursive parser is given.
func TooDeep(data []byte) bool {
	depth := 0
	for _, b := range data {
		switch b {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth = max(0, depth-1)
		}
		if depth > 300 {
			return true
		}
	}
	return false
}
