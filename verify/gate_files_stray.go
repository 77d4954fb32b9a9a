package verify

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/manifest/content"
	"slipway/verify/report"
	"slipway/verify/words"
)

// maxLogBytes is more than a log that documents something has.
const maxLogBytes = 64 << 20

// strayFolders are folders that tools leave behind, and what they are.
var strayFolders = map[string]string{
	".git": "a Git repository's own files", ".hg": "a Mercurial repository's own files", ".svn": "a Subversion checkout's own files",
	"__pycache__": "Python's compiled files", ".cache": "a cache", ".ipynb_checkpoints": "a notebook's copies", "wandb": "a tracker's files",
	".pytest_cache": "a test runner's files", ".mypy_cache": "a type checker's files", ".ruff_cache": "a linter's files",
	"node_modules": "JavaScript packages", ".venv": "a virtual environment, which does not survive being moved",
	"venv": "a virtual environment, which does not survive being moved", ".idea": "an editor's files", ".vscode": "an editor's files",
	"__MACOSX": "an archiver's leavings", ".Trash": "a trash folder",
}

// strayFiles are patterns of path.Match on a file's name.
var strayFiles = []struct{ pattern, what string }{
	{".DS_Store", "a file manager's leavings"}, {"Thumbs.db", "a file manager's leavings"}, {"._*", "a file manager's leavings"},
	{"*.swp", "an editor's leavings"}, {"*.swo", "an editor's leavings"}, {"*~", "an editor's leavings"}, {"*.orig", "a merge's leavings"},
	{"*.rej", "a patch's leavings"}, {"*.tmp", "a temporary file"}, {"*.part", "a download that did not end"}, {"*.incomplete", "a download that did not end"},
	{".env", "the settings of one machine, which often hold secrets"}, {"*.lock.json.lock", "a lock"}, {"nohup.out", "a terminal's output"},
	{"optimizer.pt", "a training run's state"}, {"scheduler.pt", "a training run's state"}, {"training_args.bin", "a training run's state"},
	{"rng_state*.pth", "a training run's state"}, {"scaler.pt", "a training run's state"}, {"trainer_state.json", "a training run's state"},
	{"events.out.tfevents.*", "a training run's curves"},
}

var (
	coreDump   = regexp.MustCompile(`^core(?:\.\d+)?$`)
	checkpoint = regexp.MustCompile(`^checkpoint-\d+$`)
)

// stray warns of what nobody means to ship, each folder once.
func (o *outcome) stray(e *evidence) {
	type clutter struct {
		what  string
		files int
		bytes int64
	}
	found := map[string]*clutter{}
	for _, f := range e.tree.Files {
		facts := e.facts[f.Path]
		p, what := strayOf(f, facts.Head)
		if what == "" {
			continue
		}
		if found[p] == nil {
			found[p] = &clutter{what: what}
		}
		found[p].files++
		found[p].bytes += f.Size
	}
	for p, c := range found {
		finding := report.Finding{Path: p, Problem: "looks like " + c.what, Hint: "remove it: a submission has what it serves and what documents it"}
		if c.files > 1 || strings.HasSuffix(p, "/") {
			finding.Got = fmt.Sprintf("%s, %s bytes", words.Plural(c.files, "file"), words.Grouped(c.bytes))
		}
		o.Warn(finding)
	}
}

// strayOf says what clutter a file is, and the path to report: the file's, or
// that of the whole folder, with a slash.
func strayOf(f content.TreeFile, head []byte) (p, what string) {
	parts := strings.Split(f.Path, "/")
	for i, folder := range parts[:len(parts)-1] {
		whole := strings.Join(parts[:i+1], "/") + "/"
		if what := strayFolders[folder]; what != "" {
			return whole, what
		}
		if checkpoint.MatchString(folder) {
			return whole, "a training run's checkpoint"
		}
	}
	name := parts[len(parts)-1]
	for _, s := range strayFiles {
		if ok, _ := path.Match(s.pattern, name); ok {
			return f.Path, s.what
		}
	}
	extension := strings.ToLower(path.Ext(name))
	switch {
	case coreDump.MatchString(name) && strings.HasPrefix(string(head), "\x7fELF"):
		return f.Path, "the memory of a program that crashed"
	case slices.Contains([]string{".log", ".out", ".err"}, extension) && f.Size > maxLogBytes:
		return f.Path, fmt.Sprintf("a log that nobody reads: it has %s bytes", words.Grouped(f.Size))
	}
	return "", ""
}
