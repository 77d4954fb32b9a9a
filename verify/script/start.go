package script

import (
	"path"
	"slices"
	"strings"

	"slipway/verify/script/shell"
)

// pythonOf reads what a step starts, scripts with a Python shebang among them.
func (a *analysis) pythonOf(r *shell.Run, st *shell.Step) (shell.PythonStart, bool) {
	if p, ok := shell.PythonOf(st.Argv); ok {
		return p, true
	}
	file := absoluteIn(st.Folder, st.Argv[0])
	n, _ := r.Tree.Get(file)
	if strings.Contains(st.Argv[0], "/") && n != nil && strings.HasPrefix(shell.FirstLine(n.Head), "#!") && strings.Contains(shell.FirstLine(n.Head), "python") {
		return shell.PythonStart{File: st.Argv[0], Args: st.Argv[1:]}, true
	}
	return shell.PythonStart{}, false
}

// serverOf names the well-known server that a command starts, and its
// arguments; "" where it is none.
func serverOf(argv []string) (name string, args []string) {
	if p, ok := shell.PythonOf(argv); ok {
		switch {
		case strings.HasPrefix(p.Module, "vllm.entrypoints"):
			return "vllm", p.Args
		case p.Module == "vllm" && len(p.Args) > 0 && p.Args[0] == "serve":
			return "vllm", p.Args[1:]
		case strings.HasPrefix(p.Module, "sglang.launch_server"):
			return "sglang", p.Args
		case p.Module == "uvicorn" || p.Module == "gunicorn" || p.Module == "hypercorn":
			return p.Module, p.Args
		case p.Module == "lmdeploy" && len(p.Args) > 1 && p.Args[0] == "serve" && p.Args[1] == "api_server":
			return "lmdeploy", p.Args[2:]
		case strings.HasPrefix(p.Module, "llama_cpp.server"):
			return "llama_cpp", p.Args
		}
		return "", nil
	}
	if len(argv) == 0 {
		return "", nil
	}
	switch base := path.Base(argv[0]); base {
	case "vllm":
		if len(argv) > 1 && argv[1] == "serve" {
			return "vllm", argv[2:]
		}
	case "sglang":
		if len(argv) > 1 && argv[1] == "serve" {
			return base, argv[2:]
		}
	case "uvicorn", "gunicorn", "hypercorn", "llama-server":
		return base, argv[1:]
	case "lmdeploy":
		if len(argv) > 2 && argv[1] == "serve" && argv[2] == "api_server" {
			return base, argv[3:]
		}
	case "ollama":
		if len(argv) > 1 && argv[1] == "serve" {
			return base, argv[2:]
		}
	case "trtllm-serve":
		if len(argv) > 1 && argv[1] == "serve" {
			argv = argv[1:]
		}
		return base, argv[1:]
	case "text-generation-launcher", "tritonserver":
		return base, argv[1:]
	}
	return "", nil
}

// serves reports whether a step may be the server: what is shipped, Python
// that runs a file or module, or a known server.
func (a *analysis) serves(r *shell.Run, st *shell.Step) bool {
	if name, _ := serverOf(st.Argv); name != "" {
		return true
	}
	if _, ok := shell.InstallOf(st.Argv); ok {
		return false
	}
	if p, ok := a.pythonOf(r, st); ok {
		return p.File != "" && p.File != "-" || p.Module != "" && !slices.Contains(quietModules, p.Module)
	}
	if strings.Contains(st.Argv[0], "/") {
		n, _ := r.Tree.Get(absoluteIn(st.Folder, st.Argv[0]))
		return n != nil && n.Source != "" && !shell.IsShell(n)
	}
	return false
}

// quietModules are modules of Python that end by themselves.
var quietModules = []string{"pip", "venv", "ensurepip", "compileall", "zipfile", "tarfile", "json.tool", "site", "sysconfig", "platform", "py_compile", "base64", "timeit"}

// serverIn finds what serves in a run: what took the shell's place, else what
// was left in the background, else what was started last.
func (a *analysis) serverIn(r *shell.Run, from int) *shell.Step {
	var last, background *shell.Step
	for _, st := range r.Steps {
		if st.Choice < from {
			continue
		}
		if st.Exec {
			if n, _ := r.Tree.Get(absoluteIn(st.Folder, st.Argv[0])); n == nil || !shell.IsShell(n) || n.Data == nil {
				return st
			}
		}
		if a.serves(r, st) {
			if last = st; st.Background {
				background = st
			}
		}
	}
	if background != nil {
		return background
	}
	return last
}

func absoluteIn(folder, p string) string {
	if !path.IsAbs(p) {
		p = path.Join(folder, p)
	}
	return path.Clean(p)
}
