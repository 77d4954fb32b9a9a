package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway/bundle/goruntime"
	"slipway/manifest"
)

// app is what the commands share.
type app struct {
	Environment
	progressMode string
	noCache      bool
	plainHTTP    bool
	relock       bool
	rehearsing   bool                        // what cannot be made for the bundle on this machine is left out
	relocked     map[string]*goruntime.Built // by device, once they were built and locked
}

// errFindings ends a command that ran and found something: exit code 3, and
// nothing more to say than its report did.
var errFindings = errors.New("findings")

// usageError ends a command whose arguments make no sense: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Run executes one command line and returns its exit code.
func Run(ctx context.Context, environment Environment) int {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &checkedWriter{w: environment.Stdout, failed: stop}
	environment.Stdout = out
	a := &app{Environment: environment}
	root := a.root()
	root.SetArgs(environment.Args)
	root.SetIn(environment.Stdin)
	root.SetOut(environment.Stdout)
	root.SetErr(environment.Stderr)
	command, err := root.ExecuteContextC(ctx)
	if out.err != nil {
		fmt.Fprintf(a.Stderr, "%s: write standard output: %v\n", command.CommandPath(), out.err)
		return ExitCannotRun
	}
	return a.exit(ctx, command, err)
}

// checkedWriter remembers the first error of a writer that most callers print
// to without looking, and stops the command: a digest that was never written
// must not end in success.
type checkedWriter struct {
	w      io.Writer
	failed func(error)
	err    error
}

func (c *checkedWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if err != nil && c.err == nil {
		var pathError *fs.PathError
		if c.err = err; errors.As(err, &pathError) {
			c.err = pathError.Err
		}
		c.failed(c.err)
	}
	return n, err
}

// exit prints an error as the act, the cause and, on a line of its own, the
// remedy.
func (a *app) exit(ctx context.Context, command *cobra.Command, err error) int {
	var usage usageError
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, errFindings):
		return ExitFindings
	case ctx.Err() != nil:
		fmt.Fprintf(a.Stderr, "%s: interrupted\n", command.CommandPath())
		return ExitInterrupted
	case errors.As(err, &usage):
		a.printError(command, err)
		fmt.Fprintf(a.Stderr, "  usage: %s (more: %s --help)\n", command.UseLine(), command.CommandPath())
		return ExitUsage
	}
	a.printError(command, err)
	return ExitCannotRun
}

// printError prints an error and its remedy. Names in it may come from a
// hostile bundle, so that each line is made printable.
func (a *app) printError(command *cobra.Command, err error) {
	text := command.CommandPath() + ": " + err.Error()
	if hint := strings.TrimRight(manifest.Hint(err), "\n"); hint != "" {
		text += "\n" + hint
	}
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			line = "  " + line
		}
		fmt.Fprintln(a.Stderr, manifest.Printable(line))
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "slipway",
		Short: "Package, check and rehearse a model submission",
		Long: `slipway turns a folder of model weights into a submission its owner can trust:
a reproducible, content-addressed OCI artifact, checked offline before anything
is sent.

A BUNDLE is a bundle.hcl, a submission folder, an OCI layout (FOLDER,
FOLDER:TAG or FOLDER@sha256:DIGEST) or a registry reference (HOST/NAME:TAG or
HOST/NAME@sha256:DIGEST).

Exit codes: 0 done, 1 could not run, 2 usage, 3 findings, 130 interrupted.`,
		Version:                    a.Version,
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: suggestionDistance,
		CompletionOptions:          cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:                       noArgs,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("slipway {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.StringVar(&a.progressMode, "progress", "auto", "how to show progress: auto, plain (a line each 30 s) or none")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.checkProgressMode() }
	for _, command := range []*cobra.Command{
		a.initCommand(), a.planCommand(), a.buildCommand(), a.verifyCommand(), a.rehearseCommand(),
		a.pushCommand(), a.pullCommand(), a.unpackCommand(), a.inspectCommand(), a.diffCommand(),
		a.explainCommand(), a.loginCommand(), a.serveCommand(), a.weightsCommand(), a.imageCommand(),
	} {
		command.DisableFlagsInUseLine = true
		root.AddCommand(command)
	}
	root.SetHelpCommand(helpCommand(root))
	return root
}

// helpCommand is cobra's, with an error for what is no command.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(_ *cobra.Command, args []string) error {
			command, rest, err := root.Find(args)
			switch {
			case err != nil:
				return noArgs(root, args)
			case len(rest) > 0:
				return noArgs(command, rest)
			}
			return command.Help()
		},
	}
}

// suggestionDistance is how many letters a command may be misspelt by for
// another to be suggested. cobra has none for commands that set none.
const suggestionDistance = 2

// noArgs and the like turn cobra's argument errors into usage errors. Of a
// command that has others it says that the argument is none of them.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasAvailableSubCommands() {
		return usageError{fmt.Errorf("takes no argument, got %q", args[0])}
	}
	err := fmt.Errorf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usageError{manifest.WithHint(err, "did you mean "+strings.Join(near, " or ")+"?")}
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usageError{manifest.WithHint(err, "expected here: "+strings.Join(names, ", "))}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func exactly(n int) cobra.PositionalArgs { return between(n, n) }

func between(low, high int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case slices.Contains(args, ""):
			return usageError{errors.New("an argument is empty")}
		case len(args) < low:
			return usageError{fmt.Errorf("needs %s, got %d", count(low, "argument"), len(args))}
		case len(args) > high:
			return usageError{fmt.Errorf("unexpected argument %q", args[high])}
		}
		return nil
	}
}
