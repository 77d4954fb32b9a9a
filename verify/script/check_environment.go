package script

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway/verify/script/shell"
)

// hubPackages ask the model hub unless they are told to stay offline.
var hubPackages = []string{"transformers", "huggingface_hub", "vllm", "sglang", "diffusers", "sentence_transformers", "datasets", "lmdeploy", "trtllm-serve"}

// compiling packages write compiled code to a cache below HOME.
var compilingPackages = []string{"vllm", "triton", "sglang", "flashinfer", "deepspeed"}

// usesAny returns the first of some packages that the served code imports or
// that is the server itself.
func (a *analysis) usesAny(packages []string) string {
	if a.server != nil {
		if name, _ := serverOf(a.server.Argv); slices.Contains(packages, name) {
			return name
		}
	}
	for _, m := range a.modules {
		if !m.main {
			continue
		}
		for _, i := range m.parsed.Imports {
			if top, _, _ := strings.Cut(i.Module, "."); slices.Contains(packages, top) {
				return top
			}
		}
	}
	return ""
}

// checkEnvironment looks at the variables that the server gets.
func (a *analysis) checkEnvironment() {
	st := a.server
	if st == nil {
		return
	}
	p, isPython := a.pythonOf(a.main, st)
	server, _ := serverOf(st.Argv)
	if !isPython && !slices.Contains([]string{"vllm", "sglang", "lmdeploy", "trtllm-serve"}, server) {
		return
	}
	warn := func(problem, hint string) {
		a.add(shell.Finding{Check: "C21", Warning: true, Path: st.Path, Line: st.Line, Problem: problem, Hint: hint})
	}
	if user := a.usesAny(hubPackages); user != "" && !a.offline(st) {
		warn(fmt.Sprintf("starts %s without HF_HUB_OFFLINE: it asks the model hub even for files that are there%s", user, a.setTooLate()),
			"export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1")
	}
	unbuffered := st.Variables["PYTHONUNBUFFERED"] != "" || slices.ContainsFunc(p.Interpreter, func(o string) bool {
		return !strings.HasPrefix(o, "--") && strings.Contains(o, "u")
	})
	if isPython && server == "" && !unbuffered {
		warn("starts Python with a buffered output: what it printed is lost when it is killed", "export PYTHONUNBUFFERED=1, or python3 -u")
	}
	if user := a.usesAny(compilingPackages); user != "" && !a.hasCache(st) {
		warn(fmt.Sprintf("starts %s, which writes compiled code below HOME, without saying where", user),
			"export HOME, or XDG_CACHE_HOME, TRITON_CACHE_DIR and VLLM_CACHE_ROOT, as a folder below /tmp")
	}
	for _, folder := range strings.Split(st.Variables["LD_LIBRARY_PATH"], ":") {
		if strings.Contains(folder, "cuda") && path.IsAbs(folder) && !a.tree.Within(folder) && !strings.Contains(folder, "site-packages") && !strings.Contains(folder, "nvidia/") {
			warn(fmt.Sprintf("puts %s into LD_LIBRARY_PATH: the machine's CUDA libraries then win over those of the wheels", shell.Shown(folder)),
				"leave it out: the wheels find their own libraries")
		}
	}
	a.checkUser(st)
	if submissionOnly(a) {
		a.note("serve.sh finds its files by SUBMISSION_DIR alone: it works only where the grader sets it")
	}
}

// offline reports whether the hub is switched off: by variables, or by the
// served code itself.
func (a *analysis) offline(st *shell.Step) bool {
	if on := st.Variables["HF_HUB_OFFLINE"]; on != "" && on != "0" {
		return true
	}
	if on := st.Variables["TRANSFORMERS_OFFLINE"]; on != "" && on != "0" {
		return true
	}
	for _, m := range a.modules {
		imported := hubImport(m)
		for _, l := range m.parsed.Strings {
			if slices.Contains(offlineVariables, l.Text) && (imported == 0 || l.Line < imported) {
				return true
			}
		}
	}
	return false
}

var offlineVariables = []string{"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}

// hubImport is the line at which a module first imports a package that reads
// these variables, which it does but once; 0 where it imports none for certain.
func hubImport(m module) int {
	for _, i := range m.parsed.Imports {
		if top, _, _ := strings.Cut(i.Module, "."); slices.Contains(hubPackages, top) && !i.Optional {
			return i.Line
		}
	}
	return 0
}

// setTooLate says where the served code sets them after that import, or "".
func (a *analysis) setTooLate() string {
	for _, m := range a.modules {
		for _, s := range m.parsed.Sets {
			if m.main && slices.Contains(offlineVariables, s.Name) {
				return fmt.Sprintf(" (%s sets it at line %d, after the import that reads it)", m.path, s.Line)
			}
		}
	}
	return ""
}

// userVariables name the user where the machine has no entry for its number.
// Source: Python, getpass.getuser.
var userVariables = []string{"LOGNAME", "USER", "LNAME", "USERNAME"}

// checkUser looks for code that asks who runs it, which fails for a number that
// /etc/passwd does not have.
func (a *analysis) checkUser(st *shell.Step) {
	i := a.options.Image
	if i == nil || i.User == nil || *i.User == 0 || slices.ContainsFunc(userVariables, func(name string) bool { return st.Variables[name] != "" }) {
		return
	}
	warn := func(what, path string, line int) {
		a.add(shell.Finding{Check: "C21", Warning: true, Path: path, Line: line, Problem: fmt.Sprintf("%s asks for the user's name, and user %d of the grader's image may have none", what, *i.User),
			Got: fmt.Sprintf("KeyError: 'getpwuid(): uid not found: %d'", *i.User), Hint: "export USER=grader LOGNAME=grader in serve.sh"})
	}
	if server, _ := serverOf(st.Argv); server == "vllm" || server == "sglang" {
		warn(server, st.Path, st.Line) // by torch's compiler, as it is imported
		return
	}
	for _, m := range a.modules {
		for _, c := range m.parsed.Calls {
			compiles := c.Name == "torch.compile" && st.Variables["TORCHINDUCTOR_CACHE_DIR"] == ""
			if m.main && (compiles || c.Name == "getpass.getuser" || c.Name == "os.getlogin") {
				warn(c.Name, m.path, c.Line)
				return
			}
		}
	}
}

func (a *analysis) hasCache(st *shell.Step) bool {
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR"} {
		if st.Variables[name] != "" {
			return true
		}
	}
	return a.options.Image != nil && a.options.Image.Home != ""
}

// submissionOnly reports whether the script never looks at where it lies itself.
func submissionOnly(a *analysis) bool {
	text := string(a.tree.Submitted(EntryPath).Data)
	return strings.Contains(text, "SUBMISSION_DIR") && !strings.Contains(text, "$0") && !strings.Contains(text, "${0") && !strings.Contains(text, "BASH_SOURCE") &&
		!strings.Contains(text, "SUBMISSION_DIR:-") && !strings.Contains(text, "SUBMISSION_DIR-") && !strings.Contains(text, "SUBMISSION_DIR:=")
}
