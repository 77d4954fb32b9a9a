package boot

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"slipway/verify/boot/sandbox"
	"slipway/verify/report"
	"slipway/verify/words"
)

// judgeInstall decides whether what is shipped of Python was all there for the
// start: wheels that are installed, command lines that the scripts take, modules
// that can be imported.
func (o *observed) judgeInstall() verdict {
	var v verdict
	switch {
	case !o.rehearsal.shipsPython():
		v.Status, v.Notes = report.NotApplicable, []string{"the submission ships neither wheels nor Python code"}
		return v
	case o.trace == nil:
		return undecided("what serve.sh starts could not be seen: %s", o.untraced())
	case o.first.machines:
		return undecided("%s", o.blocked())
	}
	installs := o.judgeInstallers(&v)
	o.judgeArguments(&v)
	o.judgeImports(&v)
	switch {
	case v.Failed():
	case !installs && len(o.python.programs) == 0:
		v.Status, v.Notes = report.NotApplicable, append(v.Notes, "serve.sh starts no Python and no installer")
	case !o.first.healthy():
		return v.open("the server did not become healthy: see gate startup")
	case o.python.modules.Gone:
		v.Note("not all imports were tried: %s", o.python.modules.Open)
	case o.python.modules.Open != "":
		return v.open("not all imports were tried: %s", o.python.modules.Open)
	}
	return v
}

// shipsPython reports whether the submission has anything that could be missing
// for a Python server.
func (r *Rehearsal) shipsPython() bool {
	for _, f := range r.Files {
		if strings.HasSuffix(f.Path, ".py") || isWheel(f.Path) {
			return true
		}
	}
	return false
}

func isWheel(name string) bool { return strings.HasSuffix(name, ".whl") }

// judgeInstallers says how long installing took, and of a start that it ended
// why. It reports whether anything was installed.
func (o *observed) judgeInstallers(v *verdict) bool {
	last := -1
	var first time.Duration
	for i, p := range o.trace.Programs {
		if isInstaller(strings.Join(p.Argv, " ")) {
			if last < 0 {
				first = p.At
			}
			last = i
		}
	}
	if last < 0 {
		return o.noteWheels(v)
	}
	if o.first.healthy() {
		took := max(o.installed(last)-first, 0)
		v.Note("installing took %s, %.0f%% of the start of %s", rounded(took), 100*took.Seconds()/o.first.Healthy, rounded(seconds(o.first.Healthy)))
		return true
	}
	if c, line, ok := findCauseAmong(installCauses, o.first.log); ok {
		v.Fail(report.Finding{Path: serveScript, Problem: "an installer failed: " + c.means, Got: line, Hint: c.remedy})
		return true
	}
	started := func(p sandbox.Program) bool { return p.Python != nil || within(p.Path, o.at) }
	if !slices.ContainsFunc(o.trace.Programs[last+1:], started) { // the installer was the last thing that was tried
		f := failedStart(o.first, "all that is shipped installed, offline")
		f.Problem = "an installer failed: " + f.Problem
		if f.Hint == "" {
			f.Hint = "the end of the log says why; the installer was given: " + strings.Join(o.trace.Programs[last].Argv, " ")
		}
		v.Fail(f)
	}
	return true
}

// installCauses are those of causes that installing is to blame for.
var installCauses = slices.DeleteFunc(slices.Clone(causes), func(c cause) bool { return !c.install })

// noteWheels says when wheels were read where no known installer was started.
func (o *observed) noteWheels(v *verdict) bool {
	var first, last time.Duration
	n := 0
	for _, f := range o.trace.Opened {
		if f.Exists && isWheel(f.Path) {
			if n++; n == 1 {
				first = f.At
			}
			last = f.At
		}
	}
	if n > 0 && o.first.healthy() {
		v.Note("opened %s in %s of the start of %s, by no known installer", words.Plural(n, "wheel"), rounded(last-first), rounded(seconds(o.first.Healthy)))
	}
	return n > 0
}

// installed is the time from the start to the end of the last installer: when one
// was last seen to run, else when something else was started after it, else all
// of the start.
func (o *observed) installed(last int) time.Duration {
	after := o.trace.Programs[last+1:]
	switch {
	case o.first.installed > o.trace.Programs[last].At:
		return o.first.installed
	case len(after) > 0:
		return after[0].At
	}
	return seconds(o.first.Healthy)
}

// watchInstallers remembers that an installer runs.
func (s *session) watchInstallers(o *startOutcome) {
	commands, err := s.place.alive()
	if err == nil && slices.ContainsFunc(commands, isInstaller) {
		o.installed = time.Since(s.began)
	}
}

// isInstaller reports whether a command line installs Python packages, or unpacks
// wheels.
func isInstaller(command string) bool {
	words := strings.Fields(command)
	for i, word := range words {
		switch name := path.Base(word); {
		case strings.HasPrefix(name, "pip") || name == "uv" || name == "conda" || name == "mamba":
			if slices.Contains(words[i:], "install") || slices.Contains(words[i:], "sync") {
				return true
			}
		case name == "unzip" || name == "bsdtar" || name == "zipfile" || name == "installer":
			if slices.ContainsFunc(words[i:], isWheel) {
				return true
			}
		}
	}
	return false
}

// judgeArguments holds command lines against what the scripts themselves make of
// them.
func (o *observed) judgeArguments(v *verdict) {
	alone := map[string][]string{}
	for _, p := range o.python.programs {
		name, given := o.relative(p.program.Path()), strings.Join(p.program.Args, " ")
		if name == "" {
			name = p.program.Text()
		}
		switch a := p.arguments; {
		case a.Refused != "" && o.first.healthy():
			v.Warn(report.Finding{Path: serveScript, Problem: fmt.Sprintf("%s does not take the arguments that it was started with, now that the start is over: %s", name, a.Refused),
				Got: given, Hint: "the start became healthy all the same: look whether it goes on without what this program should have done; if the program looks at something that is gone by now, as a temporary file, this says nothing"})
		case a.Refused != "":
			v.Fail(report.Finding{Path: serveScript, Problem: fmt.Sprintf("%s does not take the arguments that it is started with: %s", name, a.Refused),
				Got: given, Hint: "give it what its --help says, or ship the version of it that serve.sh is written for"})
		case a.Help != "":
			v.Warn(report.Finding{Path: name, Problem: "--help ends in an exception: " + a.Help, Hint: "a % in a help text is written %%"})
		case a.Alone != "":
			alone[a.Alone] = append(alone[a.Alone], name)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(alone)) {
		v.Note("the arguments of %s were not tried: %s", strings.Join(alone[why], ", "), why)
	}
}
