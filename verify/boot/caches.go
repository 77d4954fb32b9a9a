package boot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway/manifest"
	"slipway/verify/boot/local"
	"slipway/verify/boot/sandbox"
	"slipway/verify/report"
	"slipway/verify/words"
)

// cacheFolders are what compilers of kernels call the folders that hold what
// they made, whole or before a user's name.
var cacheFolders = []string{
	".triton", "triton_cache", "torchinductor", "inductor_cache", "torch_compile_cache", "torch_extensions", // PyTorch and Triton
	"cached_ops", "deep_gemm", ".deep_gemm", "xla_cache", "ComputeCache", // FlashInfer, DeepGEMM, XLA, CUDA's driver
}

// shippedCaches are the submission's files that lie in such a folder.
func (r *Rehearsal) shippedCaches() (files []string) {
	isCache := func(folder string) bool {
		return slices.ContainsFunc(cacheFolders, func(name string) bool { return folder == name || strings.HasPrefix(folder, name+"_") })
	}
	for _, file := range r.Files {
		if slices.ContainsFunc(strings.Split(file.Path, "/"), isCache) {
			files = append(files, file.Path)
		}
	}
	return files
}

// withoutCaches is what the start without the shipped caches is called.
const withoutCaches = "without the caches that it ships"

// tryWithoutCaches starts the submission with the folders of its caches empty,
// where its first start read any of them: the difference is what they are worth.
func (r *Rehearsal) tryWithoutCaches(ctx context.Context, o *observed) error {
	caches := r.shippedCaches()
	isRead := func(f sandbox.Opened) bool {
		return f.Exists && slices.Contains(caches, strings.TrimPrefix(f.Path, o.at+"/"))
	}
	if len(caches) == 0 || o.trace == nil || !slices.ContainsFunc(o.trace.Opened, isRead) {
		return nil
	}
	work := filepath.Join(r.Work, "cold")
	defer func() { _ = os.RemoveAll(work) }() // the whole of Work is the caller's to remove
	twin := *r
	twin.Folder, twin.Work = filepath.Join(work, "submission"), work
	if err := linkWithout(r.Folder, twin.Folder, r.Files, caches); err != nil {
		o.cold = &startOutcome{problem: "not tried: " + err.Error()}
		return nil
	}
	place, err := twin.openLike(ctx, o, r.lies())
	if err != nil {
		return err
	}
	s := &session{Rehearsal: &twin, place: place, log: local.NewTail()}
	defer s.close()
	outcome, err := s.begin(ctx, withoutCaches)
	if err != nil {
		return err
	}
	o.cold, o.Starts = &outcome, append(o.Starts, outcome.Start)
	s.step("started it %s: %s", withoutCaches, coldText(&outcome))
	return nil
}

// linkWithout gives a submission's files a second name each, but for some, whose
// folders are there.
func linkWithout(from, to string, files []manifest.File, without []string) error {
	for _, file := range files {
		target := filepath.Join(to, filepath.FromSlash(file.Path))
		err := os.MkdirAll(filepath.Dir(target), 0o755)
		if err == nil && !slices.Contains(without, file.Path) {
			err = os.Link(filepath.Join(from, filepath.FromSlash(file.Path)), target)
		}
		if err != nil {
			return fmt.Errorf("link %s: %w", file.Path, manifest.Cause(err))
		}
	}
	return nil
}

func coldText(cold *startOutcome) string {
	if !cold.healthy() {
		return cold.problem
	}
	return fmt.Sprintf("healthy after %s", rounded(seconds(cold.Healthy)))
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
	if caches := o.rehearsal.shippedCaches(); len(caches) > 0 {
		text := fmt.Sprintf("it ships %s (%s)", words.Plural(len(caches), "file of caches"), caches[0])
		switch {
		case faster:
			v.Note("%s, and what the first start made itself saves the second %s: caches are found by versions and paths, and some of these were not", text, rounded(took-warm))
		case warm > 0:
			v.Note("%s; with what the first start left, too, the second took %s", text, rounded(warm))
		default:
			v.Note("%s", text)
		}
	}
	if o.cold != nil {
		v.Note("started %s: %s", withoutCaches, coldText(o.cold))
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
