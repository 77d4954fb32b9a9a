package shell

import (
	"path"
	"slices"
	"strings"
)

// Install is a command line of pip or uv that installs.
type Install struct {
	Name     []string // "pip install"
	NoIndex  bool
	Links    []string // --find-links
	Targets  []string
	Files    []string // wheels, folders and requirement files by path
	Packages []string // by name
	Urls     []string
	Isolated bool // into a folder of its own: --target, --prefix, --root or a venv
	Breaks   bool // --break-system-packages
	DryRun   bool
}

// pipValued are pip's options whose next word is theirs.
const pipValued = "-t --target --prefix --root -f --find-links -i --index-url --extra-index-url -r --requirement -c --constraint --python --platform --python-version --implementation --abi --only-binary --no-binary --cache-dir --timeout --retries --proxy --trusted-host --progress-bar --root-user-action --src --upgrade-strategy --report --log --exists-action --config-settings -C --global-option --use-feature --link-mode --index-strategy -e --editable --python-preference --default-index --index -p"

// InstallOf reads the command line of an installer.
func InstallOf(argv []string) (in Install, ok bool) {
	words := argv
	if p, isPython := PythonOf(argv); isPython {
		if p.Module != "pip" && p.Module != "uv" {
			return in, false
		}
		words = append([]string{p.Module}, p.Args...)
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
	in.Name = []string{"pip", "install"}
	if uv {
		in.Name = []string{"uv", "pip", "install"}
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

func (in *Install) option(option, value string) {
	switch option {
	case "--no-index":
		in.NoIndex = true
	case "--offline":
		in.NoIndex = true
	case "-f", "--find-links":
		in.Links = append(in.Links, value)
		if IsURL(value) {
			in.Urls = append(in.Urls, value)
		}
	case "-t", "--target", "--prefix", "--root":
		in.Targets, in.Isolated = append(in.Targets, value), true
	case "--break-system-packages":
		in.Breaks = true
	case "--user":
		in.Isolated = true
	case "--python", "-p":
		in.Isolated = true
	case "--dry-run":
		in.DryRun = true
	case "-i", "--index-url", "--extra-index-url", "--index", "--default-index":
		in.Urls = append(in.Urls, value)
	case "-r", "--requirement", "-e", "--editable", "--group":
		in.Files = append(in.Files, value)
	default:
		if !strings.HasPrefix(option, "--") && len(option) > 2 && (option[1] == 'r' || option[1] == 'e') {
			in.Files = append(in.Files, option[2:])
		}
	}
}

func (in *Install) operand(word string) {
	switch {
	case IsURL(word):
		in.Urls = append(in.Urls, word)
	case strings.Contains(word, "/") || strings.HasSuffix(word, ".whl") || word == ".":
		in.Files = append(in.Files, word)
	default:
		in.Packages = append(in.Packages, word)
	}
}

// IsURL reports whether a word is the address of something on another machine.
func IsURL(word string) bool {
	scheme, rest, ok := strings.Cut(word, "://")
	return ok && rest != "" && len(scheme) < 12 && scheme != "file" && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz+0123456789") == ""
}
