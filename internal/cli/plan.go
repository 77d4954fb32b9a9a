package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slipway/bundle"
	"slipway/manifest"
)

func (a *app) planCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan [bundle.hcl | DIR]",
		Short: "Show what would be built, and why",
		Long:  "Reads names, sizes and shard headers, and writes nothing; weights are read only where\nbundle.hcl wants them packed or a head dropped. DIR stands for the bundle.hcl in it.",
		Args:  between(0, 1),
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := a.plan(cmd.Context(), bundleFile(args), true)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.printJSON(p.plan)
		}
		a.printPlan(p.plan)
		return nil
	}
	return cmd
}

func (a *app) printPlan(plan *bundle.Plan) {
	fmt.Fprintf(a.Stdout, "bundle %s (profile %s): %d files, %s, %d layers\n", plan.Name, plan.Profile, len(plan.Files)+1, size(planBytes(plan)), len(plan.Layers))
	if m := plan.Model; m.Architecture != "" {
		fmt.Fprintf(a.Stdout, "model %s, %d parameters %s%s\n", m.Architecture, m.Parameters, m.Quantization, m.Precision)
	}
	fmt.Fprintln(a.Stdout)
	rows := [][]string{{"LAYER", "KIND", "FORM", "SIZE", "FILES", "WHY"}}
	for i, layer := range plan.Layers {
		files := layer.Paths[0]
		if len(layer.Paths) > 1 {
			files = fmt.Sprintf("%d files", len(layer.Paths))
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), string(layer.Kind), string(layer.Encoding), size(layer.Size), files, layer.Why})
	}
	table(a.Stdout, rows)
	fmt.Fprintln(a.Stdout)
	rows = [][]string{{"FILE", "MODE", "SIZE", "FROM", "WHY"}}
	for _, f := range plan.Files {
		from := f.Source
		if from == "" {
			from = "-"
		}
		rows = append(rows, []string{f.Path, f.Mode.String(), size(f.Size), from, f.Why})
	}
	rows = append(rows, []string{"inventory.json", "0644", "-", "-", "generated: lists the files above with their digests"})
	table(a.Stdout, rows)
	a.printLeftOut(plan)
	for _, note := range plan.Notes {
		fmt.Fprintf(a.Stdout, "note: %s\n", note)
	}
}

func (a *app) printLeftOut(plan *bundle.Plan) {
	if len(plan.LeftOut) == 0 {
		return
	}
	fmt.Fprintln(a.Stdout)
	for _, l := range plan.LeftOut {
		fmt.Fprintf(a.Stdout, "left out: %s: %s\n", manifest.Printable(l.Source), strings.TrimSpace(l.Why))
	}
}
