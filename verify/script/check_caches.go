package script

import (
	"fmt"
	"path"
	"strings"

	"slipway/verify/script/shell"
)

// cacheVariables name folders that Python's stacks write to, and whether shared
// objects are loaded from there.
var cacheVariables = map[string]bool{
	"TMPDIR": true, "TRITON_CACHE_DIR": true, "TORCHINDUCTOR_CACHE_DIR": true, "TORCH_EXTENSIONS_DIR": true, "FLASHINFER_WORKSPACE_BASE": true, "CUDA_CACHE_PATH": true,
	"XDG_CACHE_HOME": true, "VLLM_CACHE_ROOT": true, "HF_HOME": false, "HF_MODULES_CACHE": false, "HF_HUB_CACHE": false, "TRANSFORMERS_CACHE": false,
	"PIP_CACHE_DIR": false, "NUMBA_CACHE_DIR": false, "MPLCONFIGDIR": false,
}

func isCache(name string) bool {
	_, ok := cacheVariables[name]
	return ok
}

// checkCaches looks at where compilers put what is loaded afterwards.
func (a *analysis) checkCaches(st *shell.Step, main bool) {
	if st != a.server && main {
		return
	}
	for name, loads := range cacheVariables {
		value := st.Variables[name]
		if value == "" || !shell.Known(value) {
			continue
		}
		at := absoluteIn(st.Folder, value)
		f := shell.Finding{Check: "C20", Warning: !main, Path: st.Path, Line: st.Line, Hint: "name a folder below /tmp"}
		switch {
		case loads && a.noExec(at):
			f.Problem = fmt.Sprintf("%s is %s, on a mount where nothing can be executed: compiled code cannot be loaded from there", name, value)
		case a.tree.Within(at) && !a.writable(at):
			if f.Problem = fmt.Sprintf("%s is %s, below the submission, which is mounted read-only", name, value); name != "TMPDIR" {
				f.Warning = true // a cache that is shipped may only be read
			}
		default:
			continue
		}
		a.add(f)
	}
	for _, variable := range []string{"PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD"} {
		for _, entry := range strings.Split(st.Variables[variable], ":") {
			at := absoluteIn(st.Folder, entry)
			if m, ok := a.options.Image.MountOf(at); entry != "" && ok && m.NoExec != nil && *m.NoExec && m.Path != "/" && !a.tree.Within(at) {
				a.add(shell.Finding{Check: "C20", Warning: !main, Path: st.Path, Line: st.Line, Problem: fmt.Sprintf("%s has %s, and %s is mounted noexec: no shared object can be loaded from there", variable, shell.Shown(entry), m.Path),
					Got: "failed to map segment from shared object", Hint: "install to a folder below /tmp"})
			}
		}
	}
}

func (a *analysis) writable(p string) bool {
	m, ok := a.options.Image.MountOf(p)
	return ok && m.ReadOnly != nil && !*m.ReadOnly
}

// noExec reports whether the image says that nothing can be executed at p.
func (a *analysis) noExec(p string) bool {
	m, ok := a.options.Image.MountOf(p)
	return ok && m.NoExec != nil && *m.NoExec
}

// checkCachesOfModules looks at the same folders where the served Python itself
// names them.
func (a *analysis) checkCachesOfModules() {
	for _, m := range a.withInline() {
		for _, s := range m.parsed.Sets {
			if m.main && s.Value != nil && cacheVariables[s.Name] && path.IsAbs(*s.Value) && a.noExec(path.Clean(*s.Value)) {
				a.add(shell.Finding{Check: "C20", Warning: !m.started, Path: m.path, Line: s.Line, Problem: fmt.Sprintf("%s is %s, on a mount where nothing can be executed: compiled code cannot be loaded from there", s.Name, *s.Value),
					Hint: "name a folder below /tmp"})
			}
		}
	}
}
