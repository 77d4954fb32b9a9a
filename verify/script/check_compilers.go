package script

import (
	"path"
	"slices"
	"strings"

	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// checkCompilers looks for what compiles on the first use and has no compiler.
func (a *analysis) checkCompilers() {
	if a.server == nil {
		return
	}
	server, args := serverOf(a.server.Argv)
	engine := server == "vllm" || server == "sglang" || a.usesAny([]string{"vllm", "sglang"}) != ""
	a.checkFlashinfer(engine)
	needs := []python.ProgramNeed{}
	for _, m := range a.modules {
		if m.main {
			needs = append(needs, python.Programs(m.path, m.parsed)...)
		}
	}
	if engine {
		needs = append(needs, python.ProgramNeed{Program: "gcc", Or: []string{"cc", "clang"}, Path: a.server.Path, Line: a.server.Line,
			Why: "its kernels are Triton's, which builds their launchers with a C compiler"})
	}
	for _, need := range needs {
		a.checkProgram(need)
	}
	a.checkHeaders(needs)
	if engine && server == "vllm" && !slices.Contains(args, "--enforce-eager") && !slices.ContainsFunc(args, func(w string) bool { return strings.HasPrefix(w, "-O0") }) && !a.shipsCompileCache() {
		a.add(shell.Finding{Check: "C15", Warning: true, Path: a.server.Path, Line: a.server.Line,
			Problem: "vllm compiles and captures graphs at each start, within the limit for the start", Hint: "add --enforce-eager, or ship its compile cache and name it in VLLM_CACHE_ROOT"})
	}
}

// checkProgram looks for a compiler.
func (a *analysis) checkProgram(need python.ProgramNeed) {
	if need.Program == "ninja" && a.present("ninja") == shell.Yes || need.Why != "" && strings.HasPrefix(need.Why, "flashinfer") {
		return
	}
	if compiler := a.server.Variables["CC"]; compiler != "" && strings.Contains("gcc cc clang", need.Program) {
		return
	}
	there := shell.No
	for _, name := range append([]string{need.Program}, need.Or...) {
		switch has := a.machineHas(name); {
		case has == shell.Yes:
			return
		case !has.Certain():
			there = has
		}
	}
	// gcc, cc and clang come together: one that is known to be absent tells
	// enough where nothing is known of the others.
	if i := a.options.Image; i != nil {
		if has, known := i.Programs["gcc"]; known && !has && strings.Contains("gcc cc clang", need.Program) {
			there = shell.No
		}
	}
	f := shell.Finding{Check: "C15", Warning: there != shell.No, Path: need.Path, Line: need.Line, Want: strings.Join(append([]string{need.Program}, need.Or...), " or ") + " on PATH",
		Problem: need.Why + "; the grader's image has none", Hint: "use what is compiled already, or ship a compiler"}
	if f.Warning {
		f.Problem = need.Why + "; nobody says whether the grader's image has one"
		f.Hint = "describe the grader's machine with an image file"
	}
	a.add(f)
}

// checkHeaders looks for Python.h, which Triton's launchers include.
func (a *analysis) checkHeaders(needs []python.ProgramNeed) {
	i := a.options.Image
	if i == nil || i.Python == nil || i.Python.Headers == nil || *i.Python.Headers {
		return
	}
	if at := slices.IndexFunc(needs, func(n python.ProgramNeed) bool { return strings.Contains(n.Why, "Triton") }); at >= 0 {
		a.add(shell.Finding{Check: "C15", Path: needs[at].Path, Line: needs[at].Line, Want: "Python.h", Problem: needs[at].Why + " and Python's headers; the grader's image has no Python.h",
			Hint: "use what is compiled already, or ship the headers and name their folder in C_INCLUDE_PATH"})
	}
}

// machineHas is what the image says of a program.
func (a *analysis) machineHas(name string) shell.Answer {
	if a.options.Image != nil {
		if has, ok := a.options.Image.Programs[name]; ok {
			return shell.IsTrue(has)
		}
	}
	return shell.PerhapsNo
}

// checkFlashinfer looks for flashinfer without its compiled kernels: it then
// compiles them on the first request, with ninja and nvcc.
func (a *analysis) checkFlashinfer(engine bool) {
	vendored, imported := a.shipped("flashinfer-python"), a.usesAny([]string{"flashinfer"}) != ""
	present := a.present("flashinfer-python") == shell.Yes
	if !present || !engine && !imported && !vendored {
		return
	}
	if a.present("flashinfer-cubin") == shell.Yes || a.present("flashinfer-jit-cache") == shell.Yes {
		a.checkFlashinferVersions()
		return
	}
	if a.hasNinja() && a.machineHas("nvcc") == shell.Yes {
		return
	}
	off := a.server.Variables["VLLM_USE_FLASHINFER_SAMPLER"] == "0"
	a.add(shell.Finding{Check: "C15", Warning: off || !vendored && a.machineHas("nvcc") != shell.No, Path: a.server.Path, Line: a.server.Line,
		Problem: "flashinfer is there without its compiled kernels: it compiles them on the first request, which needs ninja and nvcc",
		Want:    "flashinfer-jit-cache or flashinfer-cubin of the same version, or ninja and nvcc in the grader's image",
		Hint:    "leave flashinfer-python out, or vendor flashinfer-jit-cache beside it"})
}

// checkFlashinferVersions holds the wheel of compiled kernels against that which
// loads them: flashinfer refuses those of another version as it is imported.
func (a *analysis) checkFlashinferVersions() {
	for _, name := range []string{"flashinfer-cubin", "flashinfer-jit-cache"} {
		for version, where := range a.versions(name) {
			public, _, _ := strings.Cut(version, "+")
			for own := range a.versions("flashinfer-python") {
				if own, _, _ = strings.Cut(own, "+"); own != public {
					a.add(shell.Finding{Check: "C15", Path: where, Problem: "is of another version than flashinfer-python, which refuses it as it is imported",
						Want: own, Got: public, Hint: "vendor both of one version"})
				}
			}
		}
	}
}

// hasNinja reports whether the server finds ninja on PATH: the machine's, or that
// of a wheel, whose programs pip puts into the target's bin.
func (a *analysis) hasNinja() bool {
	if a.machineHas("ninja") == shell.Yes {
		return true
	}
	if a.present("ninja") != shell.Yes {
		return false
	}
	targets := false
	for _, st := range a.main.Steps {
		in, _ := shell.InstallOf(st.Argv)
		for _, target := range in.Targets {
			targets = true
			if slices.Contains(strings.Split(a.server.Variables["PATH"], ":"), path.Join(absoluteIn(st.Folder, target), "bin")) {
				return true
			}
		}
	}
	return !targets
}

// shipsCompileCache reports whether the submission brings vllm's compiled code.
func (a *analysis) shipsCompileCache() bool {
	root := a.server.Variables["VLLM_CACHE_ROOT"]
	if root != "" && (!shell.Known(root) || len(a.tree.Below(absoluteIn(a.server.Folder, root))) > 0) {
		return true
	}
	return slices.ContainsFunc(a.tree.Below(a.tree.Root), func(p string) bool { return strings.Contains(p, "torch_compile_cache") })
}
