package goruntime

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"slipway/internal/cudastub"
	"slipway/manifest"
)

// Devices are what runtimes are built for.
var Devices = []string{"cpu", cuda}

// cuda is the device whose build needs a C compiler.
const (
	cuda    = "cuda"
	cudaTag = "-tags=cuda"
)

// newestLibc is the newest version of the C library, 2.newestLibc, that a runtime
// may ask for: that of the oldest images in use, as manylinux_2_35 says.
const newestLibc = 35

// flagsOf returns what a device's build is called with, for the lock. The folder
// of the stub, which is elsewhere each time, stands as $CUDA.
func flagsOf(device string) []string {
	if device != cuda {
		return flags
	}
	return append(append(slices.Clone(flags), cudaTag), cudastub.Environment("$CUDA")...)
}

// compiler returns which C compiler and linker the machine has. All programs that
// take part in the bytes are named.
func (t *Tools) compiler(ctx context.Context) (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", manifest.WithHint(fmt.Errorf("%w: it needs linux/amd64", ErrTools), "use a release of slipway, which carries the runtime")
	}
	if t.GCC == "" {
		return "", manifest.WithHint(fmt.Errorf("%w: there is no gcc", ErrTools),
			"install gcc and the C library's headers (Debian: apt-get install gcc libc6-dev), or use a release of slipway, which carries the runtime")
	}
	var versions []string
	for _, argument := range []string{"--version", "-Wl,--version"} {
		command := exec.CommandContext(ctx, t.GCC, argument)
		command.Env = environment("", "", t.Environment)
		said, err := command.Output()
		if err != nil {
			return "", fmt.Errorf("%w: run %s %s: %w", ErrTools, t.GCC, argument, err)
		}
		line, _, _ := strings.Cut(string(said), "\n")
		versions = append(versions, strings.TrimSpace(line))
	}
	return strings.Join(versions, ", "), nil
}

// addCUDA makes the stub of the CUDA driver out of the source and sets the
// environment to build against it.
func (c *compilation) addCUDA(ctx context.Context, source *Source) error {
	symbols, loader := source.data[cudastub.SymbolsPath], source.data[cudastub.LoaderPath]
	if symbols == nil || loader == nil {
		return fmt.Errorf("the runtime's source has no %s and %s", cudastub.SymbolsPath, cudastub.LoaderPath)
	}
	if _, err := c.run(ctx, "mod", "download", cudastub.Module); err != nil {
		return c.lacking(ctx, err)
	}
	said, err := c.run(ctx, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", cudastub.Module)
	if err != nil {
		return c.lacking(ctx, err)
	}
	folder := said[strings.LastIndexByte(said, '\n')+1:] // what the go command remarks comes first
	header, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(cudastub.HeaderPath)))
	if err != nil {
		return fmt.Errorf("%w: read the header of %s: %w", ErrTools, cudastub.Module, err)
	}
	stub, err := cudastub.Make(ctx, cudastub.Source{Symbols: string(symbols), Loader: loader, Header: header}, c.work, c.environment)
	if err != nil {
		return err
	}
	into := filepath.Join(c.work, stub.Name())
	if err := stub.Write(into); err != nil {
		return err
	}
	c.environment = slices.DeleteFunc(c.environment, func(variable string) bool { return strings.HasPrefix(variable, "CGO_ENABLED=") })
	c.environment = append(append(c.environment, "CC="+c.tools.GCC), cudastub.Environment(into)...)
	return nil
}

// checkLibraries refuses a program that needs libraries beside the C library, or
// a newer one than the machines that will run it have.
func checkLibraries(program []byte) error {
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return err
	}
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, library := range libraries {
		if !slices.Contains([]string{"libc.so.6", "libdl.so.2", "libpthread.so.0", "libm.so.6"}, library) {
			return fmt.Errorf("it needs the library %s", library)
		}
	}
	imported, err := file.ImportedSymbols()
	if err != nil {
		return err
	}
	for _, symbol := range imported {
		minor, is := strings.CutPrefix(symbol.Version, "GLIBC_2.")
		minor, _, _ = strings.Cut(minor, ".")
		if n, err := strconv.Atoi(minor); is && (err != nil || n > newestLibc) {
			return manifest.WithHint(fmt.Errorf("%s needs %s, and the machines that run bundles may have 2.%d", symbol.Name, symbol.Version, newestLibc),
				"build on a system with an older C library, or use a release of slipway, which carries the runtime")
		}
	}
	return nil
}
