package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"slipway/manifest"
)

// printJSON writes a value as indented JSON.
func (a *app) printJSON(value any) error {
	data, err := manifest.EncodeCanonical(value)
	if err != nil {
		return err
	}
	var indented json.RawMessage = data
	encoder := json.NewEncoder(a.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(indented)
}

// table writes rows with aligned columns.
func table(w io.Writer, rows [][]string) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(out, "\t")
			}
			fmt.Fprint(out, manifest.Printable(cell))
		}
		fmt.Fprintln(out)
	}
	_ = out.Flush() // its writer's errors come back with the next write
}

func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON instead of text")
}
