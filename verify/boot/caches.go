package boot

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway/verify/report"
)

// cacheFolders are what compilers of kernels call the folders that hold what
// they made, whole or before a user's name.
var cacheFolders = []string{
	".triton", "triton_cache", "torchinductor", "inductor_cache", "torch_compile_cache", "torch_extensions", // PyTorch and Triton
	"cached_ops", "deep_gemm", ".deep_gemm", "xla_cache", "ComputeCache", // FlashInfer, DeepGEMM, XLA, CUDA's driver
}

// shippedCaches counts the submission's files that lie in such a folder, and
// names the first.
func (r *Rehearsal) shippedCaches() (n int, first string) {
	for _, file := range r.Files {
		for folder := range strings.SplitSeq(file.Path, "/") {
			if !slices.ContainsFunc(cacheFolders, func(name string) bool { return folder == name || strings.HasPrefix(folder, name+"_") }) {
				continue
			}
			if n++; first == "" {
				first = file.Path
			}
			break
		}
	}
	return n, first
}

// leastSaved is how much sooner the second start must be healthy to be worth a
// word.
const leastSaved = time.Second

// warm is how long the start in the home of the first one took, and whether it
// was much faster: then the first left something there that it made.
func (o *observed) warm() (took time.Duration, faster bool) {
	i := slices.IndexFunc(o.again, func(again startOutcome) bool { return again.What == startedAgain })
	if i < 0 || !o.first.healthy() || !o.again[i].healthy() {
		return 0, false
	}
	first, took := seconds(o.first.Healthy), seconds(o.again[i].Healthy)
	return took, 2*took < first && first-took >= leastSaved
}

// judgeTime judges how long the first start took of what it may: it had nothing
// but what is shipped, as on the grader's machine.
func (o *observed) judgeTime(v *verdict, limit time.Duration) {
	took := seconds(o.first.Healthy)
	v.Note("healthy after %s of %s", rounded(took), limit)
	warm, faster := o.warm()
	if faster {
		v.Note("started again, in the home that the first start left, it was healthy after %s: the grader's machine has no such home", rounded(warm))
	}
	if n, first := o.rehearsal.shippedCaches(); n > 0 {
		text := fmt.Sprintf("it ships %d files of caches (%s)", n, first)
		switch {
		case faster:
			v.Note("%s, and what the first start made itself saves the second %s: caches are found by versions and paths, and some of these were not", text, rounded(took-warm))
		case warm > 0:
			v.Note("%s; with what the first start left, too, the second took %s", text, rounded(warm))
		default:
			v.Note("%s", text)
		}
	}
	if took <= limit*6/10 {
		return
	}
	f := report.Finding{Path: serveScript, Problem: fmt.Sprintf("the start takes %.0f%% of the time there is", 100*took.Seconds()/limit.Seconds()),
		Want: "60% at most", Got: rounded(took).String(), Hint: "the grader's disk may be slower: load less, compile nothing at start"}
	if faster {
		f.Problem += ": it rests on caches that the grader's machine does not have"
		f.Got += fmt.Sprintf(", and %s with what that start left behind", rounded(warm))
		f.Hint = "ship what the first start compiles, or choose a backend that compiles nothing"
	}
	v.Warn(f)
}
