// Command kernels compiles the CUDA kernels of the runtime and writes the
// outputs and their description (package stamp) beside the sources. The same
// sources and compiler give the same bytes, wherever they stand.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"slipway/internal/generate/kernels/stamp"
	"slipway/manifest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		if hint := manifest.Hint(err); hint != "" {
			fmt.Fprintln(os.Stderr, "  "+hint)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("kernels", flag.ContinueOnError)
	nvcc := flags.String("nvcc", "nvcc", "the CUDA compiler")
	folder := flags.String("folder", "runtime/kernels/cuda", "where the sources stand")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	compiler, err := version(ctx, *nvcc)
	if err != nil {
		return err
	}
	outputs, err := compile(ctx, *nvcc, *folder)
	if err != nil {
		return err
	}
	return replace(*folder, outputs, compiler)
}

// release is how the build of the compiler whose outputs are committed begins. A
// kernel of a later release may need a later driver than the runtime asks for.
const release = "Build cuda_12.4."

// version returns the last line of nvcc --version, which names the build, and
// refuses another release.
func version(ctx context.Context, nvcc string) (string, error) {
	text, err := exec.CommandContext(ctx, nvcc, "--version").Output()
	if err != nil {
		return "", manifest.WithHint(fmt.Errorf("ask %s for its version: %w", nvcc, err), "name the compiler of CUDA 12.4: --nvcc PATH")
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	build := strings.TrimSpace(lines[len(lines)-1])
	if !strings.HasPrefix(build, release) {
		return "", manifest.WithHint(fmt.Errorf("compile with %s: it is %q, not of CUDA 12.4", nvcc, build), "name the compiler of CUDA 12.4: --nvcc PATH")
	}
	return build, nil
}

// compile returns every output by its path. It compiles all before anything is
// replaced; nvcc runs in the folder, so that no other path can reach an output.
func compile(ctx context.Context, nvcc, folder string) (map[string][]byte, error) {
	sources, err := stamp.Sources(os.DirFS(folder))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	scratch, err := os.MkdirTemp("", "kernels-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	outputs := map[string][]byte{}
	for _, source := range sources {
		for _, target := range stamp.Targets {
			output := filepath.Join(scratch, "output")
			command := exec.CommandContext(ctx, nvcc, append(target.Flags, "-o", output, source)...)
			command.Dir = folder
			var log bytes.Buffer
			command.Stdout, command.Stderr = &log, &log
			if err := command.Run(); err != nil {
				return nil, fmt.Errorf("compile %s/%s: %w\n%s", folder, source, err, log.String())
			}
			data, err := os.ReadFile(output)
			if err != nil {
				return nil, err
			}
			outputs[target.Output(source)] = data
			fmt.Printf("%s: %d bytes\n", target.Output(source), len(data))
		}
	}
	return outputs, nil
}

// replace puts the outputs in place of all that stood there. The description
// comes last: without it nothing passes for complete.
func replace(folder string, outputs map[string][]byte, compiler string) error {
	if err := os.RemoveAll(filepath.Join(folder, stamp.Folder)); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(folder, stamp.Folder), 0o755); err != nil {
		return err
	}
	for name, data := range outputs {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			return err
		}
	}
	description, err := stamp.Describe(os.DirFS(folder), compiler)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, stamp.File), description, 0o644)
}
