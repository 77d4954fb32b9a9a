package script

import (
	"fmt"
	"slices"

	"slipway/verify/script/shell"
)

// checkQuestions looks for Python that asks somebody at a terminal. In a function
// it may be for other uses of the module; a debugger is for none.
func (a *analysis) checkQuestions() {
	for _, m := range a.withInline() {
		for _, c := range m.parsed.Calls {
			asks := slices.Contains([]string{"input", "getpass", "getpass.getpass", "code.interact"}, c.Name) && !m.parsed.Defines(c.Name)
			debugs := slices.Contains([]string{"breakpoint", "pdb.set_trace", "ipdb.set_trace"}, c.Name)
			if !m.main || !debugs && (!asks || c.Deferred) {
				continue
			}
			f := shell.Finding{Check: "C18", Warning: !m.started || c.Optional, Path: m.path, Line: c.Line,
				Problem: fmt.Sprintf("%s waits for an answer, and nobody gives one", c.Name), Hint: "take the value from a variable with a default"}
			if debugs {
				f.Problem, f.Hint = fmt.Sprintf("%s starts a debugger, and nobody is there", c.Name), "leave it out"
			}
			a.add(f)
		}
	}
}
