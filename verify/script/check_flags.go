package script

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"slipway/verify/image"
	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

//go:embed flags/*.txt
var flagFiles embed.FS

// serverFlags are the options that a known server has in some release, and
// those that end the start of later ones.
type serverFlags struct {
	declared    python.Module // as if the server were a script of the submission
	underscores bool          // --max_model_len is --max-model-len
	removed     []removedFlag
}

type removedFlag struct{ option, release, remedy string }

// flagsOf reads the data of a server; ok is false where there is none. Each
// file says where its names were read, and what stands on its lines.
func flagsOf(server string) (f serverFlags, ok bool) {
	data, err := flagFiles.ReadFile("flags/" + server + ".txt")
	if err != nil {
		return f, false
	}
	f.declared = python.Module{Abbreviates: true, Options: []python.Option{{Names: []string{"words"}, Positional: true, NArgs: "*"}}}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch rest, removed := strings.CutPrefix(line, "removed "); {
		case removed:
			option, remedy, _ := strings.Cut(rest, ": ")
			release, option, _ := strings.Cut(option, " ")
			f.removed = append(f.removed, removedFlag{option, release, remedy})
		case line == "underscores":
			f.underscores = true
		case line == "whole names":
			f.declared.Abbreviates = false
		case strings.HasPrefix(line, "-"):
			f.declared.Options = append(f.declared.Options, declaredFlag(strings.Fields(line)))
		}
	}
	return f, true
}

// declaredFlag is an option of the words of a line: its names, and what follows
// them.
func declaredFlag(words []string) (o python.Option) {
	last := words[len(words)-1]
	switch {
	case strings.HasPrefix(last, "="):
		o.TakesValue, o.NArgs, words = true, last[1:], words[:len(words)-1]
	case last == "no":
		words = words[:len(words)-1]
		for _, name := range words {
			if strings.HasPrefix(name, "--") {
				o.Names = append(o.Names, "--no-"+name[2:])
			}
		}
	}
	o.Names = append(words, o.Names...)
	return o
}

// normal writes a command line as the server's parser reads it first. vllm takes
// --name.key VALUE for a part of a value that is JSON.
func (f serverFlags) normal(server string, args []string) (normal []string) {
	for i, word := range args {
		if word == "--" {
			return append(normal, args[i:]...)
		}
		if strings.HasPrefix(word, "--") {
			name, value, joined := strings.Cut(word, "=")
			if f.underscores {
				name = strings.ReplaceAll(name, "_", "-")
			}
			if server == "vllm" {
				name, _, _ = strings.Cut(name, ".")
			}
			if word = name; joined {
				word += "=" + value
			}
		}
		normal = append(normal, word)
	}
	return normal
}

// checkServerFlags looks at the command line of a well-known server. Where the
// submission ships the server's own wheel, an option that its source does not
// name is an error; elsewhere the version is not known, so that all but removed
// options are warnings.
func (a *analysis) checkServerFlags(server string, args []string, st *shell.Step, main bool) {
	flags, ok := flagsOf(server)
	if !ok {
		return
	}
	add := func(f shell.Finding) {
		f.Check, f.Path, f.Line = "C19", st.Path, st.Line
		a.add(f)
	}
	args = flags.normal(server, args)
	wheel, own := a.ownFlags(server)
	removed := map[string]bool{}
	for _, r := range flags.removed {
		if wheel == nil && !a.before(server, r.release) && slices.ContainsFunc(args, func(w string) bool { name, _, _ := strings.Cut(w, "="); return name == r.option }) {
			removed[r.option] = true
			add(shell.Finding{Warning: !main, Problem: fmt.Sprintf("%s has no option %s since its release %s and ends with unrecognized arguments", server, r.option, r.release), Hint: r.remedy})
		}
	}
	if wheel != nil {
		for _, f := range unknownFlags(own, args) {
			f.Warning, f.Problem = !main, fmt.Sprintf("%s of %s has no option %s and ends with unrecognized arguments", server, wheel.Path, f.Got)
			add(f)
		}
		return
	}
	for _, f := range checkArgv(flags.declared, args) {
		if removed[f.unknown] {
			continue
		}
		f.Warning, f.Problem, f.Want = true, strings.ReplaceAll(f.Problem, "SCRIPT", server), ""
		if f.unknown != "" {
			f.Problem = fmt.Sprintf("no release of %s that is known here has the option %s", server, f.unknown)
			f.Hint = "check it against the version that the grader has: " + server + " --help"
			if name := nearest(flags.declared, f.unknown); name != "" {
				f.Hint = fmt.Sprintf("it has %s: is that what is meant?", name)
			}
		}
		add(f.Finding)
	}
}

// before reports whether the version of a server is known to be an earlier one.
func (a *analysis) before(server, release string) bool {
	versions := a.versions(server)
	if version, installed, _ := a.options.Image.Installed(image.NormalName(server)); len(versions) == 0 && installed && version != "" {
		return versionBelow(version, release)
	}
	for version := range versions {
		if versionBelow(version, release) {
			return true
		}
	}
	return false
}

// serverSources are the files of well-known servers' wheels in which their
// options stand: files, and folders, whose names end in a slash.
var serverSources = map[string][]string{
	"vllm":      {"vllm/engine/arg_utils.py", "vllm/entrypoints/openai/cli_args.py", "vllm/entrypoints/openai/api_server.py", "vllm/entrypoints/cli/serve.py", "vllm/config.py", "vllm/config/", "vllm/utils/argparse_utils.py"},
	"sglang":    {"sglang/srt/server_args.py", "sglang/launch_server.py", "sglang/cli/serve.py", "sglang/cli/utils.py"},
	"lmdeploy":  {"lmdeploy/cli/utils.py", "lmdeploy/cli/serve.py"},
	"uvicorn":   {"uvicorn/main.py"},
	"gunicorn":  {"gunicorn/config.py"},
	"hypercorn": {"hypercorn/__main__.py"},
}

// neededSource is the one without which the others do not say the options.
func neededSource(server string) string { return serverSources[server][0] }

var (
	flagName  = regexp.MustCompile(`^--?[A-Za-z][A-Za-z0-9_-]*$`)
	fieldName = regexp.MustCompile(`(?m)^    ([a-z][a-z0-9_]*): `)
)

// ownFlags are the names that the source of a server's wheel has for options;
// nil where the submission ships no such wheel, several, or one whose source
// says nothing. They are more than the options there are: each text that could
// be one, and, since vllm derives options from them, the fields of its classes.
func (a *analysis) ownFlags(server string) (*Wheel, []string) {
	if serverSources[server] == nil {
		return nil, nil
	}
	var wheel *Wheel
	for i, w := range a.shippedWheels {
		if w.Distribution != server || w.Sources[neededSource(server)] == nil {
			continue
		}
		if wheel != nil {
			return nil, nil
		}
		wheel = &a.shippedWheels[i]
	}
	if wheel == nil {
		return nil, nil
	}
	names := []string{"--help", "-h"}
	for _, source := range wheel.Sources {
		for _, l := range python.Scan(source).Strings {
			for _, name := range strings.FieldsFunc(l.Text, func(r rune) bool { return r == '/' || r == ' ' || r == ',' }) {
				if flagName.MatchString(name) {
					names = append(names, name)
				}
			}
		}
		if server == "vllm" {
			for _, m := range fieldName.FindAllSubmatch(source, -1) {
				names = append(names, "--"+strings.ReplaceAll(string(m[1]), "_", "-"))
			}
		}
	}
	if len(names) < 10 {
		return nil, nil
	}
	slices.Sort(names)
	return wheel, slices.Compact(names)
}

// unknownFlags are the long options of a command line that are none of some
// names, nor the beginning of one, nor its --no- twin. Got is the option.
func unknownFlags(names, args []string) (findings []shell.Finding) {
	for _, word := range args {
		if word == "--" {
			break
		}
		if !strings.HasPrefix(word, "--") {
			continue
		}
		name, _, _ := strings.Cut(word, "=")
		if !shell.Known(name) {
			continue
		}
		positive := "--" + strings.TrimPrefix(name, "--no-")
		if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, name) || n == positive }) {
			continue
		}
		f := shell.Finding{Got: name, Hint: "leave it out, or ship the version that has it"}
		if near := nearestOf(names, name); near != "" {
			f.Hint = fmt.Sprintf("its source names %s: is that what is meant?", near)
		}
		findings = append(findings, f)
	}
	return findings
}
