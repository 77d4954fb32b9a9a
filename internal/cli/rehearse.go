package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"slipway/bundle/config"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/layout"
	"slipway/manifest/registry"
	"slipway/manifest/registry/embedded"
	"slipway/verify"
	"slipway/verify/boot"
	"slipway/verify/compare"
)

func (a *app) rehearseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rehearse [BUNDLE]",
		Short: "Build, push, pull, compare, verify and start: the whole way, before it counts",
		Long: `Takes bundle.hcl (or another bundle), pushes it to a registry of its own that
lives as long as the rehearsal, pulls it back, compares what came back with what
was sent, verifies it and unpacks it. A folder that slipway did not make is
verified and copied as it lies. Then serve.sh is started in a sandbox, the
grader's machine in miniature, asked what the profile's grader asks, ended, and
started again; where this system gives no sandbox, it is started without one, and
the report says what that leaves open. It needs room for three copies in the
temporary folder and leaves nothing there; with --to, the tag stays in that
registry.

The verdict is PASS (exit code 0), FAIL or UNDECIDED (exit code 3). --require
says what must have been decided for a PASS: quality, whether the answers are any
good (the default), static (gates that the profile lets stay undecided may), boot
(every gate that needs the submission to run), or all.`,
		Args: between(0, 1),
	}
	var t trust
	t.flags(cmd)
	a.httpFlag(cmd)
	a.cacheFlag(cmd)
	a.relockFlag(cmd)
	var b bootFlags
	b.flags(cmd)
	asJSON := jsonFlag(cmd)
	into := reportFlag(cmd)
	to := cmd.Flags().String("to", "", "rehearse with this registry reference instead of the embedded registry")
	details := cmd.Flags().Bool("details", false, "print the whole report: notes, counts and what was measured, too")
	require := cmd.Flags().String("require", "quality", "what must be decided for a PASS: static, quality, boot or all")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if requirements[*require] == nil {
			return usageError{fmt.Errorf("--require %q is not static, quality, boot or all", *require)}
		}
		if *to != "" {
			if _, err := pushReference(*to); err != nil {
				return err
			}
		}
		a.rehearsing = true
		r := &rehearsal{app: a, subject: bundleFile(args), to: *to, require: *require, asJSON: *asJSON}
		var err error
		if r.booting, err = b.rehearsal(); err != nil {
			return err
		}
		r.shrink, r.details = b.shrink, *details
		defer t.close()
		if err := r.readTrust(cmd.Context(), &t); err != nil {
			return err
		}
		if err := b.examples.replace(&r.options); err != nil {
			return err
		}
		if err := b.readGolden(&r.options, r.booting); err != nil {
			return err
		}
		trustImages(&r.options)
		if r.report, err = openReport(cmd, *into, r.taken()); err != nil {
			return err
		}
		defer r.report.abandon()
		return r.run(cmd.Context())
	}
	return cmd
}

// rehearsal goes through the steps of one rehearsal.
type rehearsal struct {
	*app
	subject string
	to      string
	require string // of requirements
	asJSON  bool   // steps go to standard error
	options verify.Options
	booting *boot.Rehearsal
	shrink  bool // start a tiny twin of the model
	details bool // print the whole report
	report  *reportFolder
	waits   *waits
	work    string
	steps   int
}

// taken is what a rehearsal takes: of a folder that holds a bundle.hcl, that.
func (r *rehearsal) taken() string {
	if path, _, kind := classify(r.subject); kind == content.OriginFolder && holdsBundle(path) {
		return filepath.Join(path, "bundle.hcl")
	}
	return r.subject
}

// readTrust takes the profile from the bundle.hcl where no flag names one: its
// owner wrote both, and the report prints the profile's digest.
func (r *rehearsal) readTrust(ctx context.Context, t *trust) error {
	path, _, kind := classify(r.subject)
	if kind == content.OriginReference {
		if _, err := registry.ParseReference(r.subject); err != nil {
			return notThere(r.subject, referenceError{err})
		}
	}
	if kind == content.OriginFolder && holdsBundle(path) {
		path, kind = filepath.Join(path, "bundle.hcl"), originPlan
	}
	if kind == originPlan && t.profile == "" {
		wanted, err := config.LoadBundle(path)
		if err != nil {
			return err
		}
		t.profile, t.named = wanted.ProfileSource(), path
	}
	var err error
	r.options, err = t.options(ctx)
	if r.GoCommand != "" {
		r.options.Rebuild = r.rebuild
	}
	return err
}

func (r *rehearsal) step(format string, args ...any) {
	r.waits.end()
	r.steps++
	out := r.Stdout
	if r.asJSON {
		out = r.Stderr
	}
	fmt.Fprintf(out, "%d. %s\n", r.steps, manifest.Printable(fmt.Sprintf(format, args...)))
}

func (r *rehearsal) run(ctx context.Context) (err error) {
	work, done, err := r.workFolder("slipway-rehearse-*")
	if err != nil {
		return err
	}
	r.work = work
	defer func() {
		if removeErr := done(); err == nil {
			err = removeErr
		}
	}()
	tree, digest, err := r.obtain(ctx)
	if err != nil {
		return err
	}
	defer tree.Close()
	result, err := r.verify(ctx, tree, r.options)
	if err != nil {
		return err
	}
	if tree.Artifact != nil {
		r.step("verified what came back")
	} else {
		digest = result.Set
		r.step("verified it")
	}
	if err := r.boot(ctx, tree, result); err != nil {
		return err
	}
	result.Require(requirements[r.require])
	if err := r.report.write(result); err != nil {
		return err
	}
	return r.conclude(result, digest)
}

// obtain returns the submission as whoever pulls it has it, and the artifact's
// digest. A folder of files is no artifact: it is taken as it lies.
func (r *rehearsal) obtain(ctx context.Context) (*content.Tree, string, error) {
	path, _, kind := classify(r.subject)
	if kind == content.OriginFolder && !holdsBundle(path) {
		if r.to != "" {
			return nil, "", usageError{manifest.WithHint(fmt.Errorf("--to %s: %s is a folder of files and holds no artifact to push", r.to, r.subject), "leave --to out, or write a bundle.hcl (slipway init)")}
		}
		tree, err := content.OpenFolder(ctx, path)
		if err != nil {
			return nil, "", err
		}
		r.step("took the files of %s as they lie: %s, %s; a folder is not pushed", r.subject, count(len(tree.Files), "file"), size(treeBytes(tree)))
		return tree, "", nil
	}
	from, err := r.openSource(ctx, r.subject, r.cache())
	if err != nil {
		return nil, "", err
	}
	defer from.close()
	built, err := content.OpenArtifact(ctx, from, from.name, from.origin, r.subject)
	if err != nil {
		return nil, "", err
	}
	defer built.Close()
	digest := built.Artifact.Descriptor.Digest
	r.step("built %s: %s, %s, %s", r.subject, count(len(built.Files), "file"), size(treeBytes(built)), count(len(built.Artifact.Manifest.Layers), "layer"))

	pulledInto, err := r.roundTrip(ctx, from)
	if err != nil {
		return nil, "", err
	}
	pulled, err := layout.OpenTree(ctx, pulledInto, "rehearsal", r.subject)
	if err != nil {
		return nil, "", err
	}
	if err := r.compare(ctx, built, pulled); err != nil {
		return nil, "", errors.Join(err, pulled.Close())
	}
	return pulled, digest.String(), nil
}

// roundTrip pushes the bundle and pulls it back into a layout.
func (r *rehearsal) roundTrip(ctx context.Context, from *source) (string, error) {
	target, where := r.to, r.to
	if target == "" {
		address, stop, err := embedded.Start(filepath.Join(r.work, "registry"), embedded.Options{})
		if err != nil {
			return "", err
		}
		defer stop()
		target, where = address+"/rehearsal:latest", "an embedded registry on "+address
	}
	ref, err := pushReference(target)
	if err != nil {
		return "", err
	}
	if _, err := r.push(ctx, from, ref); err != nil {
		// Of an error that comes over HTTP only the text is left.
		if r.to == "" && strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
			return "", manifest.WithHint(err, "a rehearsal needs room for three copies in the temporary folder: free some there, or set TMPDIR to a folder on another disk")
		}
		return "", err
	}
	r.step("pushed it to %s", where)
	repository, err := registry.Open(ref, r.registryOptions(nil))
	if err != nil {
		return "", err
	}
	into := filepath.Join(r.work, "pulled")
	back := &source{Reader: repository, name: ref.Tag, shown: where, remedy: "the registry sent other bytes than its manifest names"}
	if _, err := r.pull(ctx, back, into, "rehearsal"); err != nil {
		return "", err
	}
	r.step("pulled it back")
	return into, nil
}

func (r *rehearsal) compare(ctx context.Context, sent, received *content.Tree) error {
	difference, err := compare.Trees(ctx, sent, received, compare.Options{Claimed: true}) // verify reads the bytes
	if err != nil {
		return err
	}
	a, b := sent.Artifact.Descriptor, received.Artifact.Descriptor
	if a.Digest != b.Digest || !difference.Same() {
		r.printDifference(difference)
		return fmt.Errorf("compare: sent %s, got %s back", a.Digest, b.Digest)
	}
	r.step("compared: what came back is what was sent, file by file")
	return nil
}
