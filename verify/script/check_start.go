package script

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// What a start is estimated by: pip writes the unpacked wheels, which are about
// three times as large, and weights are read once. Both are rates that a common
// cloud machine reaches.
const (
	installRate   = 150e6 // bytes of unpacked wheels a second
	unpacked      = 3
	perWheel      = 0.3 // seconds, for metadata and small files
	weightRate    = 1e9 // bytes a second
	manyWheels    = 40
	manyBytes     = 1 << 30
	warningShare  = 3 // of the limit: a third
	weightMinimum = 1 << 20
)

// weightSuffixes are the ends of the names of files that hold weights.
var weightSuffixes = []string{".safetensors", ".gguf", ".bin", ".pt", ".pth", ".npz", ".npy", ".onnx"}

// checkStart estimates how long the start takes, as far as sizes tell.
func (a *analysis) checkStart() {
	limit := a.options.StartSeconds
	if a.server == nil || limit <= 0 {
		return
	}
	installed, count, at := int64(0), 0, a.server
	for _, st := range a.main.Steps {
		if in, ok := shell.InstallOf(st.Argv); ok && !in.DryRun {
			installed += a.wheelBytes(in, st)
			count += len(a.wheelsOf(in, st))
			at = st
		}
	}
	weights := int64(0)
	for _, p := range a.tree.Below(a.tree.Root) {
		if n := a.tree.Base[p]; n.Size >= weightMinimum && slices.Contains(weightSuffixes, path.Ext(p)) {
			weights += n.Size
		}
	}
	installs := float64(installed)*unpacked/installRate + float64(count)*perWheel
	loads := float64(weights) / weightRate
	text := fmt.Sprintf("about %.0f s of %.0f s: ", installs+loads, limit)
	if count > 0 {
		text += fmt.Sprintf("%d wheels of %s to install, x%d at %s a second and %.1f s each: %.0f s; ", count, gigabytes(installed), unpacked, gigabytes(installRate), perWheel, installs)
	}
	text += fmt.Sprintf("%s of weights to read at %s a second: %.0f s", gigabytes(weights), gigabytes(weightRate), loads)
	f := shell.Finding{Check: "C31", Path: at.Path, Line: at.Line, Got: text, Want: fmt.Sprintf("healthy within %.0f s", limit),
		Hint: "install nothing at the start: ship the packages unpacked, or a program that needs none"}
	switch {
	case installs+loads > limit:
		f.Problem = "the start alone takes longer than its limit"
	case count >= manyWheels || installed >= manyBytes:
		f.Warning, f.Problem = true, "installs a large part of a Python installation at each start, within the limit for the start"
	case (installs+loads)*warningShare > limit:
		f.Warning, f.Problem, f.Hint = true, "the start takes a large part of its limit before any compilation", "ship weights in the form in which they are served, and fewer of them"
	default:
		a.note("estimated start, compilation and imports left out: " + text)
		return
	}
	a.add(f)
}

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
		return
	}
	ninja := a.present("ninja") == shell.Yes || a.machineHas("ninja") == shell.Yes
	if ninja && a.machineHas("nvcc") == shell.Yes {
		return
	}
	off := a.server.Variables["VLLM_USE_FLASHINFER_SAMPLER"] == "0"
	a.add(shell.Finding{Check: "C15", Warning: off || !vendored && a.machineHas("nvcc") != shell.No, Path: a.server.Path, Line: a.server.Line,
		Problem: "flashinfer is there without its compiled kernels: it compiles them on the first request, which needs ninja and nvcc",
		Want:    "flashinfer-jit-cache or flashinfer-cubin of the same version, or ninja and nvcc in the grader's image",
		Hint:    "leave flashinfer-python out, or vendor flashinfer-jit-cache beside it"})
}

// shipsCompileCache reports whether the submission brings vllm's compiled code.
func (a *analysis) shipsCompileCache() bool {
	root := a.server.Variables["VLLM_CACHE_ROOT"]
	if root != "" && (!shell.Known(root) || len(a.tree.Below(absoluteIn(a.server.Folder, root))) > 0) {
		return true
	}
	return slices.ContainsFunc(a.tree.Below(a.tree.Root), func(p string) bool { return strings.Contains(p, "torch_compile_cache") })
}
