package script

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// checkArguments holds each command line of a shipped Python script against the
// options that the script declares, and those of well-known servers against
// what they are known to take.
func (a *analysis) checkArguments() {
	a.allSteps(func(r *shell.Run, st *shell.Step, main bool) {
		if name, args := serverOf(st.Argv); name != "" {
			a.checkServerFlags(name, args, st, main)
		}
		if a.checkWheelArguments(r, st, main) {
			return
		}
		p, ok := a.pythonOf(r, st)
		if !ok {
			return
		}
		a.checkScriptThere(r, st, p, main)
		file := a.moduleOf(r, st, p)
		n := a.tree.Submitted(file)
		if n == nil || n.Data == nil {
			return
		}
		m := python.Scan(n.Data)
		if m.Problem != "" {
			a.add(shell.Finding{Check: "C19", Warning: true, Path: file, Problem: "is started as Python and cannot be read as such: " + m.Problem})
		}
		if m.OpenEnded == python.ReadsNone {
			return // what it is given does no harm
		}
		if m.OpenEnded != "" {
			if len(p.Args) > 0 {
				a.note(fmt.Sprintf("the options of %s were not checked: %s", file, m.OpenEnded))
			}
			return
		}
		a.addArgumentFaults(m, file, p.Args, st, main)
	})
}

// addArgumentFaults holds a command line against what a file declares.
func (a *analysis) addArgumentFaults(m python.Module, file string, args []string, st *shell.Step, main bool) {
	for _, f := range checkArgv(m, args) {
		f.Check, f.Path, f.Line, f.Warning = "C19", st.Path, st.Line, !main
		f.Problem = strings.ReplaceAll(f.Problem, "SCRIPT", file)
		a.add(f.Finding)
	}
}

// checkScriptThere reports a script that is not shipped.
func (a *analysis) checkScriptThere(r *shell.Run, st *shell.Step, p shell.PythonStart, main bool) {
	if p.File == "" || p.File == "-" || !shell.Known(p.File) || st.Tested && !st.Exec && st != a.server {
		return
	}
	at := absoluteIn(st.Folder, p.File)
	n, there := r.Tree.Get(at)
	switch {
	case there == shell.No:
		a.add(shell.Finding{Check: "C20", Warning: !main, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("starts %s, which is not there", shell.Shown(r.Tree.Relative(at))),
			Hint: "ship it, or name the file that is shipped"})
	case n.Folder && r.Tree.Within(at):
		if m, _ := r.Tree.Get(path.Join(at, "__main__.py")); m == nil {
			a.add(shell.Finding{Check: "C20", Warning: !main, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("starts the folder %s, which has no __main__.py", shell.Shown(r.Tree.Relative(at)))})
		}
	}
}

// argumentFault is what argparse would not take. "SCRIPT" stands in its texts for
// the script's path.
type argumentFault struct {
	shell.Finding
	unknown string // the option that is not declared, or ""
}

// checkArgv reads a command line as argparse does.
func checkArgv(m python.Module, args []string) (findings []argumentFault) {
	given := map[*python.Option]bool{}
	add := func(list ...shell.Finding) {
		for _, f := range list {
			findings = append(findings, argumentFault{Finding: f})
		}
	}
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
		case !shell.Known(word):
			return findings // what comes here is not known, nor what follows
		}
		o, problem := findOption(m, word)
		if problem != "" {
			strange = true // what follows may be its value
			findings = append(findings, optionFault(m, word, problem))
			continue
		}
		if o == nil {
			return findings
		}
		given[o] = true
		name, value, joined := strings.Cut(word, "=")
		switch {
		case joined && !o.TakesValue:
			add(shell.Finding{Problem: fmt.Sprintf("SCRIPT: %s takes no value", name), Got: shell.Shown(word)})
		case joined:
			add(checkChoice(o, name, value)...)
		case len(word) > 2 && word[1] != '-' && !slices.Contains(o.Names, word): // -p8000, or several letters
		case o.TakesValue:
			n := takes(o, args[i+1:], m)
			if n < 0 {
				add(shell.Finding{Problem: fmt.Sprintf("SCRIPT: %s lacks its value", word), Got: shell.Shown(strings.Join(args, " "))})
				continue
			}
			for _, value := range args[i+1 : i+1+n] {
				add(checkChoice(o, word, value)...)
			}
			i += n
		}
	}
	if strange {
		positionals = 0
	}
	add(checkCount(m, given, positionals, strange, args)...)
	for i := range findings {
		findings[i].Want = strings.ReplaceAll(findings[i].Want, "SCRIPT", "the script")
	}
	return findings
}

// optionFault is a word that names no option, or several.
func optionFault(m python.Module, word, problem string) argumentFault {
	name, _, _ := strings.Cut(word, "=")
	f := argumentFault{Finding: shell.Finding{Problem: problem, Want: "an option that SCRIPT declares", Hint: nearestHint(m, name)}}
	if strings.Contains(problem, unrecognized) {
		f.unknown = name
	}
	return f
}

// checkCount looks at what is required and at words without an option.
func checkCount(m python.Module, given map[*python.Option]bool, positionals int, strange bool, args []string) (findings []shell.Finding) {
	least, most := 0, 0
	for i := range m.Options {
		o := &m.Options[i]
		if !o.Positional {
			if o.Required && !given[o] {
				findings = append(findings, shell.Finding{Problem: fmt.Sprintf("SCRIPT: the required option %s is not given", strings.Join(o.Names, "/")),
					Got: shell.Shown(strings.Join(args, " ")), Hint: "give it on that line"})
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
	strange = strange || slices.ContainsFunc(args, func(w string) bool { return !shell.Known(w) })
	switch {
	case strange:
	case positionals > most:
		findings = append(findings, shell.Finding{Problem: fmt.Sprintf("SCRIPT: unrecognized arguments: it takes %d words without an option and is given %d", most, positionals),
			Got: shell.Shown(strings.Join(args, " "))})
	case positionals < least:
		findings = append(findings, shell.Finding{Problem: fmt.Sprintf("SCRIPT: it requires %d words without an option and is given %d", least, positionals),
			Got: shell.Shown(strings.Join(args, " "))})
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
		return nil, fmt.Sprintf("SCRIPT: %s could be %s", shell.Shown(name), strings.Join(names, " or "))
	}
	if len(word) > 2 && word[1] != '-' {
		for i := range m.Options {
			if slices.Contains(m.Options[i].Names, word[:2]) {
				return &m.Options[i], ""
			}
		}
	}
	return nil, "SCRIPT: " + unrecognized + shell.Shown(name)
}

// unrecognized is what argparse says of an option that nobody declared.
const unrecognized = "unrecognized arguments: "

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

func checkChoice(o *python.Option, name, value string) []shell.Finding {
	if o.Choices == nil || slices.Contains(o.Choices, value) || !shell.Known(value) {
		return nil
	}
	return []shell.Finding{{Problem: fmt.Sprintf("SCRIPT: %s does not take %q", name, shell.Shown(value)), Want: strings.Join(o.Choices, ", "), Got: shell.Shown(value)}}
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
