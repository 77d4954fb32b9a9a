package verify

import (
	"fmt"
	"io/fs"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/report"
)

func decidePaths(e *evidence) outcome {
	var o outcome
	for _, fault := range e.tree.Faults {
		o.Fail(report.Finding{Path: fault.Path, Problem: fault.Detail, Hint: fault.Hint})
	}
	paths := make([]string, 0, len(e.tree.Files))
	for _, f := range e.tree.Files {
		paths = append(paths, f.Path)
		if f.Mode != manifest.ModeFile && f.Mode != manifest.ModeExecutable {
			o.Fail(report.Finding{Path: f.Path, Problem: "has another mode than the two that a bundle knows", Want: "0644 or 0755", Got: f.Mode.String(), Hint: "build the bundle again"})
		}
	}
	for _, err := range manifest.CheckPaths(paths) {
		o.Fail(report.Finding{Path: faultyPath(err, paths), Problem: err.Error(), Hint: "rename the file"})
	}
	if len(paths) == 0 {
		o.Fail(report.Finding{Problem: "there is no file", Hint: "name the folder that holds the submission"})
	}
	warnOfPrivate(&o, e.tree)
	return o
}

// warnOfPrivate names the first of each kind and mode: where one file has a mode,
// as by a umask, all of them may have it.
func warnOfPrivate(o *outcome, tree *content.Tree) {
	type kind struct {
		folder bool
		mode   fs.FileMode
	}
	first, count := map[kind]content.Private{}, map[kind]int{}
	var kinds []kind
	for _, p := range tree.Private {
		k := kind{strings.HasSuffix(p.Path, "/"), p.Mode}
		if count[k]++; count[k] == 1 {
			first[k], kinds = p, append(kinds, k)
		}
	}
	for _, k := range kinds {
		act, normal := "read", manifest.NormalMode(uint32(k.mode)).String()
		switch {
		case k.folder:
			act, normal = "enter", "0755"
		case k.mode&0o004 != 0:
			act = "execute"
		}
		problem := fmt.Sprintf("mode %04o: another user cannot %s it; an artifact has it as %s, a copied folder does not", k.mode, act, normal)
		if more := count[k] - 1; more > 0 {
			problem += fmt.Sprintf(" (and %d more of that mode)", more)
		}
		o.Warn(report.Finding{Path: first[k].Path, Problem: problem, Hint: "chmod -R a+rX the folder, if it is handed in as it lies"})
	}
}

// faultyPath finds the path that an error of CheckPaths quotes first.
func faultyPath(err error, paths []string) string {
	text := err.Error()
	best, at := "", len(text)
	for _, p := range paths {
		if i := strings.Index(text, p); i >= 0 && (i < at || i == at && len(p) > len(best)) {
			best, at = p, i
		}
	}
	return best
}
