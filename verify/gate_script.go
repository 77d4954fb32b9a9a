package verify

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/script"
	"slipway/verify/script/shell"
)

// Bounds of the text files that are kept for gate script.
const (
	maxTextBytes      = 1 << 20  // of one file
	maxExtensionless  = 64 << 10 // of one without an extension: a script, else a program
	maxKeptTextsBytes = 64 << 20 // of all together
)

// scriptExtensions are those of files that say what a start does.
var scriptExtensions = []string{".sh", ".bash", ".py", ".json", ".toml", ".cfg", ".ini", ".txt", ".yaml", ".yml", ".env", ".pth"}

// isText reports whether a file's bytes are kept for the gate.
func isText(p string, size int64) bool {
	switch extension := path.Ext(p); {
	case slices.Contains(scriptExtensions, strings.ToLower(extension)):
		return size <= maxTextBytes
	case extension == "":
		return size <= maxExtensionless
	}
	return false
}

// decideScript asks what serve.sh would do, without running it.
func decideScript(e *evidence) outcome {
	switch f, there := e.facts[script.EntryPath]; {
	case !there:
		return outcome{report.Outcome{Status: report.NotApplicable, Notes: []string{"there is no " + script.EntryPath + ": where the task requires it, see gate files"}}}
	case f.Err != nil:
		return undecided(script.EntryPath + " could not be read: see gate digests")
	}
	a, profile := e.analyse(), e.options.Profile
	var o outcome
	if a.Undecided != "" {
		o = undecided(a.Undecided)
	}
	for _, f := range a.Findings {
		finding := report.Finding{Path: f.Path, Problem: f.Problem, Want: f.Want, Got: f.Got, Hint: f.Hint}
		if f.Line > 0 {
			finding.Problem = fmt.Sprintf("line %d: %s", f.Line, f.Problem)
		}
		if f.Warning {
			o.Warn(finding)
		} else {
			o.Fail(finding)
		}
	}
	for _, text := range a.Notes {
		o.Note("%s", text)
	}
	if profile.Image == nil && a.Undecided == "" {
		o.Note("the grader's machine is not described: what depends on it was not checked (--image)")
	}
	return o
}

// analyse follows serve.sh, once for all gates that ask.
func (e *evidence) analyse() *script.Analysis {
	if e.script != nil {
		return e.script
	}
	s := script.Submission{Wheels: e.sub.started}
	for _, f := range e.tree.Files {
		file := shell.File{Path: f.Path, Size: f.Size, Executable: f.Mode == manifest.ModeExecutable, Data: e.sub.texts[f.Path]}
		if facts := e.facts[f.Path]; facts != nil {
			file.Head = facts.Head
		}
		s.Files = append(s.Files, file)
	}
	profile := e.options.Profile
	a := script.Analyse(s, script.Options{Image: profile.Image, Port: profile.Load.Port, StartSeconds: profile.Load.StartSeconds, BodyBytes: profile.Load.BodyBytes})
	e.script = &a
	return e.script
}
