package image

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// clue is a text that servers, Python, pip or a grader print, and what it says
// about the machine. read returns a part of a description and the fact in
// words: "" where this occurrence says nothing, and the zero part for a fact
// that no field holds. after is some of the log behind the match.
type clue struct {
	pattern *regexp.Regexp
	read    func(l *learner, match []string, after string) (part Image, fact string)
}

var yes, no = true, false

var clues = []clue{
	{regexp.MustCompile(`(?m)(?:^|["' (])(/[\w./+-]*?)/lib/python(\d+\.\d+)/(?:(?:site|dist)-packages/(\w+)/)?`), readPythonPath},
	{regexp.MustCompile(`Requirement already satisfied: ([A-Za-z0-9][\w.-]*)\S* in (/\S+)(?: \((\d[\w.+!-]*)\))?`), readSatisfied},
	{regexp.MustCompile(`(/[^\s:"']+): failed to map segment from shared object`), readNoExec},
	{regexp.MustCompile(`(/[^\s:"']+)/(?:vllm|torch)/[^\s:"']+\.py:\d+: \w*Warning`), readExec},
	{regexp.MustCompile(`(?:OSError: )?\[Errno 30\] Read-only file system: ["']?(/[^\s"']+)`), readReadOnly},
	{regexp.MustCompile(`No space left on device(?:: ["']?(/[^\s"']+))?`), readSpace},
	{regexp.MustCompile("(?i)requires? `?(accelerate|jinja2)`?\\b"), readRequires},
	{regexp.MustCompile(`requires the (\w+) library but it was not found in your environment`), readModule},
	{regexp.MustCompile(`No module named ["'](\w+)`), readModule},
	{regexp.MustCompile(`(?i)\bninja\b.{0,40}?\b(?:crash|not found|no such file|is required|not available)`), readNinja},
	{regexp.MustCompile(`(?i)no such file or directory: ["']?(?:\S*/)?(ninja|nvcc|gcc|cc)\b`), readNoProgram},
	{regexp.MustCompile(`(?:: |line \d+: )([\w.+-]+): (?:command )?not found`), readNoProgram},
	{regexp.MustCompile(`Failed to find C compiler`), readNoCompiler},
	{regexp.MustCompile("version [`']GLIBC_(\\d+\\.\\d+)' not found"), readGlibc},
	{regexp.MustCompile(`NVIDIA driver on your system is too old \(found version (\d+)\)`), readOldDriver},
	{regexp.MustCompile(`Driver Version: (\d+(?:\.\d+)+)`), readDriver},
	{regexp.MustCompile(`NVIDIA [A-Z]{1,2}\d{1,4}\w?(?:[ -](?:\d+GB|HBM\d\w?|PCIe|SXM\d?|NVL))*`), readGPU},
	{regexp.MustCompile(`did not become healthy in (\d+(?:\.\d+)?) ?s`), readStartLimit},
	{regexp.MustCompile(`startup (\d+(?:\.\d+)?) s of (\d+(?:\.\d+)?) s`), readStart},
	{regexp.MustCompile(`(/submission)(?:/[\w.-]+)+`), readSubmission},
	{regexp.MustCompile(`(/[\w./-]+)/serve\.sh: line \d+`), readSubmission},
	{regexp.MustCompile(`\bHOME=(/[\w./-]*)`), readHome},
	{regexp.MustCompile(`externally-managed-environment`), readManaged},
	{regexp.MustCompile(`Successfully installed ((?:[A-Za-z0-9][\w.]*(?:-[\w.+!]+)+ ?)+)`), readInstalled},
	{regexp.MustCompile(`EngineCore encountered an issue`), readEngine},
}

// places are the folders that machines commonly mount by themselves.
var places = []string{"/dev/shm", "/tmp", "/var/tmp", "/run", "/submission", "/home", "/root", "/mnt", "/workspace", "/opt"}

// placeOf returns the deepest of them that a path lies in.
func placeOf(p string) (place string, ok bool) {
	p = path.Clean(p)
	for _, candidate := range places {
		if strings.HasPrefix(p, candidate+"/") && len(candidate) > len(place) {
			place, ok = candidate, true
		}
	}
	return place, ok
}

// ofImage reports whether a path belongs to the image: not to the submission,
// nor to a place that the submission may have filled.
func ofImage(p string) bool {
	place, ok := placeOf(p)
	return !ok || place == "/opt"
}

// installs matches the signs of a pip that ran: what lies in site-packages
// afterwards says nothing about the image.
var installs = regexp.MustCompile(`Successfully installed |Installing collected packages|Processing \S+\.whl`)

func readPythonPath(l *learner, m []string, _ string) (Image, string) {
	prefix, version, module := m[1], m[2], m[3]
	if !ofImage(prefix + "/") {
		return Image{}, ""
	}
	part, fact := Image{Python: &Python{Version: version}}, "python "+version
	if module == "" {
		return part, fact
	}
	if prefix != "/usr" && prefix != "/usr/local" { // an environment of its own
		part.Python.Path = prefix + "/bin/python3"
		fact += " of " + prefix
	}
	if name, ok := distributionOf(module); ok && !l.installs {
		part.Distributions = map[string]string{name: ""}
		fact += ", " + name + " is installed"
	}
	return part, fact
}

func readSatisfied(_ *learner, m []string, _ string) (Image, string) {
	name := NormalName(m[1])
	if !ofImage(m[2]) {
		return Image{}, ""
	}
	return Image{Distributions: map[string]string{name: m[3]}}, name + " " + m[3] + " is installed"
}

func readNoExec(_ *learner, m []string, _ string) (Image, string) {
	place, ok := placeOf(m[1])
	if !ok {
		return Image{}, "native code cannot be loaded from " + path.Dir(m[1]) + ": its mount is noexec, or address space is limited"
	}
	return Image{Mounts: []Mount{{Path: place, NoExec: &yes}}}, place + " is noexec"
}

// readExec reads a warning that the code of a native package raised: by then its
// libraries were loaded from beside it.
func readExec(l *learner, m []string, _ string) (Image, string) {
	place, ok := placeOf(m[1])
	if !ok || !l.loaded {
		return Image{}, ""
	}
	return Image{Mounts: []Mount{{Path: place, NoExec: &no}}}, place + " is not noexec"
}

func readReadOnly(_ *learner, m []string, _ string) (Image, string) {
	place, ok := placeOf(m[1])
	if !ok {
		return Image{}, path.Dir(m[1]) + " is read-only"
	}
	return Image{Mounts: []Mount{{Path: place, ReadOnly: &yes}}}, place + " is read-only"
}

func readSpace(_ *learner, m []string, _ string) (Image, string) {
	if place, ok := placeOf(m[1]); ok {
		return Image{}, place + " is smaller than what was written there"
	}
	return Image{}, "a file system is smaller than what was written there"
}

// ownEnvironment matches code of a Python environment that the submission made:
// what is missing there may be in the image.
var ownEnvironment = regexp.MustCompile(`/(?:tmp|dev/shm|var/tmp|submission|workspace)/[^\s"']*/lib/python\d`)

func absent(l *learner, name string) (Image, string) {
	if l.ownEnvironment {
		return Image{}, name + " is missing in an environment of the submission's own"
	}
	return Image{Absent: []string{name}}, name + " is not installed"
}

// otherVersion follows a requirement of a library that is there, but too old.
var otherVersion = regexp.MustCompile(`^.{0,60}?Your version is (\d[\w.]*)`)

func readRequires(l *learner, m []string, after string) (Image, string) {
	name := NormalName(m[1])
	if version := otherVersion.FindStringSubmatch(after); version != nil {
		return Image{}, name + " " + strings.TrimRight(version[1], ".") + " is installed, which is too old"
	}
	return absent(l, name)
}

func readModule(l *learner, m []string, _ string) (Image, string) {
	name, ok := distributionOf(m[1])
	if !ok {
		return Image{}, ""
	}
	return absent(l, name)
}

func readNinja(l *learner, _ []string, _ string) (Image, string) {
	return readNoProgram(l, []string{"", "ninja"}, "")
}

func readNoProgram(_ *learner, m []string, _ string) (Image, string) {
	if !slices.Contains(programs, m[1]) {
		return Image{}, ""
	}
	return Image{Programs: map[string]bool{m[1]: false}}, "no program " + m[1]
}

func readNoCompiler(*learner, []string, string) (Image, string) {
	return Image{Programs: map[string]bool{"gcc": false, "cc": false}}, "no C compiler"
}

func readGlibc(_ *learner, m []string, _ string) (Image, string) {
	return Image{}, "glibc is older than " + m[1]
}

func readOldDriver(_ *learner, m []string, _ string) (Image, string) {
	return Image{}, "the driver supports CUDA up to version " + m[1] + " (as in 12020 for 12.2)"
}

func readDriver(_ *learner, m []string, _ string) (Image, string) {
	return Image{GPU: &GPU{Driver: m[1]}}, "driver " + m[1]
}

func readGPU(_ *learner, m []string, _ string) (Image, string) {
	return Image{GPU: &GPU{Name: m[0]}}, "GPU " + m[0]
}

func readStartLimit(_ *learner, m []string, _ string) (Image, string) {
	return Image{}, "a start may take " + m[1] + " s, and this one took longer"
}

func readStart(_ *learner, m []string, _ string) (Image, string) {
	return Image{}, "a start may take " + m[2] + " s, and this one took " + m[1] + " s"
}

func readSubmission(_ *learner, m []string, _ string) (Image, string) {
	if !isCleanAbsolute(m[1]) {
		return Image{}, ""
	}
	return Image{Submission: m[1]}, "submissions lie in " + m[1]
}

func readHome(_ *learner, m []string, _ string) (Image, string) {
	if !isCleanAbsolute(m[1]) {
		return Image{}, ""
	}
	return Image{Home: m[1]}, "HOME is " + m[1]
}

func readManaged(*learner, []string, string) (Image, string) {
	return Image{}, "pip refuses to install into the system's Python (PEP 668)"
}

func readInstalled(_ *learner, m []string, _ string) (Image, string) {
	list := strings.Fields(m[1])
	return Image{}, "pip installed distributions at start, " + list[0] + " and others among them: whether the image has them is unknown"
}

func readEngine(*learner, []string, string) (Image, string) {
	return Image{}, "the engine died at a request, after the start: what it compiles or loads then is not to be had"
}
