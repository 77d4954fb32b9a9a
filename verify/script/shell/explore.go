package shell

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Explore interprets a script as if everything succeeded, then once more for
// each failure that it provides for. Its file's name is its path below the
// tree's root. undecided says why not all was followed, or is "".
func Explore(file *syntax.File, t *Tree) (main *Run, branches []*Run, undecided string) {
	main = Interpret(file, t, nil, t.Root)
	var plans []map[string]int
	schedule := func(r *Run, forced map[string]int) {
		if len(forced) >= maxConditions {
			return
		}
		for _, d := range r.open {
			if _, done := forced[d.key]; done {
				continue
			}
			for choice := 1; choice < d.choices; choice++ {
				next := maps.Clone(forced)
				if next == nil {
					next = map[string]int{}
				}
				next[d.key] = choice
				plans = append(plans, next)
			}
		}
	}
	schedule(main, nil)
	planned := map[string]bool{}
	steps, followed := main.count, 0
	for ; followed < len(plans) && len(branches) < maxRuns && steps < maxAllSteps; followed++ {
		i := followed
		key := fmt.Sprint(plans[i])
		if planned[key] {
			continue
		}
		planned[key] = true
		r := Interpret(file, t, plans[i], t.Root)
		steps += r.count
		if len(r.Taken) < len(plans[i]) {
			continue // one of the points is not reached this way
		}
		branches = append(branches, r)
		schedule(newOnly(main, r), plans[i])
	}
	if followed < len(plans) || len(branches) >= maxRuns {
		undecided = fmt.Sprintf("%s has more branches than are followed, which are %d: of the others nothing is known", file.Name, len(branches))
	}
	return main, branches, undecided
}

// newOnly leaves the decisions that the main path does not have: those of both
// are planned from there.
func newOnly(main, r *Run) *Run {
	only := &Run{}
	for _, d := range r.open {
		if !slices.ContainsFunc(main.open, func(m decision) bool { return m.key == d.key }) {
			only.open = append(only.open, d)
		}
	}
	return only
}

// Interpret runs a script once, from a folder, with the decisions that are
// forced: nil for those of success.
func Interpret(file *syntax.File, t *Tree, forced map[string]int, folder string) *Run {
	r := newRun(t, forced)
	s := &shell{
		run: r, variables: map[string]expand.Variable{}, functions: map[string]function{},
		name: path.Join(r.Tree.Root, file.Name), folder: folder, path: file.Name,
		language: language(t.Submitted(file.Name).Data),
	}
	for name, value := range map[string]string{
		"SUBMISSION_DIR": r.Tree.Root, "HOME": r.Tree.Home(), "PWD": folder,
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	} {
		s.variables[name] = expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: value}
	}
	s.given = maps.Clone(s.variables)
	s.firstLineOptions(t.Submitted(file.Name).Data)
	s.statements(file.Stmts)
	r.Status = s.status
	return r
}
