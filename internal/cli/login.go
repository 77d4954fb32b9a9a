package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/manifest/registry"
)

// maxPassword bounds a password or token, in bytes.
const maxPassword = 64 << 10

// readPassword reads standard input to its end, or until ctx ends.
func (a *app) readPassword(ctx context.Context) (string, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(a.Stdin, maxPassword))
		done <- result{data, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case r := <-done:
		return strings.TrimRight(string(r.data), "\r\n"), r.err
	}
}

func (a *app) loginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "login HOST --username NAME --password-stdin",
		Short: "Keep a registry's credentials where docker keeps them",
		Long:  "Reads the password from standard input, tries it at the registry, and writes it\nto docker's config.json or hands it to the credential helper named there.",
		Args:  exactly(1),
	}
	username := cmd.Flags().StringP("username", "u", "", "user name")
	stdin := cmd.Flags().Bool("password-stdin", false, "read the password from standard input")
	a.httpFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case *username == "":
			return usageError{errors.New("--username is missing")}
		case !*stdin:
			return usageError{manifest.WithHint(errors.New("a password is taken from standard input only"), "printf %s \"$TOKEN\" | slipway login HOST --username NAME --password-stdin")}
		}
		password, err := a.readPassword(cmd.Context())
		if err != nil {
			return fmt.Errorf("read password: %w", err)
		}
		if password == "" {
			return usageError{errors.New("the password on standard input is empty")}
		}
		if err := registry.Login(cmd.Context(), args[0], *username, password, a.registryOptions(nil)); err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "logged in to %s\n", args[0])
		return nil
	}
	return cmd
}
