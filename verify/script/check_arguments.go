package script

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"slipway/verify/script/python"
)

// module is a Python file that the submission's commands reach.
type module struct {
	path   string // relative to the root
	parsed python.Module
	main   bool // started by the main path
}

// moduleOf returns the file behind a start of Python, relative to the root, or "".
func (a *analysis) moduleOf(r *run, st *step, p pythonStart) string {
	if p.file != "" && p.file != "-" {
		n, _ := r.tree.get(absoluteIn(st.folder, p.file))
		if n != nil && !n.folder {
			return n.source
		}
		return ""
	}
	if p.module == "" {
		return ""
	}
	rest := strings.ReplaceAll(p.module, ".", "/")
	for _, folder := range append([]string{st.folder}, strings.Split(st.Variables["PYTHONPATH"], ":")...) {
		for _, suffix := range []string{".py", "/__main__.py"} {
			if n, _ := r.tree.get(absoluteIn(st.folder, path.Join(folder, rest+suffix))); n != nil && n.source != "" {
				return n.source
			}
		}
	}
	return ""
}

// checkArguments holds each command line of a shipped Python script against the
// options that the script declares, and those of well-known servers against
// what they are known to take.
func (a *analysis) checkArguments() {
	a.allSteps(func(r *run, st *step, main bool) {
		if name, args := serverOf(st.Argv); name != "" {
			a.checkServerFlags(name, args, st, main)
		}
		p, ok := a.pythonOf(r, st)
		if !ok {
			return
		}
		a.checkScriptThere(r, st, p, main)
		file := a.moduleOf(r, st, p)
		n := a.tree.submitted(file)
		if n == nil || n.data == nil {
			return
		}
		m := python.Scan(n.data)
		if m.Problem != "" {
			a.add(Finding{Check: "C19", Warning: true, Path: file, Problem: "is started as Python and cannot be read as such: " + m.Problem})
		}
		if m.OpenEnded == python.ReadsNone {
			return // what it is given does no harm
		}
		if m.OpenEnded != "" {
			if len(p.args) > 0 {
				a.note(fmt.Sprintf("the options of %s were not checked: %s", file, m.OpenEnded))
			}
			return
		}
		for _, f := range checkArgv(m, p.args) {
			f.Check, f.Path, f.Line, f.Warning = "C19", st.Path, st.Line, !main
			f.Problem = strings.ReplaceAll(f.Problem, "SCRIPT", file)
			a.add(f)
		}
	})
}

// checkScriptThere reports a script that is not shipped.
func (a *analysis) checkScriptThere(r *run, st *step, p pythonStart, main bool) {
	if p.file == "" || p.file == "-" || !known(p.file) || st.tested && !st.Exec && st != a.server {
		return
	}
	at := absoluteIn(st.folder, p.file)
	n, there := r.tree.get(at)
	switch {
	case there == no:
		a.add(Finding{Check: "C20", Warning: !main, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("starts %s, which is not there", shown(r.tree.relative(at))),
			Hint: "ship it, or name the file that is shipped"})
	case n.folder && r.tree.within(at):
		if m, _ := r.tree.get(path.Join(at, "__main__.py")); m == nil {
			a.add(Finding{Check: "C20", Warning: !main, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("starts the folder %s, which has no __main__.py", shown(r.tree.relative(at)))})
		}
	}
}

// checkArgv reads a command line as argparse does. "SCRIPT" stands for the
// script's path in what it finds.
func checkArgv(m python.Module, args []string) (findings []Finding) {
	given := map[*python.Option]bool{}
	positionals, rest, strange := 0, false, false
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case rest || !strings.HasPrefix(word, "-") || word == "-" || isNumber(word) && !hasNumericOption(m):
			positionals++
			continue
		case word == "--":
			rest = true
			continue
		case !known(word):
			return findings // what comes here is not known, nor what follows
		}
		o, problem := findOption(m, word)
		if problem != "" {
			strange = true // what follows may be its value
			findings = append(findings, Finding{Problem: problem, Want: "an option that SCRIPT declares", Got: "", Hint: nearest(m, word)})
			continue
		}
		if o == nil {
			return findings
		}
		given[o] = true
		name, value, joined := strings.Cut(word, "=")
		switch {
		case joined && !o.TakesValue:
			findings = append(findings, Finding{Problem: fmt.Sprintf("SCRIPT: %s takes no value", name), Got: shown(word)})
		case joined:
			findings = append(findings, checkChoice(o, name, value)...)
		case len(word) > 2 && word[1] != '-' && !slices.Contains(o.Names, word): // -p8000, or several letters
		case o.TakesValue:
			n := takes(o, args[i+1:], m)
			if n < 0 {
				findings = append(findings, Finding{Problem: fmt.Sprintf("SCRIPT: %s lacks its value", word), Got: shown(strings.Join(args, " "))})
				continue
			}
			for _, value := range args[i+1 : i+1+n] {
				findings = append(findings, checkChoice(o, word, value)...)
			}
			i += n
		}
	}
	if strange {
		positionals = 0
	}
	findings = append(findings, checkCount(m, given, positionals, strange, args)...)
	for i := range findings {
		findings[i].Want = strings.ReplaceAll(findings[i].Want, "SCRIPT", "the script")
	}
	return findings
}

// checkCount looks at what is required and at words without an option.
func checkCount(m python.Module, given map[*python.Option]bool, positionals int, strange bool, args []string) (findings []Finding) {
	least, most := 0, 0
	for i := range m.Options {
		o := &m.Options[i]
		if !o.Positional {
			if o.Required && !given[o] {
				findings = append(findings, Finding{Problem: fmt.Sprintf("SCRIPT: the required option %s is not given", strings.Join(o.Names, "/")),
					Got: shown(strings.Join(args, " ")), Hint: "give it on that line"})
			}
			continue
		}
		n, err := strconv.Atoi(o.NArgs)
		switch {
		case o.NArgs == "":
			n = 1
		case o.NArgs == "?":
			n = 1
		case err != nil:
			n = 1 << 20
		}
		most += n
		if o.Required {
			least += map[bool]int{true: n, false: 1}[n < 1<<20]
		}
	}
	strange = strange || slices.ContainsFunc(args, func(w string) bool { return !known(w) })
	switch {
	case strange:
	case positionals > most:
		findings = append(findings, Finding{Problem: fmt.Sprintf("SCRIPT: unrecognized arguments: it takes %d words without an option and is given %d", most, positionals),
			Got: shown(strings.Join(args, " "))})
	case positionals < least:
		findings = append(findings, Finding{Problem: fmt.Sprintf("SCRIPT: it requires %d words without an option and is given %d", least, positionals),
			Got: shown(strings.Join(args, " "))})
	}
	return findings
}

// findOption returns the option that a word names: in full, with a value, as an
// unambiguous beginning, or as letters run together. Nil without a problem:
// cannot be told.
func findOption(m python.Module, word string) (*python.Option, string) {
	name, _, _ := strings.Cut(word, "=")
	for i := range m.Options {
		if o := &m.Options[i]; !o.Positional && (slices.Contains(o.Names, word) || slices.Contains(o.Names, name)) {
			return o, ""
		}
	}
	var found []*python.Option
	var names []string
	for i := range m.Options {
		for _, full := range m.Options[i].Names {
			if m.Abbreviates && strings.HasPrefix(full, name) && strings.HasPrefix(full, "-") && len(name) > 2 {
				if names = append(names, full); !slices.Contains(found, &m.Options[i]) {
					found = append(found, &m.Options[i])
				}
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], ""
	case len(found) > 1:
		return nil, fmt.Sprintf("SCRIPT: %s could be %s", shown(name), strings.Join(names, " or "))
	}
	if len(word) > 2 && word[1] != '-' {
		for i := range m.Options {
			if slices.Contains(m.Options[i].Names, word[:2]) {
				return &m.Options[i], ""
			}
		}
	}
	return nil, fmt.Sprintf("SCRIPT: unrecognized arguments: %s", shown(name))
}

// takes returns how many words an option takes of those that follow; -1 where
// it gets too few.
func takes(o *python.Option, rest []string, m python.Module) int {
	free := 0
	for free < len(rest) && (!strings.HasPrefix(rest[free], "-") || rest[free] == "-" || isNumber(rest[free]) && !hasNumericOption(m)) {
		free++
	}
	switch o.NArgs {
	case "":
		if free < 1 {
			return -1
		}
		return 1
	case "?":
		return min(1, free)
	case "*":
		return free
	case "+":
		if free < 1 {
			return -1
		}
		return free
	case "...":
		return len(rest)
	}
	n, err := strconv.Atoi(o.NArgs)
	if err != nil {
		return free
	}
	if free < n {
		return -1
	}
	return n
}

func checkChoice(o *python.Option, name, value string) []Finding {
	if o.Choices == nil || slices.Contains(o.Choices, value) || !known(value) {
		return nil
	}
	return []Finding{{Problem: fmt.Sprintf("SCRIPT: %s does not take %q", name, shown(value)), Want: strings.Join(o.Choices, ", "), Got: shown(value)}}
}

func isNumber(word string) bool {
	_, err := strconv.ParseFloat(word, 64)
	return err == nil
}

func hasNumericOption(m python.Module) bool {
	return slices.ContainsFunc(m.Options, func(o python.Option) bool {
		return slices.ContainsFunc(o.Names, func(n string) bool { return !o.Positional && isNumber(n) })
	})
}

// nearest is a hint at the declared option that is most like a word.
func nearest(m python.Module, word string) string {
	word, _, _ = strings.Cut(word, "=")
	best, distance := "", len(word)/2+1
	for _, o := range m.Options {
		for _, name := range o.Names {
			if d := editDistance(word, name); !o.Positional && d < distance {
				best, distance = name, d
			}
		}
	}
	if best == "" {
		return "ship the script of the same version as serve.sh, or leave the option out"
	}
	return "the script declares " + best + ": is that what is meant, or are the two of different versions?"
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
