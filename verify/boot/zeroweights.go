package boot

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/boot/ask"
	"slipway/verify/boot/local"
	"slipway/verify/boot/shrink"
	"slipway/verify/report"
)

// withZeroWeights is what the start with weights that are all zero is called.
const withZeroWeights = "with zero weights"

const (
	zeroRequests = 16 // that were answered well, asked again
	zeroEnough   = 8  // of them, before they say anything; of drafts, accepted ids
)

// zeroOutcome is what came of a start of the same submission with other
// weights: zero in every element.
type zeroOutcome struct {
	problem       string // why nothing was compared; "": something was
	asked, stayed int    // right answers, or accepted ids, with the submitted weights, and of them with zeros
	drafts        bool
}

// tryZeroWeights starts the submission with weights that are all zero, where it
// answers well with its own: answers that stay do not come from the weights. A
// start that fails shows that the weights matter and is no finding.
func (r *Rehearsal) tryZeroWeights(ctx context.Context, o *observed, examples examples) error {
	questions, steps := o.answeredWell()
	if r.Shrunk != "" || examples.madeUp || len(questions)+len(steps) == 0 {
		return nil
	}
	work := filepath.Join(r.Work, "zero")
	folder := filepath.Join(work, "submission")
	defer func() { _ = os.RemoveAll(work) }() // the whole of Work is the caller's to remove
	if err := copyWithZeros(r.Folder, folder, r.Files); err != nil {
		if errors.Is(err, errNoWeights) {
			return nil
		}
		o.zero = &zeroOutcome{problem: err.Error()}
		return nil
	}
	twin := *r
	twin.Folder, twin.Work = folder, work
	// A start that takes much longer than with weights will not come to anything.
	twin.Profile.Load.StartSeconds = min(r.Profile.Load.StartSeconds, 2*o.first.Healthy+30)
	return twin.askZeroWeights(ctx, o, questions, steps)
}

func (r *Rehearsal) askZeroWeights(ctx context.Context, o *observed, questions []ask.Question, steps []ask.DraftStep) error {
	place, err := r.openLike(ctx, o, r.lies())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		o.zero = &zeroOutcome{problem: "not started so: " + err.Error()}
		return nil
	}
	s := &session{Rehearsal: r, place: place, log: local.NewTail()}
	defer s.close()
	outcome, err := s.begin(ctx, withZeroWeights)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	o.zero = &zeroOutcome{drafts: len(steps) > 0}
	if err != nil {
		o.zero.problem = "not started so: " + err.Error()
		return nil
	}
	if outcome.healthy() {
		s.compareZero(ctx, o, questions, steps)
	} else {
		o.zero.problem = "it did not start: " + outcome.problem
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	o.Starts = append(o.Starts, outcome.Start)
	s.step("started it %s: %s", withZeroWeights, o.zero.text())
	return nil
}

// compareZero asks again what was answered well.
func (s *session) compareZero(ctx context.Context, o *observed, questions []ask.Question, steps []ask.DraftStep) {
	limit := 2*seconds(o.Batch.Seconds) + 2*aloneTime
	asking, stop := context.WithTimeoutCause(ctx, limit, errors.New("not answered in time"))
	defer stop()
	load := s.requestLoad()
	load.Attempts = 1
	if len(steps) > 0 {
		for _, step := range steps {
			o.zero.asked += step.Accepted
		}
		o.zero.stayed = ask.Again(asking, s.server, steps, load)
		return
	}
	o.zero.asked = len(questions)
	answers, _ := ask.All(asking, s.server, questions, load) // at the end of its time, the rest are failed answers
	for _, a := range answers {
		if a.Right() {
			o.zero.stayed++
		}
	}
}

// answeredWell chooses what was answered well: questions with as many different
// answers as there are, so that a server that always says the same is not taken
// for one that knows; the first drafts, the best first.
func (o *observed) answeredWell() (questions []ask.Question, steps []ask.DraftStep) {
	quality := o.rehearsal.Profile.Quality
	switch {
	case quality == nil || o.Batch == nil || o.ended != "" || o.late != "":
		return nil, nil
	case o.drafts != nil:
		if o.drafts.Tau() < quality.Tau {
			return nil, nil
		}
		for _, step := range o.drafts.First {
			if step.Accepted > 0 {
				steps = append(steps, step)
			}
		}
		slices.SortStableFunc(steps, func(a, b ask.DraftStep) int { return cmp.Compare(b.Accepted, a.Accepted) })
		return nil, steps[:min(len(steps), zeroRequests)]
	}
	if answerQuality(o.answers, *quality).Accuracy < quality.Accuracy {
		return nil, nil
	}
	return differentAnswers(o.answers), nil
}

// differentAnswers takes the right answers in turn from each group of those that
// are the same.
func differentAnswers(answers []ask.Answer) []ask.Question {
	var order []string
	groups := map[string][]ask.Question{}
	for _, a := range answers {
		if !a.Right() {
			continue
		}
		text := strings.TrimSpace(a.Question.Answer)
		if groups[text] == nil {
			order = append(order, text)
		}
		groups[text] = append(groups[text], a.Question)
	}
	var chosen []ask.Question
	for turn := 0; ; turn++ {
		var now []ask.Question
		for _, text := range order {
			if turn < len(groups[text]) {
				now = append(now, groups[text][turn])
			}
		}
		if len(now) < 2 || len(chosen) >= zeroRequests {
			return chosen[:min(len(chosen), zeroRequests)] // one answer alone is half of them at most: zeros may well say that too
		}
		chosen = append(chosen, now...)
	}
}

func (z *zeroOutcome) text() string {
	what := "right answers"
	if z.drafts {
		what = "accepted ids"
	}
	if z.problem != "" {
		return z.problem
	}
	text := fmt.Sprintf("%d of %d %s stay", z.stayed, z.asked, what)
	if z.asked < zeroEnough {
		text += fmt.Sprintf(": fewer than %d say nothing", zeroEnough)
	}
	return text
}

// judgeZeroWeights fails where the answers do not come from the weights.
func (o *observed) judgeZeroWeights(v *verdict) {
	z := o.zero
	switch {
	case z == nil:
		return
	case z.problem != "" || z.asked < zeroEnough || !z.drafts && 4*z.stayed < 3*z.asked || z.drafts && 2*z.stayed < z.asked:
		v.Note("started %s: %s", withZeroWeights, z.text())
		return
	}
	f := report.Finding{Path: serveScript, Problem: "the answers stay right when all weights are zero", Want: "answers that come from the weights", Got: z.text(),
		Hint: "what serves is not the submitted checkpoint: a table, or another model"}
	if z.drafts {
		f.Problem = "the drafts stay as good when all weights are zero"
	}
	v.Fail(f)
}

var errNoWeights = errors.New("there are no weights")

// copyWithZeros makes a copy of a submission in which every .safetensors file
// has the same header and zeros for data. Such a file has holes and takes hardly
// any room; the others are the same files where they can be.
func copyWithZeros(from, to string, files []manifest.File) error {
	weights := 0
	for _, file := range files {
		name := filepath.FromSlash(file.Path)
		source, target := filepath.Join(from, name), filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		write := linkOrCopy
		if strings.HasSuffix(file.Path, ".safetensors") {
			write = zeroed
			weights++
		} else if file.Path == shrink.SelftestPath {
			write = func(_, target string) error { return os.WriteFile(target, shrink.NoAnswers, 0o644) }
		}
		if err := write(source, target); err != nil {
			return fmt.Errorf("copy %s with zeros: %w", file.Path, manifest.Cause(err))
		}
	}
	if weights == 0 {
		return errNoWeights
	}
	return nil
}

func linkOrCopy(source, target string) error {
	if os.Link(source, target) == nil {
		return nil
	}
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	return copyPart(source, target, info.Size(), info.Size(), info.Mode().Perm())
}

// zeroed writes a safetensors file's header and leaves the rest a hole.
func zeroed(source, target string) error {
	file, err := os.Open(source)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if _, err := safetensors.ReadHeaderAt(file, info.Size()); err != nil {
		return err
	}
	var length [8]byte
	if _, err := file.ReadAt(length[:], 0); err != nil {
		return err
	}
	return copyPart(source, target, 8+int64(binary.LittleEndian.Uint64(length[:])), info.Size(), info.Mode().Perm())
}

// copyPart copies the first bytes of a file and makes the copy as large as size.
func copyPart(source, target string, bytes, size int64, mode os.FileMode) (err error) {
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if _, err := io.CopyN(to, from, bytes); err != nil {
		return err
	}
	return errors.Join(to.Chmod(mode), to.Truncate(size))
}
