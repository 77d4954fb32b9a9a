package script

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway/verify/script/shell"
)

// buildFolders are where people and build machines keep their work; a grader's
// machine has nothing there.
var buildFolders = []string{"/home", "/workspace", "/root", "/mnt", "/data", "/Users", "/content", "/kaggle", "/scratch", "/notebooks"}

// elsewhereFolders are folders that an image may have, and that others lack.
var elsewhereFolders = []string{"/app", "/srv", "/opt"}

// buildPath returns the absolute path in a text that leads to a build machine,
// or "".
func (a *analysis) buildPath(text string) string { return a.pathBelow(text, buildFolders) }

// pathBelow returns the first absolute path in a text that leads to one of some
// folders and is not known to be there, or "".
func (a *analysis) pathBelow(text string, folders []string) string {
	for i := 0; i < len(text); i++ {
		if text[i] != '/' || i > 0 && !strings.ContainsRune("=:,'\" \t([{<>\n", rune(text[i-1])) {
			continue
		}
		p := text[i:]
		if end := strings.IndexAny(p, ":,;'\" \t)]}<>\n"); end >= 0 {
			p = p[:end]
		}
		i += max(0, len(p)-1)
		for _, folder := range folders {
			if strings.HasPrefix(p, folder+"/") && len(p) > len(folder)+1 && !a.allowed(p) {
				return p
			}
		}
	}
	return ""
}

// allowed reports whether a path is one that the grader's machine has.
func (a *analysis) allowed(p string) bool {
	p = path.Clean(p)
	if a.tree.Within(p) || strings.HasPrefix(p, a.tree.Home()+"/.") {
		return true
	}
	i := a.options.Image
	if i == nil {
		return false
	}
	if i.Python != nil && path.IsAbs(i.Python.Path) && strings.HasPrefix(p, path.Dir(path.Dir(i.Python.Path))+"/") {
		return true
	}
	m, ok := i.MountOf(p)
	return ok && m.Path != "/"
}

// checkPaths looks for places that the grader's machine does not have, or where
// what is put cannot be used.
func (a *analysis) checkPaths() {
	a.allSteps(func(_ *shell.Run, st *shell.Step, main bool) {
		a.checkStepPaths(st, main)
		if in, ok := shell.InstallOf(st.Argv); ok {
			a.checkTargets(in, st, main)
		}
		a.checkCaches(st, main)
	})
	a.checkCachesOfModules()
	a.checkWrites()
	a.checkWritesOfModules()
	a.checkSettings()
	for _, m := range a.withInline() {
		for _, literal := range m.parsed.Strings {
			if p := a.buildPath(literal.Text); p != "" && strings.HasPrefix(strings.TrimSpace(literal.Text), p) {
				a.add(shell.Finding{Check: "C20", Warning: true, Path: m.path, Line: literal.Line, Problem: fmt.Sprintf("names %s, a folder of a build machine", p),
					Hint: "derive the path from the file's own: Path(__file__).parent, or from SUBMISSION_DIR"})
			}
		}
	}
}

// checkStepPaths looks at a command's words and variables.
func (a *analysis) checkStepPaths(st *shell.Step, main bool) {
	if _, ok := shell.PythonOf(st.Argv); ok && slices.Contains(st.Argv, "-c") {
		return // source, not a path
	}
	add := func(what, p string) {
		a.add(shell.Finding{Check: "C20", Warning: !main, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("%s names %s, a folder of a build machine", what, p),
			Hint: "name it from the script's own folder or SUBMISSION_DIR"})
	}
	made := func(p string) bool { return a.madeByScript(p) }
	for _, word := range st.Argv {
		if p := a.buildPath(word); p != "" && !made(p) {
			add("the command "+path.Base(st.Argv[0]), shell.Shown(p))
		}
		if p := a.pathBelow(word, elsewhereFolders); p != "" && !made(p) && !st.Tested {
			a.add(shell.Finding{Check: "C20", Warning: true, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("the command %s names %s, which no submission brings", path.Base(st.Argv[0]), shell.Shown(p)),
				Hint: "name it from the script's own folder or SUBMISSION_DIR"})
		}
	}
	if v := st.Variables["VIRTUAL_ENV"]; st == a.server && shell.Known(v) && path.IsAbs(v) && a.shipsEnvironment() && a.buildPath(v) == "" && !made(v) && !a.allowed(v) {
		if _, there := a.main.Tree.Get(v); there != shell.Yes {
			a.add(shell.Finding{Check: "C20", Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("activates a virtual environment that was made as %s, and does not lie there: its programs are not found", v),
				Hint: "ship the wheels, and install them to a folder below /tmp; a virtual environment cannot be moved"})
		}
	}
	for name, value := range st.Variables {
		if p := a.buildPath(value); p != "" && !made(p) && name != "PATH" && name != "LD_LIBRARY_PATH" && !isCache(name) {
			add("the variable "+name, shell.Shown(p))
		}
	}
}

// shipsEnvironment reports whether a virtual environment is in the submission.
func (a *analysis) shipsEnvironment() bool {
	return slices.ContainsFunc(a.tree.Below(a.tree.Root), func(p string) bool {
		return strings.HasSuffix(p, "/bin/activate") || path.Base(p) == "pyvenv.cfg"
	})
}

// madeByScript reports whether the script itself makes a folder first.
func (a *analysis) madeByScript(p string) bool {
	for at := path.Clean(p); at != "/"; at = path.Dir(at) {
		if slices.ContainsFunc(a.main.Writes, func(w shell.Write) bool { return w.To == at && w.What != ">" && w.What != ">>" }) {
			return true
		}
	}
	return false
}

// checkTargets looks at where wheels are installed to.
func (a *analysis) checkTargets(in shell.Install, st *shell.Step, main bool) {
	need := 2 * a.wheelBytes(in, st)
	for _, target := range in.Targets {
		at := absoluteIn(st.Folder, target)
		m, ok := a.options.Image.MountOf(at)
		if !ok {
			if strings.HasPrefix(at, "/dev/shm") {
				a.add(shell.Finding{Check: "C20", Warning: true, Path: st.Path, Line: st.Line, Problem: "installs to /dev/shm, where many machines execute nothing",
					Hint: "install to a folder below /tmp, or describe the grader's machine with an image file"})
			}
			continue
		}
		if m.NoExec != nil && *m.NoExec {
			a.add(shell.Finding{Check: "C20", Warning: !main, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("installs to %s, and %s is mounted noexec: no shared object can be loaded from there", shell.Shown(at), m.Path),
				Want: "a folder that allows execution", Got: "failed to map segment from shared object, at the first import", Hint: "install to a folder below /tmp"})
		}
		if m.Bytes > 0 && need > m.Bytes {
			a.add(shell.Finding{Check: "C20", Warning: !main, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("installs to %s, which is too small", shell.Shown(at)),
				Want: fmt.Sprintf("about %s: twice the wheels", gigabytes(need)), Got: gigabytes(m.Bytes), Hint: "install to a larger folder"})
		}
	}
	if len(in.Targets) == 0 || need == 0 {
		return
	}
	temporary := st.Variables["TMPDIR"]
	if temporary == "" {
		temporary = "/tmp"
	}
	if m, ok := a.options.Image.MountOf(absoluteIn(st.Folder, temporary)); ok && m.Bytes > 0 && m.Bytes < need && in.Targets[0] != temporary {
		a.add(shell.Finding{Check: "C20", Warning: true, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("pip unpacks in %s first, which is small", temporary),
			Want: "about " + gigabytes(need), Got: gigabytes(m.Bytes), Hint: "set TMPDIR to a larger folder"})
	}
}

// checkWrites looks for changes below the submission.
func (a *analysis) checkWrites() {
	for _, w := range a.main.Writes {
		if w.Path == EntryPath && slices.Contains(a.redirected, w.Line) {
			continue // into a file that nobody means
		}
		if m, ok := a.options.Image.MountOf(w.To); ok && m.Bytes > 0 && w.Size > m.Bytes {
			a.add(shell.Finding{Check: "C20", Warning: w.Guarded, Path: w.Path, Line: w.Line, Problem: fmt.Sprintf("%s writes %s to %s, which is too small", w.What, gigabytes(w.Size), shell.Shown(w.To)),
				Want: "at most " + gigabytes(m.Bytes), Got: gigabytes(w.Size), Hint: "leave it where it is, or name a larger folder"})
		}
		if a.tree.Within(w.To) && !w.Guarded && !a.writable(w.To) {
			a.add(shell.Finding{Check: "C20", Path: w.Path, Line: w.Line, Problem: fmt.Sprintf("%s writes %s, and graders mount the submission read-only", w.What, shell.Shown(a.tree.Relative(w.To))),
				Hint: "write below ${TMPDIR:-/tmp}"})
		}
	}
}

// checkWritesOfModules looks for files that the served Python writes below the
// submission. Whether a call happens is not known: these are warnings.
func (a *analysis) checkWritesOfModules() {
	for _, m := range a.withInline() {
		for i := range m.parsed.Calls {
			c := &m.parsed.Calls[i]
			to := c.Writes()
			at := absoluteIn(m.folder, to)
			if c.WritesBeside() {
				to, at = "beside itself", path.Join(a.tree.Root, m.path)
			}
			if to == "" || !m.main || !a.tree.Within(at) || a.writable(at) || chdirs(m) {
				continue
			}
			a.add(shell.Finding{Check: "C20", Warning: true, Path: m.path, Line: c.Line, Problem: fmt.Sprintf("%s writes %s, below the submission, which graders mount read-only", c.Name, to),
				Hint: "write below tempfile.gettempdir()"})
		}
	}
}

func gigabytes(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%d bytes", n)
}
