package script

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/verify/script/shell"
)

// networkOf names what a command needs the network for; "" where it needs none.
func networkOf(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	name := path.Base(argv[0])
	sub := ""
	if words := shell.Operands(argv, ""); len(words) > 0 {
		sub = words[0]
	}
	switch name {
	case "curl", "wget", "aria2c":
		if !slices.ContainsFunc(argv[1:], isRemote) && slices.ContainsFunc(argv[1:], isLocal) {
			return ""
		}
		return name
	case "apt", "apt-get", "yum", "dnf", "apk", "conda", "mamba", "micromamba", "npm", "brew":
		if slices.Contains([]string{"install", "update", "upgrade", "add", "create", "i"}, sub) {
			return name + " " + sub
		}
	case "git":
		if slices.Contains([]string{"clone", "pull", "fetch", "lfs", "submodule"}, sub) {
			return "git " + sub
		}
	case "huggingface-cli", "hf", "modelscope":
		if slices.Contains([]string{"download", "login", "upload", "repo"}, sub) {
			return name + " " + sub
		}
	case "nc", "ncat", "netcat", "telnet":
		if words := shell.Operands(argv, "-w -p -s -x -X"); len(words) > 0 && shell.Known(words[0]) && !isLoopback(words[0]) && !listens(argv) {
			return name
		}
	case "llama-server":
		for _, word := range argv[1:] {
			if option, _, _ := strings.Cut(word, "="); slices.Contains(fetchingOptions, option) {
				return name + " " + option
			}
		}
	case "openssl":
		if i := slices.Index(argv, "-connect"); sub == "s_client" && i > 0 && i+1 < len(argv) && !isLocal(argv[i+1]) {
			return "openssl s_client"
		}
	case "rsync":
		if shell.CopiesFromHost(argv) {
			return name
		}
	case "ollama":
		if slices.Contains([]string{"pull", "push", "run"}, sub) {
			return name + " " + sub
		}
	case "sftp", "gsutil", "aws", "gcloud", "rclone", "ssh", "scp", "gdown", "docker":
		return name
	}
	return ""
}

// fetchingOptions are those of llama-server that name a model of another machine.
var fetchingOptions = []string{"-hf", "-hfr", "--hf-repo", "-mu", "--model-url", "-dr", "--docker-repo", "-mmu", "--mmproj-url", "-hfd", "-hfrd", "--hf-repo-draft", "--spec-draft-hf"}

// listens reports whether nc waits for others.
func listens(argv []string) bool {
	return slices.ContainsFunc(argv[1:], func(w string) bool {
		return w == "--listen" || len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.Contains(w, "l")
	})
}

// isRemote reports whether a word is the address of another machine.
func isRemote(word string) bool {
	if !shell.IsURL(word) {
		return false
	}
	u, err := url.Parse(strings.ReplaceAll(word, shell.Unknown, "0"))
	return err != nil || !isLoopback(u.Hostname())
}

func isLocal(word string) bool {
	if !shell.IsURL(word) {
		word = "http://" + word
	}
	u, err := url.Parse(strings.ReplaceAll(word, shell.Unknown, "0"))
	return err == nil && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	return slices.Contains([]string{"localhost", "127.0.0.1", "0.0.0.0", "::1", "::", ""}, host)
}

// checkNetwork looks for commands that need what a grader does not have.
func (a *analysis) checkNetwork() {
	a.allSteps(func(r *shell.Run, st *shell.Step, main bool) {
		add := func(problem, hint string) {
			a.add(shell.Finding{Check: "C22", Warning: !main, Path: st.Path, Line: st.Line, Problem: problem, Got: shell.Shown(strings.Join(st.Argv, " ")), Hint: hint})
		}
		if in, ok := shell.InstallOf(st.Argv); ok {
			a.checkInstaller(in, st, add)
			return
		}
		if what := networkOf(st.Argv); what != "" {
			add(what+" needs the network, and a grader has none", "ship what it fetches")
			return
		}
		for _, word := range st.Argv {
			if isRemote(word) || strings.HasPrefix(word, "-") && isRemote(word[strings.Index(word, "=")+1:]) {
				a.add(shell.Finding{Check: "C22", Warning: true, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("gives %s the address %s, and a grader has no network", path.Base(st.Argv[0]), shell.Shown(word))})
			}
		}
		a.checkRepositories(r, st, add)
	})
	a.checkNetworkOfModules()
}

// checkInstaller looks at pip.
func (a *analysis) checkInstaller(in shell.Install, st *shell.Step, add func(problem, hint string)) {
	name := strings.Join(in.Name, " ")
	if i := slices.IndexFunc(in.Packages, a.isCommand); i >= 0 {
		a.add(shell.Finding{Check: "C18", Warning: st.Tested, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("%s is given the words of the next command, from %s on, as requirements", name, in.Packages[i]),
			Got: shell.Shown(strings.Join(st.Argv, " ")), Hint: "a backslash at the end of a line joins the next line to it: remove it"})
		return
	}
	noIndex := in.NoIndex || on(st.Variables["PIP_NO_INDEX"]) || on(st.Variables["UV_OFFLINE"]) || on(st.Variables["UV_NO_INDEX"])
	onlyFiles := len(in.Packages) == 0 && len(in.Files) > 0 && slices.Contains(st.Argv, "--no-deps")
	if !noIndex && !onlyFiles {
		add(name+" without --no-index asks a package index, and a grader has no network", "add --no-index --find-links and the folder of the wheels")
	}
	if len(in.Packages) == 0 && len(in.Files) == 0 && len(in.Urls) == 0 {
		a.add(shell.Finding{Check: "C18", Warning: st.Tested, Path: st.Path, Line: st.Line, Problem: name + " is given no requirement: it installs nothing, and fails", Got: shell.Shown(strings.Join(st.Argv, " ")), Hint: "name what is to be installed"})
	}
	for _, u := range in.Urls {
		if isRemote(u) {
			add(fmt.Sprintf("%s gets %s from another machine", name, shell.Shown(u)), "ship the wheels")
		}
	}
	for _, file := range in.Files {
		n, there := a.main.Tree.Get(absoluteIn(st.Folder, file))
		switch {
		case !shell.Known(file) || strings.ContainsAny(file, "[=<>"):
		case there == shell.No:
			add(fmt.Sprintf("%s installs %s, which is not there", name, file), "ship it")
		case n.Data != nil && strings.HasSuffix(file, ".txt"):
			for line := range strings.Lines(string(n.Data)) {
				if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && strings.Contains(line, "://") && !strings.Contains(line, "file://") {
					add(fmt.Sprintf("%s names an address: %s", file, line), "name the wheel, and ship it")
				}
			}
		}
	}
	for _, folder := range in.Links {
		at := absoluteIn(st.Folder, folder)
		if n, there := a.main.Tree.Get(at); shell.Known(folder) && !shell.IsURL(folder) && (there == shell.No || n.Folder && a.tree.Within(at) && len(a.tree.Below(at)) == 0) {
			add(fmt.Sprintf("%s takes wheels from %s, where none are", name, shell.Shown(a.tree.Relative(at))), "ship the wheels there")
		}
	}
	a.checkFindable(in, st, add)
	p := in.Isolated || in.Breaks || in.DryRun || st.Variables["VIRTUAL_ENV"] != "" || on(st.Variables["PIP_BREAK_SYSTEM_PACKAGES"]) || st.Variables["PIP_TARGET"] != ""
	if interpreter := st.Argv[0]; !p && !strings.Contains(interpreter, "/") && a.systemPython() {
		a.add(shell.Finding{Check: "C22", Warning: true, Path: st.Path, Line: st.Line, Problem: name + " into the machine's own Python: where that is managed by its distribution, pip refuses (externally-managed-environment)",
			Hint: "install with --target below /tmp and put that on PYTHONPATH"})
	}
}

// isCommand reports whether a requirement's name is rather that of a command: no
// distribution that is shipped has it.
func (a *analysis) isCommand(word string) bool {
	return slices.Contains([]string{"exec", "export", "cd", "echo", "python", "python3", "vllm", "uvicorn", "gunicorn", "source", "set"}, word) && !a.shipped(word)
}

// checkFindable holds the packages that are asked for by name against the
// wheels that pip may take them from.
func (a *analysis) checkFindable(in shell.Install, st *shell.Step, add func(problem, hint string)) {
	if len(in.Links) == 0 || len(in.Packages) == 0 {
		return
	}
	found, sources, other := map[string]bool{}, map[string]bool{}, map[string]string{} // other: why pip passes over it
	for _, folder := range in.Links {
		if !shell.Known(folder) {
			return
		}
		at := absoluteIn(st.Folder, folder)
		if !a.tree.Within(at) {
			return
		}
		for _, p := range a.tree.Below(at) {
			name := distributionOf(path.Base(p))
			switch why := unsuited(p, a.options.Image); {
			case name == "":
				sources[sourceOf(path.Base(p))] = true
			case why != "":
				other[name] = why
			default:
				found[name] = true
			}
		}
	}
	if len(found)+len(sources)+len(other) == 0 {
		return // and that is said already
	}
	for _, word := range in.Packages {
		name := requirementName(word)
		if name == "" || !shell.Known(word) || found[name] {
			continue
		}
		if i := a.options.Image; i != nil {
			if _, installed := i.Distributions[name]; installed && len(in.Targets) == 0 {
				continue
			}
		}
		if sources[name] { // which gate files does not let pass
			a.add(shell.Finding{Check: "C22", Warning: true, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("%s asks for %s, of which a source archive is there: pip has to build it, with packages that it has nowhere to take from", strings.Join(in.Name, " "), word),
				Hint: "ship the wheel that pip wheel makes of it"})
			continue
		}
		if why := other[name]; why != "" {
			add(fmt.Sprintf("%s asks for %s, and what lies in %s of it %s", strings.Join(in.Name, " "), word, strings.Join(in.Links, ", "), why), "ship the wheel for the grader's machine")
			continue
		}
		add(fmt.Sprintf("%s asks for %s, and there is no wheel of it in %s", strings.Join(in.Name, " "), word, strings.Join(in.Links, ", ")), "ship the wheel")
	}
}

// systemPython reports whether python3 is one that a distribution manages: in
// /usr/bin, or nobody says where.
func (a *analysis) systemPython() bool {
	i := a.options.Image
	return i == nil || i.Python == nil || i.Python.Path == "" || path.Dir(i.Python.Path) == "/usr/bin"
}

func on(value string) bool { return value != "" && value != "0" && value != "false" }

// modelOptions take a model: a folder, or what is asked of a hub.
var modelOptions = []string{"--model", "--model-path", "--model-name-or-path", "--model_name_or_path", "--model_path", "--tokenizer", "--tokenizer-path", "--speculative-model", "--speculative-draft-model-path", "--speculative-draft-model", "--model-id", "-m"}

var repository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// checkRepositories looks for models named as org/name.
func (a *analysis) checkRepositories(r *shell.Run, st *shell.Step, add func(problem, hint string)) {
	server, args := serverOf(st.Argv)
	if p, ok := a.pythonOf(r, st); ok && server == "" {
		if p.Module != "" && p.File == "" && len(p.Args) == 0 {
			return
		}
		args = p.Args
	}
	if slices.Contains([]string{"vllm", "lmdeploy", "trtllm-serve"}, server) && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = append([]string{"--model"}, args...)
	}
	for i, word := range args {
		name, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		if !slices.Contains(modelOptions, name) || !repository.MatchString(value) || !shell.Known(value) {
			continue
		}
		if _, there := r.Tree.Get(absoluteIn(st.Folder, value)); there == shell.No || !r.Tree.Within(absoluteIn(st.Folder, value)) && st.Folder == "/" {
			add(fmt.Sprintf("%s %s is no folder of the submission: it would be asked of the model hub, and a grader has no network", name, value),
				"name the folder of the shipped weights")
		}
	}
}
