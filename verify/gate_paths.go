package verify

import (
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
)

func decidePaths(e *evidence) outcome {
	var o outcome
	for _, fault := range e.tree.Faults {
		o.fail(report.Finding{Path: fault.Path, Problem: fault.Detail, Hint: fault.Hint})
	}
	paths := make([]string, 0, len(e.tree.Files))
	for _, f := range e.tree.Files {
		paths = append(paths, f.Path)
		if f.Mode != manifest.ModeFile && f.Mode != manifest.ModeExecutable {
			o.fail(report.Finding{Path: f.Path, Problem: "has another mode than the two that a bundle knows", Want: "0644 or 0755", Got: f.Mode.String(), Hint: "build the bundle again"})
		}
	}
	for _, err := range manifest.CheckPaths(paths) {
		o.fail(report.Finding{Path: faultyPath(err, paths), Problem: err.Error(), Hint: "rename the file"})
	}
	if len(paths) == 0 {
		o.fail(report.Finding{Problem: "there is no file", Hint: "name the folder that holds the submission"})
	}
	for _, f := range e.tree.Files {
		if f.Path == "serve.sh" && f.Mode != manifest.ModeExecutable {
			o.warn(report.Finding{Path: f.Path, Problem: "is not executable", Hint: "chmod +x serve.sh"})
		}
	}
	return o
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
