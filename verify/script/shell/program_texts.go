package shell

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// passesOn is a program that writes as long as it reads.
func passesOn(p program) program {
	if p == nil {
		p = printsUnknown
	}
	return func(s *shell, args []string) Answer {
		files := Operands(args, "")
		s.pours = slices.ContainsFunc(files, func(w string) bool { return slices.Contains(endlessFiles, s.absolute(w)) }) ||
			s.endless && (len(files) == 0 || path.Base(args[0]) != "cat")
		return p(s, args)
	}
}

func cat(s *shell, args []string) Answer {
	words := Operands(args, "")
	if len(words) == 0 {
		s.print(s.input)
	}
	for _, word := range words {
		n, there := s.run.Tree.Get(s.absolute(word))
		switch {
		case word == "-":
			s.print(s.input)
		case there == No:
			s.missing(word, s.absolute(word))
			return No
		case n.Data == nil:
			s.print(Unknown)
		default:
			s.print(clip(string(n.Data)))
		}
	}
	return Yes
}

// ends is head and tail of what is piped in.
func ends(s *shell, args []string) Answer {
	if len(Operands(args, "-n -c")) > 0 || !Known(s.input) {
		s.print(Unknown + "\n")
		return Yes
	}
	n := 10
	for i, a := range args[1:] {
		if value, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "n")); err == nil && (strings.HasPrefix(a, "-") || args[i] == "-n") {
			n = max(0, value)
		}
	}
	lines := strings.SplitAfter(strings.TrimSuffix(s.input, "\n"), "\n")
	if n = min(n, len(lines)); path.Base(args[0]) == "tail" {
		lines = lines[len(lines)-n:]
	} else {
		lines = lines[:n]
	}
	s.print(strings.Join(lines, ""))
	return Yes
}

func same(s *shell, args []string) Answer {
	if s.hasInput && len(Operands(args, "-k -t")) == 0 && len(args) == 1 {
		lines := strings.SplitAfter(s.input, "\n")
		slices.Sort(lines)
		s.print(strings.Join(lines, ""))
		return Yes
	}
	return printsUnknown(s, args)
}

func count(s *shell, args []string) Answer {
	if s.hasInput && Known(s.input) && len(args) == 2 && args[1] == "-l" {
		s.print(strconv.Itoa(strings.Count(s.input, "\n")) + "\n")
		return Yes
	}
	return printsUnknown(s, args)
}

// grep finds a plain word in what is known; of others it may find nothing.
func grep(s *shell, args []string) Answer {
	quiet := has(args, "--quiet", 'q') || has(args, "--silent", 'q')
	words := Operands(args, "")
	text, known := s.input, s.hasInput && Known(s.input)
	if len(words) == 2 {
		n, there := s.run.Tree.Get(s.absolute(words[1]))
		text, known = "", there == Yes && (s.absolute(words[1]) == "/dev/null" || n.Data != nil)
		if known {
			text = string(n.Data)
		}
	}
	if len(words) < 1 || len(words) > 2 || slices.ContainsFunc(args[1:], unknownToGrep) || !known || len(text) >= maxTextBytes || !plainWord.MatchString(words[0]) {
		if !quiet {
			s.print(Unknown + "\n")
		}
		return perhapsYes
	}
	others, counts := has(args, "--invert-match", 'v'), has(args, "--count", 'c')
	fold := func(text string) string { return text }
	if has(args, "--ignore-case", 'i') {
		fold = strings.ToLower
	}
	found := 0
	for line := range strings.Lines(text) {
		if strings.Contains(fold(line), fold(words[0])) != others {
			if found++; !quiet && !counts {
				s.print(strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	if counts && !quiet {
		s.print(strconv.Itoa(found) + "\n")
	}
	return IsTrue(found > 0)
}

// unknownToGrep reports whether a word is an option that grep does not follow.
func unknownToGrep(word string) bool {
	if !strings.HasPrefix(word, "-") {
		return false
	}
	return strings.Trim(word, "-qFEvci") != "" && !slices.Contains([]string{"--quiet", "--silent", "--invert-match", "--count", "--ignore-case"}, word)
}

// plainWord matches what is no regular expression but itself.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_/:@%,=-]+$`)

// expression is expr of two whole numbers: it fails where the result is 0.
func expression(s *shell, args []string) Answer {
	if len(args) == 4 {
		a, errA := strconv.Atoi(args[1])
		b, errB := strconv.Atoi(args[3])
		results := map[string]int{"+": a + b, "-": a - b, "*": a * b}
		if result, ok := results[args[2]]; ok && errA == nil && errB == nil {
			s.print(strconv.Itoa(result) + "\n")
			return IsTrue(result != 0)
		}
	}
	return printsUnknown(s, args)
}
