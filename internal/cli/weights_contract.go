package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/contract"
)

func (a *app) contractCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "contract (DIR | HEADERS...) [--repository R --revision H]",
		Short: "Print the contract of a base model: its tensors, and what each must be",
		Long: `Prints names, types, shapes and parts of the tensors that lie in DIR, or in the
files HEADERS of one folder: safetensors shards, whole or cut off where the header
ends, and config.json, which says whether the head is tied. A base block takes the
file as its contract.`,
		Args: between(1, 1<<16),
	}
	var options contract.Options
	cmd.Flags().StringVar(&options.Repository, "repository", "", "where the model comes from: owner/name")
	cmd.Flags().StringVar(&options.Revision, "revision", "", "its commit: 40 hex digits")
	cmd.Flags().BoolVar(&options.Digests, "digests", false, "read all weights, and add the sha256 of each tensor")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tree, err := openFiles(cmd.Context(), args)
		if err != nil {
			return err
		}
		defer tree.Close()
		m := a.meter("read "+filepath.Base(tree.Name), treeBytes(tree))
		options.Workers = runtime.GOMAXPROCS(0)
		options.Progress = func(done, _ int64) { m.set(done) }
		made, err := contract.Of(cmd.Context(), tree, options)
		m.end()
		if err != nil {
			return err
		}
		data, err := made.Encode()
		if err != nil {
			return err
		}
		_, err = a.Stdout.Write(data)
		return err
	}
	return cmd
}

// openFiles opens a folder, or the named files of one folder as if nothing else
// lay there.
func openFiles(ctx context.Context, args []string) (*content.Tree, error) {
	folder := args[0]
	if info, err := os.Stat(folder); err != nil {
		return nil, fmt.Errorf("open %s: %w", folder, manifest.Cause(err))
	} else if info.IsDir() {
		if len(args) > 1 {
			return nil, usageError{fmt.Errorf("unexpected argument %q after a folder", args[1])}
		}
		return content.OpenFolder(ctx, folder)
	}
	folder = filepath.Dir(folder)
	var names []string
	for _, arg := range args {
		if filepath.Dir(arg) != folder {
			return nil, usageError{fmt.Errorf("%s and %s lie in different folders", args[0], arg)}
		}
		names = append(names, filepath.Base(arg))
	}
	tree, err := content.OpenFolder(ctx, folder)
	if err != nil {
		return nil, err
	}
	tree.Files = slices.DeleteFunc(tree.Files, func(f content.TreeFile) bool { return !slices.Contains(names, f.Path) })
	for _, name := range names {
		if _, there := tree.Lookup(name); !there {
			return nil, errors.Join(fmt.Errorf("open %s: it is no regular file", filepath.Join(folder, name)), tree.Close())
		}
	}
	return tree, nil
}
