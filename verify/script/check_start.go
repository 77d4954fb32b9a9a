package script

import (
	"fmt"
	"path"
	"slices"
	"strconv"

	"slipway/verify/script/shell"
)

// What a start is estimated by: pip writes the unpacked wheels, which are about
// three times as large where nobody looked, and compiles their modules; weights are
// read once. The rates are those that a common cloud machine reaches.
const (
	installRate   = 150e6 // bytes of unpacked wheels a second
	unpacked      = 3
	perWheel      = 0.3 // seconds, for metadata and small files
	perModule     = 1. / 1500
	weightRate    = 1e9 // bytes a second
	manyWheels    = 40
	manyBytes     = 1 << 30
	warningShare  = 3 // of the limit: a third
	weightMinimum = 1 << 20
)

// weightSuffixes are the ends of the names of files that hold weights.
var weightSuffixes = []string{".safetensors", ".gguf", ".bin", ".pt", ".pth", ".npz", ".npy", ".onnx"}

// defaultMemoryShare is vllm's --gpu-memory-utilization where it is not given.
const defaultMemoryShare = 0.9

// checkMemory holds the weights against the part of the accelerator's memory that
// vllm is given.
func (a *analysis) checkMemory(weights int64) {
	i := a.options.Image
	server, args := serverOf(a.server.Argv)
	if server != "vllm" || i == nil || i.GPU == nil || i.GPU.MemoryBytes == 0 {
		return
	}
	options := optionMap(args)
	share, err := strconv.ParseFloat(options["--gpu-memory-utilization"], 64)
	if err != nil {
		share = defaultMemoryShare
	}
	if room := int64(share * float64(i.GPU.MemoryBytes)); weights > room && options["--tensor-parallel-size"] == "" && options["-tp"] == "" {
		a.add(shell.Finding{Check: "C24", Warning: true, Path: a.server.Path, Line: a.server.Line, Problem: "the weights are larger than the memory that vllm is given",
			Want: "at most " + gigabytes(room), Got: gigabytes(weights), Hint: "ship them quantized, or give it more by --gpu-memory-utilization"})
	}
}

// checkStart estimates how long the start takes, as far as sizes tell.
func (a *analysis) checkStart() {
	limit := a.options.StartSeconds
	if a.server == nil || limit <= 0 {
		return
	}
	var all cost
	at := a.server
	for _, st := range a.main.Steps {
		if in, ok := shell.InstallOf(st.Argv); ok && !in.DryRun {
			all.add(a.costOf(in, st))
			at = st
		}
	}
	weights := int64(0)
	for _, p := range a.tree.Below(a.tree.Root) {
		if n := a.tree.Base[p]; n.Size >= weightMinimum && slices.Contains(weightSuffixes, path.Ext(p)) {
			weights += n.Size
		}
	}
	a.checkMemory(weights)
	installs := float64(all.unpacked)/installRate + float64(all.wheels)*perWheel + float64(all.modules)*perModule
	loads := float64(weights) / weightRate
	text := fmt.Sprintf("about %.0f s of %.0f s: ", installs+loads, limit)
	if all.wheels > 0 {
		text += fmt.Sprintf("%d wheels of %s to install, %s unpacked, at %s a second and %.1f s each", all.wheels, gigabytes(all.packed), gigabytes(all.unpacked), gigabytes(installRate), perWheel)
		if all.modules > 0 {
			text += fmt.Sprintf(", and %d modules to compile", all.modules)
		}
		text += fmt.Sprintf(": %.0f s; ", installs)
	}
	text += fmt.Sprintf("%s of weights to read at %s a second: %.0f s", gigabytes(weights), gigabytes(weightRate), loads)
	f := shell.Finding{Check: "C31", Path: at.Path, Line: at.Line, Got: text, Want: fmt.Sprintf("healthy within %.0f s", limit),
		Hint: "install nothing at the start: ship the packages unpacked, or a program that needs none"}
	switch {
	case installs+loads > limit:
		f.Problem = "the start alone takes longer than its limit"
	case all.wheels >= manyWheels || all.packed >= manyBytes:
		f.Warning, f.Problem = true, "installs a large part of a Python installation at each start, within the limit for the start"
	case (installs+loads)*warningShare > limit:
		f.Warning, f.Problem, f.Hint = true, "the start takes a large part of its limit before any compilation", "ship weights in the form in which they are served, and fewer of them"
	default:
		a.note("estimated start, compilation and imports left out: " + text)
		return
	}
	a.add(f)
}

// cost is what an installation writes.
type cost struct {
	wheels, modules  int
	packed, unpacked int64
}

func (c *cost) add(d cost) {
	c.wheels, c.modules, c.packed, c.unpacked = c.wheels+d.wheels, c.modules+d.modules, c.packed+d.packed, c.unpacked+d.unpacked
}

func (a *analysis) costOf(in shell.Install, st *shell.Step) (c cost) {
	for p := range a.wheelsOf(in, st) {
		size := a.tree.Base[p].Size
		c.add(cost{wheels: 1, packed: size, unpacked: size * unpacked})
		for i := range a.shippedWheels {
			if w := &a.shippedWheels[i]; path.Join(a.tree.Root, w.Path) == p && w.Unpacked > 0 {
				c.unpacked += w.Unpacked - size*unpacked
				if !slices.Contains(st.Argv, "--no-compile") && in.Name[0] != "uv" {
					c.modules += w.Modules
				}
			}
		}
	}
	return c
}
