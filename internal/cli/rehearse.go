package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"slipway/bundle/config"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/layout"
	"slipway/manifest/registry"
	"slipway/manifest/registry/embedded"
	"slipway/verify"
	"slipway/verify/compare"
)

func (a *app) rehearseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rehearse [BUNDLE]",
		Short: "Build, push, pull, compare and verify: the whole way, before it counts",
		Long: `Takes bundle.hcl (or another bundle), pushes it to a registry of its own that
lives as long as the rehearsal, pulls it back, compares what came back with what
was sent, and verifies it. Nothing is left behind. --require says what must have
been decided here: static (gates that the profile lets stay undecided may), or
all.`,
		Args: between(0, 1),
	}
	var t trust
	t.flags(cmd)
	a.httpFlag(cmd)
	a.cacheFlag(cmd)
	to := cmd.Flags().String("to", "", "rehearse with this registry reference instead of the embedded registry")
	require := cmd.Flags().String("require", "static", "what must be decided: static or all")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *require != "static" && *require != "all" {
			return usageError{fmt.Errorf("--require %q is not static or all", *require)}
		}
		if *to != "" {
			if _, err := pushReference(*to); err != nil {
				return err
			}
		}
		r := &rehearsal{app: a, subject: bundleFile(args), to: *to, all: *require == "all"}
		if err := r.readTrust(&t); err != nil {
			return err
		}
		return r.run(cmd.Context())
	}
	return cmd
}

// rehearsal goes through the steps of one rehearsal.
type rehearsal struct {
	*app
	subject string
	to      string
	all     bool
	options verify.Options
	work    string
	steps   int
}

// readTrust takes the profile from the bundle.hcl where no flag names one: its
// owner wrote both, and the report prints the profile's digest.
func (r *rehearsal) readTrust(t *trust) error {
	path, _, kind := classify(r.subject)
	if kind == content.OriginFolder && holdsBundle(path) {
		path, kind = filepath.Join(path, "bundle.hcl"), originPlan
	}
	if kind == originPlan && t.profile == "" {
		wanted, err := config.LoadBundle(path)
		if err != nil {
			return err
		}
		t.profile = wanted.ProfileSource()
	}
	var err error
	r.options, err = t.options()
	return err
}

func (r *rehearsal) step(format string, args ...any) {
	r.steps++
	fmt.Fprintf(r.Stdout, "%d. %s\n", r.steps, fmt.Sprintf(format, args...))
}

func (r *rehearsal) run(ctx context.Context) (err error) {
	if r.work, err = os.MkdirTemp(r.TempDir, "slipway-rehearse-*"); err != nil {
		return err
	}
	defer func() {
		if removeErr := os.RemoveAll(r.work); err == nil {
			err = removeErr
		}
	}()
	from, err := r.openSource(ctx, r.subject)
	if err != nil {
		return err
	}
	defer from.close()
	built, err := content.OpenArtifact(ctx, from, from.name, from.origin, r.subject)
	if err != nil {
		return err
	}
	defer built.Close()
	digest := built.Artifact.Descriptor.Digest
	r.step("built %s: %d files, %s, %d layers", r.subject, len(built.Files), size(treeBytes(built)), len(built.Artifact.Manifest.Layers))

	pulledInto, err := r.roundTrip(ctx, from)
	if err != nil {
		return err
	}
	pulled, err := layout.OpenTree(ctx, pulledInto, "rehearsal", r.subject)
	if err != nil {
		return err
	}
	defer pulled.Close()
	if err := r.compare(ctx, built, pulled); err != nil {
		return err
	}
	report, err := r.verify(ctx, pulled, r.options)
	if err != nil {
		return err
	}
	r.step("verified what came back")
	fmt.Fprintln(r.Stdout)
	if err := report.WriteText(r.Stdout, verify.TextOptions{Colour: r.Colour}); err != nil {
		return err
	}
	return r.conclude(report, digest)
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
		return "", err
	}
	r.step("pushed it to %s", where)
	repository, err := registry.Open(ref, r.registryOptions(nil))
	if err != nil {
		return "", err
	}
	into := filepath.Join(r.work, "pulled")
	back := &source{Reader: repository, name: ref.Tag, remedy: "the registry sent other bytes than its manifest names"}
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

// conclude prints what is left to decide and, last, the digest.
func (r *rehearsal) conclude(report *verify.Report, digest manifest.Digest) error {
	var undecided []string
	for _, gate := range report.Gates {
		if gate.Status == verify.Undecided {
			undecided = append(undecided, gate.ID)
		}
	}
	if len(undecided) > 0 {
		fmt.Fprintf(r.Stdout, "\nnot decided here: %s\n", strings.Join(undecided, " "))
	}
	fmt.Fprintln(r.Stdout, digest)
	if err := report.Err(); err != nil {
		fmt.Fprintf(r.Stderr, "slipway rehearse: %v\n", err)
		return errFindings
	}
	if r.all && len(undecided) > 0 {
		fmt.Fprintf(r.Stderr, "slipway rehearse: --require all, and %d gates are undecided\n", len(undecided))
		return errFindings
	}
	return nil
}
