package script

import (
	"fmt"
	"slices"

	"slipway/verify/script/shell"
)

// givenVariables are set on every machine that starts a container.
var givenVariables = []string{"SUBMISSION_DIR", "HOME", "PATH", "PWD", "HOSTNAME", "SHLVL", "OLDPWD", "_"}

// launcherVariables are set by those that start several processes.
var launcherVariables = []string{"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}

// checkVariables looks for variables without which a module's import fails and
// that neither the grader nor the start sets.
func (a *analysis) checkVariables() {
	set := map[string]bool{}
	for _, name := range slices.Concat(givenVariables, launcherVariables) {
		set[name] = true
	}
	for _, st := range a.main.Steps {
		for name := range st.Variables {
			set[name] = true
		}
	}
	for _, m := range a.modules {
		if m.parsed.SetsMore {
			return
		}
		for _, setting := range m.parsed.Sets {
			set[setting.Name] = true
		}
	}
	for _, m := range a.withInline() {
		for _, v := range m.parsed.Environment {
			if set[v.Name] || !m.main {
				continue
			}
			a.add(shell.Finding{Check: "C21", Warning: !m.started, Path: m.path, Line: v.Line,
				Problem: fmt.Sprintf("needs the variable %s, which neither the grader nor serve.sh sets", v.Name),
				Got:     fmt.Sprintf("KeyError: %q, as the module is imported", v.Name), Hint: fmt.Sprintf("export it in serve.sh, or say os.environ.get(%q, ...)", v.Name)})
		}
	}
}
