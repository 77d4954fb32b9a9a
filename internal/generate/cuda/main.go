// Command cuda makes what a build with -tags cuda compiles and links against, and
// runs a command with the environment for it:
//
//	go run ./internal/generate/cuda go build -tags cuda -o serve ./runtime
//
// It needs Go and gcc and no package of NVIDIA's. A program built so starts
// without a driver: libcuda.so.1 is loaded when the program first asks for a
// device. The same list of functions and the same gcc give the same bytes.
//
// Without a command it prints the folder and the variables.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	"slipway/internal/cudastub"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		os.Exit(exit.ExitCode()) // the command has said why
	default:
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, exec.ErrNotFound) {
			fmt.Fprintln(os.Stderr, "  install gcc and the C library's headers (Debian: apt-get install gcc libc6-dev)")
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("cuda", flag.ContinueOnError)
	folder := flags.String("folder", "", "folder to write into (default: one in the user's cache, named after its content)")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: go run ./internal/generate/cuda [-folder DIR] [command ...]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("build with -tags cuda on %s/%s: only linux/amd64", runtime.GOOS, runtime.GOARCH)
	}
	header, err := libraryHeader(ctx)
	if err != nil {
		return err
	}
	stub, err := cudastub.Make(ctx, cudastub.Ours(header), "", nil)
	if err != nil {
		return err
	}
	if *folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = os.TempDir() // there is no HOME
		}
		*folder = filepath.Join(cache, "slipway", stub.Name())
	}
	absolute, err := filepath.Abs(*folder)
	if err != nil {
		return err
	}
	if err := stub.Write(absolute); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		fmt.Fprintln(stdout, absolute)
		for _, variable := range cudastub.Environment(absolute) {
			name, value, _ := strings.Cut(variable, "=")
			fmt.Fprintf(stdout, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
		}
		return nil
	}
	command := exec.CommandContext(ctx, flags.Arg(0), flags.Args()[1:]...)
	command.Env = append(os.Environ(), cudastub.Environment(absolute)...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}

// libraryHeader returns the driver's header as gorgonia.org/cu carries it.
func libraryHeader(ctx context.Context) ([]byte, error) {
	if _, err := output(ctx, "go", "mod", "download", cudastub.Module); err != nil {
		return nil, err
	}
	folder, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}", cudastub.Module)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), filepath.FromSlash(cudastub.HeaderPath)))
	if err != nil {
		return nil, fmt.Errorf("read the header of %s: %w", cudastub.Module, err)
	}
	return data, nil
}

// output runs a program and returns what it printed; its error has what the
// program complained about.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out, nil
}
