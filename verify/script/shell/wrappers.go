package shell

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// launch is a program behind env, nohup and their like, and what these change.
type launch struct {
	args     []string
	given    map[string]string
	unset    []string
	cleared  bool     // it gets no variables but those that are given
	folder   string   // in which it runs, "." for that of the shell
	limit    string   // of timeout
	forks    bool     // it is left in the background
	session  bool     // it is given a session of its own
	wrappers []string // as called
}

// wrappers start another program: how many of their own words follow each.
var wrappers = map[string]struct {
	valued string // options that take a value
	words  int    // words before the program
}{
	"env": {"-u -C -S --unset --chdir", 0}, "nohup": {}, "setsid": {}, "time": {"-f -o", 0}, "exec": {"-a", 0},
	"nice": {"-n --adjustment", 0}, "ionice": {"-c -n -p", 0}, "stdbuf": {"-i -o -e", 0}, "timeout": {"-k -s --signal --kill-after", 1},
	"numactl": {"-m -N -C --cpunodebind --membind --interleave --physcpubind", 0}, "taskset": {"-c", 1}, "chrt": {"", 1}, "tini": {"-e -p", 0}, "dumb-init": {"-r", 0},
	"sudo": {"-u -g", 0}, "unbuffer": {}, "catchsegv": {}, "prlimit": {}, "flock": {"-w -E", 1}, "gosu": {"", 1}, "su-exec": {"", 1}, "setpriv": {}, "xvfb-run": {"-n -s -e -f -p -w", 0},
}

// runners start a program of an environment with "run": their options that take
// a value. Sources: the documentation of conda, mamba, uv, poetry, pdm and pipenv.
var runners = map[string]string{
	"conda": "-n --name -p --prefix --cwd", "mamba": "-n --name -p --prefix --cwd", "micromamba": "-n --name -p --prefix --cwd -r --root-prefix -e --env -a --attach",
	"uv":     "-p --python --with --with-requirements --project --directory --extra --group --env-file --index --default-index --find-links -f --cache-dir --python-platform",
	"poetry": "-C --directory -P --project", "pdm": "-p --project -s --site-packages", "pipenv": "--python --pypi-mirror",
}

// unwrap reads a command line that starts another.
func unwrap(args []string) launch {
	l := launch{args: args, given: map[string]string{}, folder: "."}
	for len(l.args) > 0 {
		name := path.Base(l.args[0])
		w, ok := wrappers[name]
		if valued, runs := runners[name]; runs && len(l.args) > 2 && l.args[1] == "run" {
			l.run(name, valued)
			continue
		}
		if !ok {
			return l
		}
		l.wrappers = append(l.wrappers, l.args[0])
		l.session = l.session || name == "setsid"
		rest := l.options(name, l.args[1:], w.valued)
		for len(rest) > 0 && name == "env" {
			variable, value, assigned := strings.Cut(rest[0], "=")
			if !assigned || !syntax.ValidName(variable) {
				break
			}
			l.given[variable] = value
			rest = rest[1:]
		}
		if name == "timeout" && len(rest) > 0 {
			l.limit = rest[0]
		}
		l.args = rest[min(len(rest), w.words):]
	}
	return l
}

// options steps over a wrapper's own options, and reads those of env.
func (l *launch) options(name string, rest []string, valued string) []string {
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		option, value, joined := strings.Cut(rest[0], "=")
		rest = rest[1:]
		if option == "--" {
			break
		}
		if !joined && slices.Contains(strings.Fields(valued), option) && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		l.forks = l.forks || option == "--fork"
		if name != "env" {
			continue
		}
		switch option {
		case "-i", "-", "--ignore-environment":
			l.cleared = true
		case "-u", "--unset":
			l.unset = append(l.unset, value)
		case "-C", "--chdir":
			l.folder = value
		}
	}
	return rest
}

// run steps over "conda run" and its like. uv takes a script or a module too.
func (l *launch) run(name, valued string) {
	l.wrappers = append(l.wrappers, l.args[0])
	rest := l.args[2:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && !(name == "uv" && (rest[0] == "-m" || rest[0] == "--module")) {
		option := rest[0]
		if rest = rest[1:]; option == "--" {
			break
		}
		if slices.Contains(strings.Fields(valued), option) && len(rest) > 0 {
			rest = rest[1:]
		}
	}
	if name == "uv" && len(rest) > 0 {
		switch {
		case rest[0] == "-m" || rest[0] == "--module":
			rest = append([]string{"python3", "-m"}, rest[1:]...)
		case strings.HasSuffix(rest[0], ".py"):
			rest = append([]string{"python3"}, rest...)
		}
	}
	l.args = rest
}

// environment is what is left of the shell's variables.
func (l *launch) environment(variables map[string]expand.Variable) map[string]expand.Variable {
	if !l.cleared && len(l.unset) == 0 {
		return variables
	}
	left := maps.Clone(variables)
	for name, v := range variables {
		if l.cleared && v.Exported || slices.Contains(l.unset, name) {
			delete(left, name)
		}
	}
	return left
}

// lacksWrapper reports a wrapper that the image is known not to have.
func (s *shell) lacksWrapper(l launch, replaces bool) bool {
	for _, name := range l.wrappers {
		if base := path.Base(name); base == "exec" || base == "time" || strings.Contains(name, "/") {
			continue
		}
		if _, there := s.search(name); there != No {
			continue
		}
		s.status = 127
		if s.tested == 0 {
			s.run.find(Finding{Check: "C20", Path: s.path, Line: s.line(), Problem: "calls " + Shown(name) + ", which the grader's image does not have",
				Hint: "do without it, or ship it"})
		}
		s.record(l.args, l.given, replaces)
		return true
	}
	return false
}
