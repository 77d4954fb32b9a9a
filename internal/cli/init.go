package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"slipway/bundle/config"
	"slipway/manifest"
	"slipway/manifest/content"
)

func (a *app) initCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write a bundle.hcl for a folder of weights",
		Long: `Looks at the files in DIR and writes DIR/bundle.hcl, with a word on each line: the
weights, and a server of your own (serve.sh, programs, code/) where one lies beside
them. What it leaves out it names. An existing bundle.hcl is left alone.`,
		Args: exactly(1),
	}
	toStdout := cmd.Flags().Bool("stdout", false, "print it instead of writing it")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		text, notes, err := config.Init(args[0])
		if err != nil {
			return err
		}
		if *toStdout {
			_, err := a.Stdout.Write(text)
			printNotes(a.Stderr, notes)
			return err
		}
		target := filepath.Join(args[0], "bundle.hcl")
		if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
			return manifest.WithHint(fmt.Errorf("write %s: it exists", target), "edit it, or remove it first; --stdout shows what would be written")
		}
		if err := content.ReplaceFile(target, text, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", target, err)
		}
		printNotes(a.Stdout, notes)
		fmt.Fprintf(a.Stdout, "wrote %s; next: slipway plan %s\n", target, target)
		return nil
	}
	return cmd
}

// printNotes prints lines that may hold any file's name.
func printNotes(w io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintln(w, manifest.Printable(note))
	}
}
