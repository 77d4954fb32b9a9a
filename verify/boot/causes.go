package boot

import (
	"regexp"
	"strings"

	"slipway/manifest"
	"slipway/verify/image"
)

// cause is a failure that is known by what it prints.
type cause struct {
	text    *regexp.Regexp // in one line of the log; its first group, if any, stands for %s
	means   string
	remedy  string
	noGPU   bool // not the submission's fault on a machine without the accelerator
	network bool // it misses a network
	last    bool // counts in the last lines alone: it is printed of harmless things too
	install bool // where something was installed, that is to blame
}

// causes are the failures that submissions were seen to end with, the more
// specific before the less. The texts are those of the programs that print
// them.
var causes = []cause{
	{text: regexp.MustCompile(`failed to map segment from shared object`), means: "a shared object lies on a mount without exec",
		remedy: "install and unpack to a folder that may execute: try each of $TMPDIR, /tmp, /var/tmp and $HOME, and never /dev/shm", install: true},
	{text: regexp.MustCompile(`unrecognized arguments?: (.+)`), means: "a program does not know an argument that serve.sh gives it: %s",
		remedy: "serve.sh and the script that it starts are of different versions: bring them together"},
	{text: regexp.MustCompile("requires `?accelerate`?"), means: "the distribution accelerate is missing, which a device map needs",
		remedy: "vendor the wheel of accelerate, or load without device_map"},
	{text: regexp.MustCompile(`requires jinja2`), means: "the distribution jinja2 is missing, which a chat template needs", remedy: "vendor the wheel of jinja2"},
	{text: regexp.MustCompile(`ModuleNotFoundError: No module named '([^']+)'`), means: "the module %s is missing",
		remedy: "vendor the wheel that has it, or check whether serve.sh puts it on PYTHONPATH"},
	{text: regexp.MustCompile(`getpwuid\(\): uid not found`), means: "the user has no entry in /etc/passwd, and a library asks for its name",
		remedy: "export USER and LOGNAME in serve.sh, and the cache folders that are named after the user (TORCHINDUCTOR_CACHE_DIR)"},
	{text: regexp.MustCompile(`(?i)found no nvidia driver|no cuda-capable device|CUDA_ERROR_NO_DEVICE|no cuda gpus are available|torch not compiled with cuda|libcuda\.so[.0-9]*: cannot open|cuda driver (?:library )?(?:was )?not found`),
		means: "the server needs a GPU, and this start had none", remedy: "rehearse on a machine with the accelerator, with --gpu", noGPU: true},
	{text: regexp.MustCompile(`ImportError: (lib[^:]+): cannot open shared object file`), means: "the library %s is missing",
		remedy: "vendor a wheel that brings it along: the grader's machine may lack it too"},
	{text: regexp.MustCompile(`No space left on device`), means: "a folder is full",
		remedy: "write less: /dev/shm has 64 MiB in most containers, and $TMPDIR may be small", last: true},
	{text: regexp.MustCompile(`Bus error`), means: "a folder in memory is full (Bus error)", remedy: "write less to /dev/shm"},
	{text: regexp.MustCompile(`(?i)address already in use`), means: "the port is taken",
		remedy: "start one server only, and let it set SO_REUSEADDR"},
	{text: regexp.MustCompile("version `(GLIBC_[0-9.]+)' not found"), means: "a program was built for a newer system: %s is missing",
		remedy: "vendor the manylinux wheel or build for the grader's C library"},
	{text: regexp.MustCompile(`(?i)(?:no such file or directory: |FileNotFoundError.*)'?ninja`), means: "something is compiled at start, and ninja is missing",
		remedy: "ship what is compiled (flashinfer: its jit-cache and cubin wheels), or choose a backend that compiles nothing"},
	{text: regexp.MustCompile(`Ninja is required|ninja: command not found`), means: "something is compiled at start, and ninja is missing",
		remedy: "ship what is compiled, or choose a backend that compiles nothing"},
	{text: regexp.MustCompile(`Failed to find C compiler`), means: "something is compiled at start, and there is no C compiler",
		remedy: "ship what is compiled, or choose a backend that compiles nothing"},
	{text: regexp.MustCompile(`(?i)could not find nvcc|nvcc: (?:command )?not found`), means: "something is compiled at start, and nvcc is missing",
		remedy: "ship what is compiled, or choose a backend that compiles nothing"},
	{text: regexp.MustCompile(`(?i)cuda out of memory|less than desired gpu memory utilization`), means: "the accelerator's memory is too small",
		remedy: "reserve less, and end what else holds it"},
	{text: regexp.MustCompile(`NVIDIA driver on your system is too old`), means: "the CUDA version is too new for the driver",
		remedy: "vendor wheels of a CUDA version that the grader's driver runs"},
	{text: regexp.MustCompile(`externally-managed-environment`), means: "pip may not install into the system's Python",
		remedy: "install with --target into a writable folder that may execute, and put it on PYTHONPATH", install: true},
	{text: regexp.MustCompile(`Could not find a version that satisfies the requirement (\S+)`), means: "pip finds no wheel of %s",
		remedy: "vendor it and what it needs, for the grader's Python and platform", install: true},
	{text: regexp.MustCompile(`No matching distribution found for (\S+)`), means: "pip finds no wheel of %s",
		remedy: "vendor it and what it needs, for the grader's Python and platform", install: true},
	{text: regexp.MustCompile(`: No module named (pip|venv|ensurepip)$`), means: "this Python has no %s",
		remedy: "unpack the wheels with python3 -m zipfile -e into a folder on PYTHONPATH, or run pip from its own wheel", install: true},
	{text: regexp.MustCompile(`(?i)temporary failure in name resolution|name or service not known|NameResolutionError|Could not resolve host|network is unreachable`),
		means: "it asks the network, and there is none", remedy: "ship what it downloads; export HF_HUB_OFFLINE=1 and give paths in the submission instead of repository names", network: true},
	{text: regexp.MustCompile(`(?i)read-only file system`), means: "it writes where nothing can be written",
		remedy: "write below $TMPDIR or /tmp, and set the cache variables (TRITON_CACHE_DIR, HF_HOME, XDG_CACHE_HOME) to folders there", last: true},
	{text: regexp.MustCompile(`(?i)permission denied`), means: "a permission is missing", remedy: "the grader runs serve.sh as a user who owns nothing, perhaps from a mount without exec", last: true},
	{text: regexp.MustCompile(`\\r': command not found|\^M|bad interpreter`), means: "serve.sh has the line ends of Windows, or names an interpreter that is not there",
		remedy: "write it with line feeds alone, and begin it with #!/bin/sh or #!/usr/bin/env bash"},
	{text: regexp.MustCompile(`serve\.sh cannot be executed:.*no such file or directory`), means: "the interpreter that serve.sh's first line names is not there",
		remedy: "begin it with #!/bin/sh or #!/usr/bin/env bash, and write it without the line ends of Windows"},
	{text: regexp.MustCompile(`(\S+): cannot execute: required file not found`), means: "the interpreter that the first line of %s names, or its loader, is not there",
		remedy: "start it as python3 SCRIPT: the scripts of a virtual environment name the machine that it was made on", last: true},
	{text: regexp.MustCompile(`(?:^|[ :])([\w.+-]+): (?:command )?not found`), means: "the program %s is missing",
		remedy: "ship it, or start what the grader's machine has (homes are hidden: a program installed there is not found)", last: true},
	{text: regexp.MustCompile(`(?i)no such file or directory:? ?(.*)`), means: "a file is missing", remedy: "name files from $SUBMISSION_DIR, and ship them", last: true},
	{text: regexp.MustCompile(`out of memory: killed`), means: "it used more memory than it may", remedy: "load less at once"},
}

// findCause returns the first known cause that a log shows, the line that shows
// it, and whether there is one. Later lines count before earlier ones: what
// ends a program is printed last.
func findCause(log string) (c cause, line string, ok bool) { return findCauseAmong(causes, log) }

func findCauseAmong(causes []cause, log string) (c cause, line string, ok bool) {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	for _, c := range causes {
		for i := len(lines) - 1; i >= 0 && !(c.last && i < len(lines)-lastLinesCount); i-- {
			m := c.text.FindStringSubmatch(lines[i])
			if m == nil {
				continue
			}
			if len(m) > 1 {
				c.means = strings.ReplaceAll(c.means, "%s", manifest.Clip(strings.TrimSpace(m[1])))
			}
			return c, strings.TrimSpace(lines[i]), true
		}
	}
	return cause{}, "", false
}

// sanitised makes every line of a log printable and keeps its last 4 KiB.
func sanitised(log string) string {
	const most = 4 << 10
	if len(log) > most {
		log = log[len(log)-most:]
	}
	lines := strings.Split(strings.TrimRight(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(log), "\n"), "\n")
	for i, line := range lines {
		lines[i] = manifest.Printable(strings.ReplaceAll(line, "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// lastLinesCount is how many lines of a log are its end.
const lastLinesCount = 5

// lastLines are the last lines of a log, as one line. Long ones are shortened, but
// for what `image probe` printed: it is for `image learn` to read.
func lastLines(log string) string {
	lines := strings.FieldsFunc(log, func(r rune) bool { return r == '\n' })
	if len(lines) == 0 {
		return "it printed nothing"
	}
	if len(lines) > lastLinesCount {
		lines = lines[len(lines)-lastLinesCount:]
	}
	for i, line := range lines {
		if short := []rune(strings.TrimSpace(line)); len(short) > 160 && !image.HasLine(line) {
			line = string(short[:80]) + " ... " + string(short[len(short)-75:])
		}
		lines[i] = strings.TrimSpace(line)
	}
	return "the end of its log: " + strings.Join(lines, " | ")
}

// clip is the beginning of a line, to look for in what was cut from it.
func clip(line string) string { return line[:min(len(line), 40)] }
