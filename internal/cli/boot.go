package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify"
	"slipway/verify/boot"
	"slipway/verify/boot/ask"
	"slipway/verify/boot/sandbox"
	"slipway/verify/boot/shrink"
	"slipway/verify/modelconfig"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// bootFlags say how a submission is started, and what its answers are compared
// with.
type bootFlags struct {
	bare, noExec, gpu bool
	shrink            bool
	memory            string
	cpus              float64
	golden            string
	goldenShare       float64
	examples          publicExamples
}

func (b *bootFlags) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&b.bare, "bare", false, "start it without a sandbox: gates that need one stay undecided")
	flags.BoolVar(&b.noExec, "noexec", false, "mount the submission noexec, as some graders do")
	flags.BoolVar(&b.gpu, "gpu", false, "let it use this machine's accelerator")
	flags.BoolVar(&b.shrink, "shrink", false, "start a tiny twin of the model, for machines that the real one does not fit")
	flags.StringVar(&b.memory, "memory", "", "memory that it may use, like 16GiB; default: the profile's image, else all")
	flags.Float64Var(&b.cpus, "cpus", 0, "processors that it may use; default: the profile's image, else all")
	flags.StringVar(&b.golden, "golden", "", "file of reference answers or drafts (weights golden) that it must give too")
	flags.Float64Var(&b.goldenShare, "golden-share", 0.9, "least share of them")
	b.examples.flags(cmd)
}

// rehearsal makes a rehearsal of the flags; the submission is still to be named.
func (b *bootFlags) rehearsal() (*boot.Rehearsal, error) {
	r := &boot.Rehearsal{Bare: b.bare, NoExec: b.noExec, GPU: b.gpu, CPUs: b.cpus, GoldenShare: b.goldenShare, Examples: cmp.Or(b.examples.questions, b.examples.continuations)}
	if b.cpus < 0 || math.IsNaN(b.cpus) || math.IsInf(b.cpus, 0) {
		return nil, usageError{fmt.Errorf("--cpus %v is no number of processors", b.cpus)}
	}
	if !(b.goldenShare > 0 && b.goldenShare <= 1) {
		return nil, usageError{fmt.Errorf("--golden-share %v is not above 0 and at most 1", b.goldenShare)}
	}
	if err := b.examples.check(); err != nil {
		return nil, usageError{err}
	}
	var err error
	if r.Memory, err = parseMemory(b.memory); err != nil {
		return nil, usageError{fmt.Errorf("--memory: %w", err)}
	}
	return r, nil
}

// readGolden reads what the answers or drafts of a profile's task are compared
// with, and puts its file among what the verdict rests on.
func (b *bootFlags) readGolden(options *verify.Options, r *boot.Rehearsal) error {
	if b.golden == "" {
		return nil
	}
	data, err := readSmall(b.golden)
	if err != nil {
		return err
	}
	kind, written := "golden answers", "--questions"
	if options.Profile.Load.Endpoint == ask.DraftPath {
		kind, written = "golden drafts", "--continuations"
		r.GoldenDrafts, err = ask.ReadDraftReferences(data)
		err = some(r.GoldenDrafts, err)
	} else {
		r.Golden, err = ask.ReadReferences(data)
		err = some(r.Golden, err)
	}
	if err != nil {
		return manifest.WithHint(fmt.Errorf("read %s as %s: %w", b.golden, kind, err), "slipway weights golden "+written+" FILE writes them")
	}
	options.Trust = append(options.Trust, report.Trust{Input: kind + " " + b.golden, Digest: manifest.DigestBytes(data)})
	return nil
}

// parseMemory reads a number of bytes, "8GiB" or "512MiB"; 0 for "".
func parseMemory(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	units := map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
	digits := strings.TrimRight(text, "BKMGTi ")
	unit, known := units[strings.TrimSpace(text[len(digits):])]
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || number < 1 || number > math.MaxInt64/unit {
		return 0, manifest.WithHint(fmt.Errorf("%q is no size", manifest.Clip(text)), "write a whole number and KiB, MiB, GiB or TiB")
	}
	return number * unit, nil
}

// boot unpacks the submission, starts it, questions it, and decides the
// report's dynamic gates. A submission without serve.sh cannot be started, and
// that is said.
func (r *rehearsal) boot(ctx context.Context, tree *content.Tree, result *report.Report) error {
	if _, ok := tree.Lookup("serve.sh"); !ok {
		r.step("not started: there is no serve.sh")
		var o report.Outcome
		o.Fail(report.Finding{Path: "serve.sh", Problem: "is not there: nothing can be started",
			Hint: fmt.Sprintf(`write one that starts the server on port %d; runtime "native" in bundle.hcl brings one`, r.options.Profile.Load.Port)})
		result.Decide([]report.GateResult{o.Result("startup")}, nil)
		return nil
	}
	if len(tree.Faults) > 0 {
		r.step("not started: what gate paths found cannot be copied")
		return nil
	}
	work := filepath.Join(r.work, "boot")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	b := r.booting
	b.Folder, b.Work = filepath.Join(work, "submission"), work
	if _, err := r.unpack(ctx, tree, b.Folder); err != nil {
		return err
	}
	r.waits = r.app.waits()
	defer r.waits.end()
	b.Profile, b.Step, b.Waiting = r.options.Profile, r.step, r.waits.tell
	files := tree.Files
	if r.shrink {
		twin, err := r.twin(ctx, b)
		if err != nil {
			return err
		}
		defer twin.Close()
		files = twin.Files
	}
	for _, file := range files {
		b.Files = append(b.Files, file.File)
	}
	if b.Profile.VisionMTP != profiles.Added {
		b.Unused = weightsBesidesText(b.Folder, b.Files)
	}
	if r.foreign() {
		b.Foreign = r.platform()
	}
	b.Vocabulary, b.Largest = vocabularyOf(b.Folder, b.Files)
	b.Hide, b.Path = r.privateFolders(), r.Path
	if image := b.Profile.Image; image != nil {
		if b.Memory == 0 {
			b.Memory = image.MemoryBytes
		}
		if b.CPUs == 0 {
			b.CPUs = image.CPUs
		}
	}
	measured, results, err := b.Run(ctx)
	if err != nil {
		return err
	}
	result.Decide(results, measured)
	return nil
}

// twinBytes is the most that a twin's weights may have.
const twinBytes = 256 << 20

// twin replaces the submission by one with a tiny twin of its model.
func (r *rehearsal) twin(ctx context.Context, b *boot.Rehearsal) (*content.Tree, error) {
	target := filepath.Join(b.Work, "twin")
	described, err := shrink.Twin(b.Folder, target, twinBytes)
	if err != nil {
		return nil, err
	}
	r.step("made a tiny twin of the model: %s", described)
	b.Folder, b.Shrunk = target, described.String()
	return content.OpenFolder(ctx, target)
}

// privateFolders are those of this machine that a grader's does not have: the
// homes of its users, what is mounted, and what slipway keeps.
func (a *app) privateFolders() []string {
	folders := []string{"/root", "/home", "/Users", "/mnt", "/media"}
	for _, variable := range a.Variables {
		if home, ok := strings.CutPrefix(variable, "HOME="); ok && filepath.IsAbs(home) && filepath.Clean(home) != "/" {
			folders = append(folders, filepath.Clean(home))
		}
	}
	if a.CacheDir != "" {
		folders = append(folders, a.CacheDir)
	}
	return folders
}

// weightsBesidesText are the weight files that hold nothing of a text model. A
// file that cannot be read is another gate's business.
func weightsBesidesText(folder string, files []manifest.File) map[string]bool {
	unused := map[string]bool{}
	for _, file := range files {
		if !strings.HasSuffix(file.Path, ".safetensors") {
			continue
		}
		header, err := headerOf(filepath.Join(folder, filepath.FromSlash(file.Path)), file.Size)
		if err != nil {
			continue
		}
		unused[file.Path] = !slices.ContainsFunc(header.Tensors, func(t safetensors.Tensor) bool {
			role := manifest.RoleOf(t.Name)
			return role != manifest.RoleVision && role != manifest.RoleMTP
		})
	}
	return unused
}

// vocabularyOf is how many token ids the models of a folder have in common, and
// how many one has at most, as their config.json says; 0 where none does. One that
// cannot be read is another gate's business.
func vocabularyOf(folder string, files []manifest.File) (least, most int64) {
	for _, file := range files {
		if path.Base(file.Path) != "config.json" {
			continue
		}
		data, err := readSmall(filepath.Join(folder, filepath.FromSlash(file.Path)))
		if err != nil {
			continue
		}
		c, err := modelconfig.Parse(data)
		if err != nil || c.Vocabulary <= 0 {
			continue
		}
		most = max(most, c.Vocabulary)
		if least == 0 || c.Vocabulary < least {
			least = c.Vocabulary
		}
	}
	return least, most
}

func headerOf(name string, size int64) (*safetensors.Header, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return safetensors.ReadHeaderAt(file, size)
}

// workFolder makes a folder that is gone when done is called, and when this
// program ends in any other way.
func (a *app) workFolder(pattern string) (folder string, done func() error, err error) {
	// The janitor is told first: one that is killed in between leaves nothing.
	folder = filepath.Join(a.TempDir, strings.Replace(pattern, "*", rand.Text(), 1))
	if a.TempDir == "" {
		folder = filepath.Join(os.TempDir(), folder)
	}
	stop, err := sandbox.Janitor(folder)
	if err != nil && !errors.Is(err, sandbox.ErrUnsupported) {
		return "", nil, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		if stop != nil {
			stop()
		}
		return "", nil, err
	}
	return folder, func() error {
		err := os.RemoveAll(folder)
		if stop != nil {
			stop()
		}
		return err
	}, nil
}
