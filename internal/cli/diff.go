package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"slipway/verify/compare"
)

func (a *app) diffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff BUNDLE BUNDLE",
		Short: "Explain two bundles file by file and tensor by tensor",
		Long:  "Tensors of differing shards are matched by name across all shards. Exit code 3 if\nanything differs.",
		Args:  exactly(2),
	}
	a.httpFlag(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		first, err := a.openTree(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		defer first.Close()
		second, err := a.openTree(cmd.Context(), args[1])
		if err != nil {
			return err
		}
		defer second.Close()
		m := a.meter("compare", treeBytes(first)+treeBytes(second))
		difference, err := compare.Trees(cmd.Context(), first, second, compare.Options{Progress: m.add})
		m.end()
		if err != nil {
			return err
		}
		if *asJSON {
			err = a.printJSON(difference)
		} else {
			a.printDifference(difference)
		}
		if err == nil && !difference.Same() {
			return errFindings
		}
		return err
	}
	return cmd
}

func (a *app) printDifference(d *compare.Difference) {
	if d.Same() {
		fmt.Fprintf(a.Stdout, "same files: set digest %s\n", d.SetA)
		return
	}
	fmt.Fprintf(a.Stdout, "set digest %s -> %s\n", d.SetA.Short(), d.SetB.Short())
	var rows [][]string
	for _, f := range d.Files {
		rows = append(rows, []string{"file", string(f.Change), f.Path, f.Detail})
	}
	for _, t := range d.Tensors {
		rows = append(rows, []string{"tensor", string(t.Change), t.Name, t.Detail})
	}
	table(a.Stdout, rows)
}
