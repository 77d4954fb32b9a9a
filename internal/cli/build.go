package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"slipway/bundle"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/layout"
)

func (a *app) buildCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "build [bundle.hcl | DIR] (--out DIR | --layout DIR)",
		Short: "Build a submission folder or an OCI layout",
		Long: `Builds what plan shows; DIR stands for the bundle.hcl in it. --out writes a submission folder, --layout an OCI layout;
both may be given. Sources are only read. The last line on stdout is the
artifact's digest. It depends on the files' paths, contents and exec bits, on the
bundle's name and on the base's revision, and on nothing else.`,
		Args: between(0, 1),
	}
	out := cmd.Flags().String("out", "", "submission folder to write; an earlier bundle there is replaced when the new one is complete")
	into := cmd.Flags().String("layout", "", "OCI layout to write into; created where absent")
	var chosen bundle.LayoutOptions
	cmd.Flags().StringVar(&chosen.Tag, "tag", "latest", "name in the layout's index")
	cmd.Flags().BoolVar(&chosen.Link, "link", false, "hard-link weights into the layout instead of copying them")
	a.cacheFlag(cmd)
	a.relockFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkTag(chosen.Tag); err != nil {
			return err
		}
		for _, name := range []string{"out", "layout"} {
			if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
				return usageError{fmt.Errorf("--%s is empty", name)}
			}
		}
		if *out == "" && *into == "" {
			return usageError{manifest.WithHint(fmt.Errorf("nothing says where to build"), "add --out DIR or --layout DIR")}
		}
		if err := checkApart(*out, *into); err != nil {
			return err
		}
		p, err := a.plan(cmd.Context(), bundleFile(args), false)
		if err != nil {
			return err
		}
		for _, note := range p.plan.Notes {
			fmt.Fprintf(a.Stderr, "note: %s\n", note)
		}
		return a.build(cmd.Context(), p.plan, *out, *into, chosen)
	}
	return cmd
}

// checkApart refuses a submission folder and a layout of which one lies in the
// other.
func checkApart(out, into string) error {
	if out == "" || into == "" {
		return nil
	}
	a, errA := filepath.Abs(out)
	b, errB := filepath.Abs(into)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	separator := string(filepath.Separator)
	if strings.HasPrefix(a+separator, b+separator) || strings.HasPrefix(b+separator, a+separator) {
		return usageError{manifest.WithHint(fmt.Errorf("--out %s and --layout %s lie in one another", out, into), "choose two separate folders")}
	}
	return nil
}

// tagPattern is the grammar of tags (distribution-spec v1.1).
var tagPattern = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)

// checkTag refuses what no registry would take for a tag; none is fine.
func checkTag(tag string) error {
	if tag == "" || tagPattern.MatchString(tag) {
		return nil
	}
	return usageError{manifest.WithHint(fmt.Errorf("--tag %q is no tag", tag), "use letters, digits, '_', '.' and '-', at most 128")}
}

func (a *app) build(ctx context.Context, plan *bundle.Plan, out, into string, chosen bundle.LayoutOptions) error {
	cache := a.cache()
	var digest manifest.Digest
	if out != "" {
		before := inventoryDigest(out)
		m := a.meter("build "+out, planBytes(plan))
		sealed, err := bundle.WriteFolder(ctx, plan, out, bundle.Options{Cache: cache, Progress: m.add})
		m.end()
		if err != nil {
			return err
		}
		digest = sealed.Descriptor.Digest
		if !before.IsZero() && before != inventoryDigest(out) {
			fmt.Fprintf(a.Stderr, "note: %s held another bundle, which this one replaced\n", out)
		}
		fmt.Fprintf(a.Stdout, "folder %s, set digest %s\n", out, sealed.SetDigest)
		if err := sealed.Close(); err != nil {
			return err
		}
	}
	if into != "" {
		sealed, err := a.buildLayout(ctx, plan, into, chosen, bundle.Options{Cache: cache})
		if err != nil {
			return err
		}
		digest = sealed.Descriptor.Digest
		fmt.Fprintf(a.Stdout, "layout %s, set digest %s\n", strings.TrimSuffix(into+":"+chosen.Tag, ":"), sealed.SetDigest)
		if err := sealed.Close(); err != nil {
			return err
		}
	}
	_ = cache.Save() // costs time next time, and no more
	fmt.Fprintln(a.Stdout, digest)
	return nil
}

// inventoryDigest tells bundles in folders apart; zero where there is none.
func inventoryDigest(folder string) manifest.Digest {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return manifest.Digest{}
	}
	defer root.Close()
	digest, err := content.FileDigest(root, manifest.InventoryPath)
	if err != nil {
		return manifest.Digest{}
	}
	return digest
}

func (a *app) buildLayout(ctx context.Context, plan *bundle.Plan, into string, chosen bundle.LayoutOptions, options bundle.Options) (*bundle.Sealed, error) {
	if err := plan.CheckOutput(into); err != nil {
		return nil, err
	}
	target, err := layout.Create(into, options.Cache)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	m := a.meter("build "+into, planBytes(plan))
	defer m.end()
	options.Progress = m.add
	sealed, err := bundle.WriteLayout(ctx, plan, target, chosen, options)
	if err != nil && ctx.Err() == nil {
		target.Discard()
	}
	return sealed, err
}
