package boot

import (
	"net"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/verify/boot/sandbox"
	"slipway/verify/report"
	"slipway/verify/words"
)

// weightEndings are of files that hold weights.
var weightEndings = []string{".safetensors", ".gguf", ".ggml", ".bin", ".pt", ".pth", ".ckpt", ".h5", ".npz", ".onnx", ".msgpack", ".tflite"}

func isWeights(name string) bool {
	ending := strings.ToLower(path.Ext(name))
	if folder := path.Base(path.Dir(name)); ending == ".pth" && (folder == "site-packages" || folder == "dist-packages") {
		return false // Python's own: it lists folders of modules
	}
	return slices.Contains(weightEndings, ending)
}

// systemFolders hold what a machine has and a submission may use.
var systemFolders = []string{"/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/etc", "/proc", "/sys", "/dev", "/opt", "/run", "/nix", "/snap", "/var/lib", "/var/cache"}

// scratch are the folders that are empty at first: what is in them the server
// wrote itself.
var scratch = []string{"/tmp", "/var/tmp", "/dev/shm", "/run"}

// owns reports whether a path is one of the submission, or of what it made: no
// part of this machine.
func (o *observed) owns(path string) bool {
	return within(path, o.at, o.homeFolder) || within(path, scratch...)
}

func within(name string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return folder != "" && (name == folder || strings.HasPrefix(name, strings.TrimSuffix(folder, "/")+"/"))
	})
}

// judgeOpened holds what the processes did against what the submission is.
func (o *observed) judgeOpened() verdict {
	var v verdict
	o.judgeZeroWeights(&v)
	if o.trace == nil {
		return v.open("what the server opens could not be seen: %s%s", o.untraced(), o.withoutBare())
	}
	o.Trace = o.reportedTrace()
	o.judgeFiles(&v)
	o.judgePackages(&v)
	o.judgeConnections(&v)
	o.judgeCompilers(&v)
	if reason := o.blocked(); reason != "" {
		return v.open("%s", reason)
	}
	if o.trace.Dropped > 0 {
		return v.open("%d more were opened, started or tried than a trace holds", o.trace.Dropped)
	}
	if !o.judgeWeights(&v) {
		return v.open("the submission has no .safetensors file, so that nothing shows what answers: see gates files and coverage")
	}
	return v
}

func (o *observed) untraced() string {
	for _, c := range o.Conditions {
		if c.Name == sandbox.Traced && !c.Held {
			return c.Detail
		}
	}
	return "nothing was traced"
}

// judgeFiles looks at the files opened outside the submission.
func (o *observed) judgeFiles(v *verdict) {
	listed := map[string]bool{}
	for _, f := range o.rehearsal.Files {
		listed[f.Path] = true
	}
	own := append(slices.Clone(scratch), o.homeFolder)
	pythons := o.interpreters()
	var written []string
	for _, f := range o.trace.Opened {
		inside, isInside := strings.CutPrefix(f.Path, o.at+"/")
		packages := strings.Contains(f.Path, "/site-packages/") || strings.Contains(f.Path, "/dist-packages/")
		switch {
		case f.Written && strings.Contains(f.Path, "/__pycache__/"):
			// Python keeps what it compiled where it may, and goes on where it may not
		case f.Written && !within(f.Path, append(own, "/dev", "/proc")...):
			written = append(written, f.Path)
		case isInside && f.Exists && !listed[inside]:
			v.Fail(report.Finding{Path: inside, Problem: "the server opens a file that the submission does not list", Hint: "it was there when it was started, and will not be where it is graded"})
		case isInside || within(f.Path, own...):
		case isWeights(f.Path) && within(f.Path, systemFolders...) && !packages && !strings.HasSuffix(f.Path, ".safetensors") && !strings.HasSuffix(f.Path, ".gguf"):
			// a program's own data that happens to be called .bin
		case isWeights(f.Path) && f.Exists:
			v.Fail(report.Finding{Path: f.Path, Problem: "the server opens what looks like weights outside the submission", Hint: "ship what it needs, and load that"})
		case isWeights(f.Path):
			v.Warn(report.Finding{Path: f.Path, Problem: "the server looks for weights outside the submission", Hint: "name files from $SUBMISSION_DIR"})
		case !f.Exists || packages || within(f.Path, systemFolders...) || within(f.Path, pythons...):
		default:
			v.Fail(report.Finding{Path: f.Path, Problem: "the server opens a file of this machine that is no part of the system", Hint: "ship what it needs, and load that"})
		}
	}
	for i, name := range written {
		if i == findingsOfWrites {
			v.Note("it writes to %d more such files", len(written)-i)
			break
		}
		v.Warn(report.Finding{Path: name, Problem: "the server writes outside the folders that are for that", Hint: "write below $TMPDIR, /tmp or $HOME"})
	}
}

// findingsOfWrites is how many files that are written where they should not are
// named.
const findingsOfWrites = 10

// interpreters are the folders that interpreters outside the system were
// started from, /x of /x/bin/python3, and the one of the image.
func (o *observed) interpreters() []string {
	var all []string
	if image := o.rehearsal.Profile.Image; image != nil && image.Python != nil && image.Python.Path != "" {
		all = append(all, path.Dir(path.Dir(image.Python.Path)))
	}
	for _, p := range o.trace.Programs {
		if folder := path.Dir(p.Path); path.Base(folder) == "bin" && strings.HasPrefix(path.Base(p.Path), "python") {
			all = append(all, path.Dir(folder))
		}
	}
	return all
}

// judgeWeights looks for weights of the submission that nothing opened, and
// reports whether it has any.
func (o *observed) judgeWeights(v *verdict) bool {
	opened := map[string]bool{}
	for _, f := range o.trace.Opened {
		if f.Exists {
			opened[strings.TrimPrefix(f.Path, o.at+"/")] = true
		}
	}
	var weights, unopened []string
	for _, f := range o.rehearsal.Files {
		if strings.HasSuffix(f.Path, ".safetensors") {
			weights = append(weights, f.Path)
			if !opened[f.Path] {
				unopened = append(unopened, f.Path)
			}
		}
	}
	if len(weights) == 0 {
		return false
	}
	if len(unopened) == len(weights) {
		v.Fail(report.Finding{Path: weights[0], Problem: "the server answers and has opened none of the submission's " + words.Plural(len(weights), "weight file"),
			Hint: "serve the weights that are submitted"})
		return true
	}
	for _, name := range unopened {
		f := report.Finding{Path: name, Problem: "the server has not opened this weight file", Hint: "serve all weights that are submitted, or leave out what is not needed"}
		if o.rehearsal.Unused[name] {
			v.Note("%s was not opened, which text inference does not need", name)
			continue
		}
		v.Fail(f)
	}
	v.Note("opened %d of %s", len(weights)-len(unopened), words.Plural(len(weights), "weight file"))
	return true
}

// ownAddress are what programs "connect" a datagram socket to in order to learn
// their own address: nothing is sent.
var ownAddress = []string{"8.8.8.8:80", "8.8.8.8:1", "10.255.255.255:1", "10.254.254.254:1", "[2001:4860:4860::8888]:80", "192.0.2.0:80", "1.1.1.1:80"}

// unresolved is what is printed of a name that was looked up in vain.
var unresolved = regexp.MustCompile(`(?i)temporary failure in name resolution|name or service not known|NameResolutionError|could not resolve host|getaddrinfo failed|no such host|\blookup [\w-]+\.[\w.-]+ on `)

// judgeConnections looks for a network. One that is missed ends the start of some
// servers: that is gate startup's, then, and only noted here.
func (o *observed) judgeConnections(v *verdict) {
	fail := v.Fail
	if c, _, ok := findCause(o.first.log); ok && c.network && !o.first.healthy() {
		fail = func(f report.Finding) { v.Note("%s, which ended the start: see gate startup; %s", f.Problem, f.Got) }
	}
	names := false
	for _, c := range o.trace.Connections {
		switch {
		case o.local(c.Address):
		case strings.HasSuffix(c.Address, ":53"):
			names = true
		case slices.Contains(ownAddress, c.Address):
			v.Note("it looks up its own address by way of %s", c.Address)
		default:
			fail(report.Finding{Path: serveScript, Problem: "the server connects to " + c.Address, Want: "loopback only", Hint: "there is no network where it is graded: ship what it fetches, and export HF_HUB_OFFLINE=1"})
		}
	}
	if line := lineWith(o.Log, unresolved); line != "" {
		fail(report.Finding{Path: serveScript, Problem: "the server looks for another machine by name", Got: line,
			Hint: "there is no network where it is graded: ship what it fetches, and export HF_HUB_OFFLINE=1"})
	} else if names {
		v.Warn(report.Finding{Path: serveScript, Problem: "the server asks for the address of some name", Hint: "there is no network where it is graded"})
	}
}

func (o *observed) local(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true // no address of the Internet
	}
	ip := net.ParseIP(host)
	return ip == nil || ip.IsLoopback() || ip.IsUnspecified() || host == o.address
}

func lineWith(log string, text *regexp.Regexp) string {
	for line := range strings.SplitSeq(log, "\n") {
		if text.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// compilers are programs that show that something is compiled at start, with
// those that an image would list for them.
var compilers = map[string][]string{
	"cc1": {"gcc", "cc"}, "cc1plus": {"g++", "c++", "gcc"}, "clang": {"clang"}, "nvcc": {"nvcc"}, "cicc": {"nvcc"}, "ptxas": {"ptxas", "nvcc"}, "ninja": {"ninja"},
}

// judgeCompilers warns of what is compiled, and fails where the grader's
// machine lacks the compiler.
func (o *observed) judgeCompilers(v *verdict) {
	seen := map[string]bool{}
	for _, p := range o.trace.Programs {
		name := path.Base(p.Path)
		needs, is := compilers[name]
		if !is || seen[name] {
			continue
		}
		seen[name] = true
		if o.owns(p.Path) || strings.Contains(p.Path, "/site-packages/") {
			v.Note("it compiles at start, with %s, which it brings along", p.Path)
			continue
		}
		f := report.Finding{Path: serveScript, Problem: "something is compiled while the server runs: it starts " + p.Path, Hint: "ship what is compiled, or choose a backend that compiles nothing"}
		if o.lacks(needs) {
			f.Got = "the grader's machine has no " + needs[0]
			v.Fail(f)
		} else {
			v.Warn(f)
		}
	}
}

// lacks reports whether the image says that none of some programs is there.
func (o *observed) lacks(programs []string) bool {
	image := o.rehearsal.Profile.Image
	if image == nil {
		return false
	}
	known := false
	for _, name := range programs {
		there, said := image.Programs[name]
		if there {
			return false
		}
		known = known || said
	}
	return known
}

// reportedTrace is the trace without what every program does.
func (o *observed) reportedTrace() *report.Trace {
	t := &report.Trace{Opened: []report.Access{}, Programs: []string{}, Connected: []string{}}
	for _, f := range o.trace.Opened {
		boring := within(f.Path, systemFolders...) && !within(f.Path, "/dev/shm", "/run") || strings.Contains(f.Path, "/__pycache__/")
		if (f.Exists || f.Written) && !boring {
			t.Opened = append(t.Opened, report.Access{Path: f.Path, Written: f.Written})
		}
	}
	for _, p := range o.trace.Programs {
		if !slices.Contains(t.Programs, p.Path) {
			t.Programs = append(t.Programs, p.Path)
		}
	}
	for _, c := range o.trace.Connections {
		if !o.local(c.Address) {
			t.Connected = append(t.Connected, c.Address)
		}
	}
	return t
}
