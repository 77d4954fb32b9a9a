package script

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// pythonStart is a command line that starts Python.
type pythonStart struct {
	interpreter []string // options of Python itself
	file        string   // the script; "-" for the standard input, "" without one
	module      string   // of -m
	code        string   // of -c
	args        []string // what the script gets
}

var pythonName = regexp.MustCompile(`^python(3(\.[0-9]+)?)?$`)

// pythonOf reads a command line that starts Python.
func pythonOf(argv []string) (p pythonStart, ok bool) {
	if len(argv) == 0 {
		return p, false
	}
	name := path.Base(argv[0])
	switch {
	case pythonName.MatchString(name):
		argv = argv[1:]
	case (name == "uv" || name == "poetry" || name == "pdm") && len(argv) > 2 && argv[1] == "run" && pythonName.MatchString(argv[2]):
		argv = argv[3:]
	case name == "torchrun" || name == "accelerate" && len(argv) > 1 && argv[1] == "launch":
		return launcherOf(argv[1:])
	default:
		return p, false
	}
	for i := 0; i < len(argv); i++ {
		word := argv[i]
		switch {
		case word == "-m" && i+1 < len(argv):
			p.module, p.args = argv[i+1], argv[i+2:]
			return p, true
		case word == "-c" && i+1 < len(argv):
			p.code, p.args = argv[i+1], argv[i+2:]
			return p, true
		case (word == "-W" || word == "-X" || word == "--check-hash-based-pycs") && i+1 < len(argv):
			p.interpreter = append(p.interpreter, word, argv[i+1])
			i++
		case strings.HasPrefix(word, "-") && word != "-":
			if strings.HasPrefix(word, "-m") && len(word) > 2 {
				p.module, p.args = word[2:], argv[i+1:]
				return p, true
			}
			p.interpreter = append(p.interpreter, word)
		default:
			p.file, p.args = word, argv[i+1:]
			return p, true
		}
	}
	return p, true
}

// launcherOf finds the script among the words of torchrun and its like.
func launcherOf(args []string) (p pythonStart, ok bool) {
	for i, word := range args {
		if strings.HasSuffix(word, ".py") {
			p.file, p.args = word, args[i+1:]
			return p, true
		}
	}
	return p, false
}

// pythonOf reads what a step starts, scripts with a Python shebang among them.
func (a *analysis) pythonOf(r *run, st *step) (pythonStart, bool) {
	if p, ok := pythonOf(st.Argv); ok {
		return p, true
	}
	file := absoluteIn(st.folder, st.Argv[0])
	n, _ := r.tree.get(file)
	if strings.Contains(st.Argv[0], "/") && n != nil && strings.HasPrefix(firstLine(n.head), "#!") && strings.Contains(firstLine(n.head), "python") {
		return pythonStart{file: st.Argv[0], args: st.Argv[1:]}, true
	}
	return pythonStart{}, false
}

func absoluteIn(folder, p string) string {
	if !path.IsAbs(p) {
		p = path.Join(folder, p)
	}
	return path.Clean(p)
}

// install is a command line of pip or uv that installs.
type install struct {
	name     []string // "pip install"
	noIndex  bool
	links    []string // --find-links
	targets  []string
	files    []string // wheels, folders and requirement files by path
	packages []string // by name
	urls     []string
	isolated bool // into a folder of its own: --target, --prefix, --root or a venv
	breaks   bool // --break-system-packages
	dryRun   bool
}

// pipValued are pip's options whose next word is theirs.
const pipValued = "-t --target --prefix --root -f --find-links -i --index-url --extra-index-url -r --requirement -c --constraint --python --platform --python-version --implementation --abi --only-binary --no-binary --cache-dir --timeout --retries --proxy --trusted-host --progress-bar --root-user-action --src --upgrade-strategy --report --log --exists-action --config-settings -C --global-option --use-feature --link-mode --index-strategy -e --editable --python-preference --default-index --index -p"

// installOf reads the command line of an installer.
func installOf(argv []string) (in install, ok bool) {
	words := argv
	if p, isPython := pythonOf(argv); isPython {
		if p.module != "pip" && p.module != "uv" {
			return in, false
		}
		words = append([]string{p.module}, p.args...)
	} else if len(argv) > 0 {
		words = append([]string{path.Base(argv[0])}, argv[1:]...)
	}
	uv := len(words) > 1 && words[0] == "uv" && words[1] == "pip"
	if uv {
		words = words[1:]
	}
	if len(words) < 2 || !strings.HasPrefix(words[0], "pip") {
		return in, false
	}
	i := slices.IndexFunc(words, func(w string) bool { return w == "install" || w == "sync" })
	if i < 0 || slices.ContainsFunc(words[1:i], func(w string) bool { return !strings.HasPrefix(w, "-") }) {
		return in, false
	}
	in.name = []string{"pip", "install"}
	if uv {
		in.name = []string{"uv", "pip", "install"}
	}
	rest := slices.Concat(words[1:i], words[i+1:])
	for i := 0; i < len(rest); i++ {
		option, value, joined := strings.Cut(rest[i], "=")
		if strings.HasPrefix(option, "-") {
			if slices.Contains(strings.Fields(pipValued), option) && !joined && i+1 < len(rest) {
				i++
				value = rest[i]
			}
			in.option(option, value)
			continue
		}
		in.operand(rest[i])
	}
	return in, true
}

func (in *install) option(option, value string) {
	switch option {
	case "--no-index":
		in.noIndex = true
	case "--offline":
		in.noIndex = true
	case "-f", "--find-links":
		in.links = append(in.links, value)
		if isURL(value) {
			in.urls = append(in.urls, value)
		}
	case "-t", "--target", "--prefix", "--root":
		in.targets, in.isolated = append(in.targets, value), true
	case "--break-system-packages":
		in.breaks = true
	case "--user":
		in.isolated = true
	case "--python", "-p":
		in.isolated = true
	case "--dry-run":
		in.dryRun = true
	case "-i", "--index-url", "--extra-index-url", "--index", "--default-index":
		in.urls = append(in.urls, value)
	case "-r", "--requirement":
		in.files = append(in.files, value)
	}
}

func (in *install) operand(word string) {
	switch {
	case isURL(word):
		in.urls = append(in.urls, word)
	case strings.Contains(word, "/") || strings.HasSuffix(word, ".whl") || word == ".":
		in.files = append(in.files, word)
	default:
		in.packages = append(in.packages, word)
	}
}

func isURL(word string) bool {
	scheme, rest, ok := strings.Cut(word, "://")
	return ok && rest != "" && len(scheme) < 12 && scheme != "file" && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz+0123456789") == ""
}

// serverOf names the well-known server that a command starts, and its
// arguments; "" where it is none.
func serverOf(argv []string) (name string, args []string) {
	if p, ok := pythonOf(argv); ok {
		switch {
		case strings.HasPrefix(p.module, "vllm.entrypoints"):
			return "vllm", p.args
		case p.module == "vllm" && len(p.args) > 0 && p.args[0] == "serve":
			return "vllm", p.args[1:]
		case strings.HasPrefix(p.module, "sglang.launch_server"):
			return "sglang", p.args
		case p.module == "uvicorn" || p.module == "gunicorn" || p.module == "hypercorn":
			return p.module, p.args
		case strings.HasPrefix(p.module, "llama_cpp.server"):
			return "llama_cpp", p.args
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
	case "uvicorn", "gunicorn", "hypercorn", "llama-server":
		return base, argv[1:]
	case "text-generation-launcher", "ollama", "tritonserver", "lmdeploy":
		return base, argv[1:]
	}
	return "", nil
}

// serves reports whether a step may be the server: what is shipped, Python
// that runs a file or module, or a known server.
func (a *analysis) serves(r *run, st *step) bool {
	if name, _ := serverOf(st.Argv); name != "" {
		return true
	}
	if _, ok := installOf(st.Argv); ok {
		return false
	}
	if p, ok := a.pythonOf(r, st); ok {
		return p.file != "" && p.file != "-" || p.module != "" && !slices.Contains(quietModules, p.module)
	}
	if strings.Contains(st.Argv[0], "/") {
		n, _ := r.tree.get(absoluteIn(st.folder, st.Argv[0]))
		return n != nil && n.source != "" && !isShell(n)
	}
	return false
}

// quietModules are modules of Python that end by themselves.
var quietModules = []string{"pip", "venv", "ensurepip", "compileall", "zipfile", "tarfile", "json.tool", "site", "sysconfig", "platform", "py_compile", "base64", "timeit"}

// serverIn finds what serves in a run: what took the shell's place, else what
// was left in the background, else what was started last.
func (a *analysis) serverIn(r *run, from int) *step {
	var last, background *step
	for _, st := range r.steps {
		if st.choice < from {
			continue
		}
		if st.Exec {
			if n, _ := r.tree.get(absoluteIn(st.folder, st.Argv[0])); n == nil || !isShell(n) || n.data == nil {
				return st
			}
		}
		if a.serves(r, st) {
			if last = st; st.background {
				background = st
			}
		}
	}
	if background != nil {
		return background
	}
	return last
}
