// Slipway packages, checks and rehearses a model submission; `slipway --help`
// lists the commands. This file is the only place that reads the environment.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"

	"slipway/internal/cli"
	"slipway/verify/boot/sandbox"
)

func main() {
	sandbox.Main() // this process may be a part of a sandbox
	os.Exit(run())
}

func run() int {
	if runtime.GOOS == "windows" {
		fmt.Fprintln(os.Stderr, "slipway: runs on linux and darwin, not on windows")
		return cli.ExitCannotRun
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE, syscall.SIGXFSZ) // a reader that went away and a size limit are write errors, so that temporary files are removed
	go func() {
		<-signals
		signal.Reset() // a second Ctrl-C ends the program at once
		cancel(errors.New("interrupted"))
	}()
	return cli.Run(ctx, cli.Environment{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		CacheDir: cacheDir(), DockerConfig: dockerConfig(), TempDir: tempDir(),
		Proxy: http.ProxyFromEnvironment, Version: version(), Path: os.Getenv("PATH"),
		Source: source, Runtimes: runtimes, GoCommand: command("go"), GCC: command("gcc"), Variables: os.Environ(), Terminal: isTerminal(os.Stderr),
		Colour: isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "",
	})
}

// tempDir is the system's folder for temporary files, whatever folder a program
// that is started there runs in. TMPDIR is set to it for the programs that look
// there themselves.
func tempDir() string {
	dir, err := filepath.Abs(os.TempDir())
	if err != nil {
		return os.TempDir()
	}
	_ = os.Setenv("TMPDIR", dir) // fails for no name and value that are plain text
	return dir
}

// cacheDir is where digests and unfinished uploads are remembered.
func cacheDir() string {
	if dir := os.Getenv("SLIPWAY_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "slipway")
}

// command is where a program is, "" if nowhere.
func command(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// dockerConfig is the folder of docker's config.json.
func dockerConfig() string {
	if dir := os.Getenv("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".docker")
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
