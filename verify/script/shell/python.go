package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// PythonStart is a command line that starts Python.
type PythonStart struct {
	Interpreter []string // options of Python itself
	File        string   // the script; "-" for the standard input, "" without one
	Module      string   // of -m
	Code        string   // of -c
	Args        []string // what the script gets
}

// PythonOf reads a command line that starts Python.
func PythonOf(argv []string) (p PythonStart, ok bool) {
	if len(argv) == 0 {
		return p, false
	}
	name := path.Base(argv[0])
	switch {
	case pythonName.MatchString(name):
		argv = argv[1:]
	case name == "torchrun" || name == "deepspeed" || name == "accelerate" && len(argv) > 1 && argv[1] == "launch":
		return launcherOf(argv[1:])
	default:
		return p, false
	}
	for i := 0; i < len(argv); i++ {
		word := argv[i]
		switch {
		case word == "-m" && i+1 < len(argv):
			if started, ok := launcherOf(argv[i+2:]); ok && slices.Contains(launchers, argv[i+1]) {
				started.Interpreter = p.Interpreter
				return started, true
			}
			p.Module, p.Args = argv[i+1], argv[i+2:]
			return p, true
		case word == "-c" && i+1 < len(argv):
			p.Code, p.Args = argv[i+1], argv[i+2:]
			return p, true
		case (word == "-W" || word == "-X" || word == "--check-hash-based-pycs") && i+1 < len(argv):
			p.Interpreter = append(p.Interpreter, word, argv[i+1])
			i++
		case strings.HasPrefix(word, "-") && word != "-":
			if strings.HasPrefix(word, "-m") && len(word) > 2 {
				p.Module, p.Args = word[2:], argv[i+1:]
				return p, true
			}
			p.Interpreter = append(p.Interpreter, word)
		default:
			p.File, p.Args = word, argv[i+1:]
			return p, true
		}
	}
	return p, true
}

// launchers are modules that start a script of their command line.
var launchers = []string{"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner"}

// launcherOf finds the script or module among the words of torchrun and its like.
func launcherOf(args []string) (p PythonStart, ok bool) {
	for i, word := range args {
		switch {
		case (word == "-m" || word == "--module") && i+1 < len(args):
			p.Module, p.Args = args[i+1], args[i+2:]
			return p, true
		case strings.HasSuffix(word, ".py"):
			p.File, p.Args = word, args[i+1:]
			return p, true
		}
	}
	return p, false
}

var pythonName = regexp.MustCompile(`^python(3(\.[0-9]+)?)?$`)
