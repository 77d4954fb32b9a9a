package cli

import "github.com/spf13/cobra"

func (a *app) weightsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "weights",
		Short:                      "Work on weights",
		SuggestionsMinimumDistance: suggestionDistance,
		Args:                       noArgs,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.packCommand(), a.auditCommand(), a.contractCommand(), a.goldenCommand())
	return cmd
}
