// Package goruntime builds the server that is vendored into bundles, from the
// source that slipway carries, so that whoever has the same source and the same
// Go gets the same bytes: the environment is cleared, toolchain and flags are
// fixed, and the result is held against runtime.lock. It is the one part of
// building that runs another program.
package goruntime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"slipway/manifest"
	"slipway/manifest/content"
)

// Tools is what a build takes from the machine: where the go command is, and
// the variables that say where it keeps modules and its cache. None of them
// changes a byte of the result. With CUDA a C compiler takes part, and another
// one gives other bytes.
type Tools struct {
	Go          string   // path of the go command
	GCC         string   // path of the C compiler; only builds with CUDA need it
	Environment []string // NAME=value; only the names in Passed are used
	CacheDir    string   // finished builds

	// WorkFolder makes a folder for temporary files, its name by os.MkdirTemp's
	// pattern, and returns what removes it; nil for the system's folder and no
	// care for what is left when this program is killed.
	WorkFolder func(pattern string) (folder string, done func() error, err error)

	// Prebuilt are the runtimes that a release of slipway carries, serve-DEVICE
	// each; nil: none.
	Prebuilt fs.FS
}

// Passed are the variables that reach the go command. Everything else of the
// machine's environment is left out: GOFLAGS, GOEXPERIMENT and their like would
// change the result.
var Passed = []string{
	"PATH", "HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY",
	"TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy",
}

// target is the machine that bundles run on.
const target = "linux/amd64/v1"

// flags of go build: no path, time, revision or build id enters the result.
var flags = []string{"-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=-s -w -buildid="}

// Built is a runtime on disk.
type Built struct {
	Path   string // absolute
	Locked Locked
}

// ErrTools is returned when the machine lacks what a build needs (the go
// command, the pinned toolchain, a module), so that nothing is said about the
// source.
var ErrTools = errors.New("this machine cannot build it")

// Build returns the runtime of a device. The cache's is taken only if its bytes
// are the wanted ones; a zero want takes nothing from the cache, and neither
// does a file that was damaged there.
func Build(ctx context.Context, source *Source, device string, want manifest.Digest, tools Tools) (*Built, error) {
	if !slices.Contains(Devices, device) {
		return nil, fmt.Errorf("build the runtime: device %q is unknown", device)
	}
	toolchain, err := source.toolchain()
	if err != nil {
		return nil, err
	}
	locked := Locked{Device: device, Target: target, Go: toolchain, Flags: flagsOf(device), Source: source.Digest}
	if tools.CacheDir == "" {
		return nil, manifest.WithHint(errors.New("build the runtime: there is no cache folder to build into"), "set SLIPWAY_CACHE, or HOME")
	}
	cached := filepath.Join(tools.CacheDir, fmt.Sprintf("%s-%s-%s", device, toolchain, source.Digest.Hex()), "serve")
	if !want.IsZero() && locked.measure(cached) == nil && locked.Runtime == want {
		return &Built{cached, locked}, nil
	}
	if prebuilt := tools.prebuilt(device); !want.IsZero() && manifest.DigestBytes(prebuilt) == want {
		if err := keep(cached, prebuilt); err != nil {
			return nil, fmt.Errorf("unpack the runtime: %w", err)
		}
		locked.Runtime, locked.Size = want, int64(len(prebuilt))
		return &Built{cached, locked}, nil
	}
	if device == cuda {
		if locked.GCC, err = tools.compiler(ctx); err != nil {
			return nil, fmt.Errorf("build the runtime for CUDA: %w", err)
		}
	}
	if err := compile(ctx, source, locked, cached, tools); err != nil {
		return nil, fmt.Errorf("build the runtime: %w", err)
	}
	if err := locked.measure(cached); err != nil {
		return nil, fmt.Errorf("build the runtime: %w", err)
	}
	return &Built{cached, locked}, nil
}

// prebuilt returns what a release carries for a device, nil if nothing.
func (t *Tools) prebuilt(device string) []byte {
	if t.Prebuilt == nil {
		return nil
	}
	data, err := fs.ReadFile(t.Prebuilt, "serve-"+device)
	if err != nil {
		return nil
	}
	return data
}

// Check holds a build against the lock.
func (b *Built) Check(lock *Lock) error {
	want, ok := lock.Find(b.Locked.Device)
	const remedy = "if the change is meant, run this again with --relock and commit runtime/runtime.lock"
	switch {
	case !ok:
		return manifest.WithHint(fmt.Errorf("runtime.lock has no build for device %s", b.Locked.Device), remedy)
	case want.Source != b.Locked.Source:
		return manifest.WithHint(fmt.Errorf("runtime.lock is of source %s, this is %s", want.Source, b.Locked.Source), remedy)
	case want.Go != b.Locked.Go || want.Target != b.Locked.Target || !slices.Equal(want.Flags, b.Locked.Flags):
		return manifest.WithHint(fmt.Errorf("runtime.lock was made by %s for %s with %v, this is %s for %s with %v",
			want.Go, want.Target, want.Flags, b.Locked.Go, b.Locked.Target, b.Locked.Flags), remedy)
	case want.Runtime != b.Locked.Runtime && want.GCC != b.Locked.GCC:
		return manifest.WithHint(fmt.Errorf("the runtime differs from runtime.lock, which was made with %s; this machine has %s", want.GCC, b.Locked.GCC),
			"use a release of slipway, which carries it, or that compiler; "+remedy)
	case want.Runtime != b.Locked.Runtime:
		return manifest.WithHint(fmt.Errorf("the runtime differs from runtime.lock: want %s, built %s from the same source, Go and flags", want.Runtime, b.Locked.Runtime),
			"the Go installation may be changed or damaged; "+remedy)
	}
	return nil
}

// measure fills in what a file on disk is.
func (l *Locked) measure(name string) error {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(filepath.Base(name))
	if err != nil {
		return err
	}
	l.Size = info.Size()
	l.Runtime, err = content.Intake(context.Background(), root, filepath.Base(name), info.Size(), nil, nil)
	return err
}

var toolchainLine = regexp.MustCompile(`(?m)^toolchain (go1\.[0-9]+(?:\.[0-9]+|rc[0-9]+))$`)

// toolchain is the one that go.mod pins.
func (s *Source) toolchain() (string, error) {
	match := toolchainLine.FindSubmatch(s.data["go.mod"])
	if match == nil {
		return "", errors.New("build the runtime: go.mod pins no toolchain")
	}
	return string(match[1]), nil
}

// compile writes the source into a temporary folder, builds it, and gives the
// result its name when it is complete.
func compile(ctx context.Context, source *Source, locked Locked, result string, tools Tools) error {
	if tools.Go == "" {
		return manifest.WithHint(fmt.Errorf("%w: there is no go command", ErrTools), "install Go, or use a release of slipway (go build -tags release), which carries the runtime")
	}
	work, done, err := tools.workFolder("slipway-runtime-*")
	if err != nil {
		return err
	}
	defer func() { _ = done() }()
	if work, err = filepath.Abs(work); err != nil {
		return err
	}
	if err := source.write(filepath.Join(work, "source")); err != nil {
		return err
	}
	c := &compilation{tools: tools, work: work, environment: environment(locked.Go, work, tools.Environment)}
	data, err := c.build(ctx, source, locked.Device)
	if err != nil {
		return err
	}
	return keep(result, data)
}

// compilation is one build in a folder of its own.
type compilation struct {
	tools       Tools
	work        string // the source is in source/ below it
	environment []string
}

// build returns the program.
func (c *compilation) build(ctx context.Context, source *Source, device string) ([]byte, error) {
	list := []string{"list", "-mod=readonly", "-deps", "-f", "{{with .Error}}{{.}}{{end}}"}
	build := append([]string{"build"}, flags...)
	if device == cuda {
		if err := c.addCUDA(ctx, source); err != nil {
			return nil, err
		}
		list, build = append(list, cudaTag), append(build, cudaTag)
	}
	// First it is made sure that the toolchain and every module are there, so that
	// what fails after it is the source's fault.
	if _, err := c.run(ctx, append(list, "./runtime")...); err != nil {
		return nil, c.lacking(ctx, err)
	}
	out := filepath.Join(c.work, "serve")
	if _, err := c.run(ctx, append(build, "-o", out, "./runtime")...); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(out)
	if err == nil && device == cuda {
		err = checkLibraries(data)
	}
	return data, err
}

// lacking says that what failed is the machine's fault, unless it was interrupted.
func (c *compilation) lacking(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrTools, err)
}

func (t *Tools) workFolder(pattern string) (folder string, done func() error, err error) {
	if t.WorkFolder != nil {
		return t.WorkFolder(pattern)
	}
	folder, err = os.MkdirTemp("", pattern)
	return folder, func() error { return os.RemoveAll(folder) }, err
}

// run runs a go command in the source and returns what it printed, which is part
// of its error.
func (c *compilation) run(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, c.tools.Go, args...)
	command.Dir, command.Env = filepath.Join(c.work, "source"), c.environment
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // it cleans up after itself
	command.WaitDelay = 5 * time.Second
	err := command.Run()
	text := strings.TrimSpace(said.String())
	if err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, text)
	}
	return text, nil
}

// keep writes a finished runtime into the cache.
func keep(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return content.ReplaceFile(name, data, 0o755)
}

// environment is that of a go command. Left to itself it makes its temporary
// files in the system's folder, and leaves them there when it is killed.
func environment(toolchain, work string, machine []string) []string {
	fixed := []string{
		"GOTMPDIR=" + work,
		"GOOS=linux", "GOARCH=amd64", "GOAMD64=v1", "CGO_ENABLED=0", "GOTOOLCHAIN=" + toolchain,
		"GOENV=off", "GOWORK=off", "GOFLAGS=", "GOEXPERIMENT=", "LC_ALL=C",
	}
	for _, variable := range machine {
		if name, _, _ := strings.Cut(variable, "="); slices.Contains(Passed, name) {
			fixed = append(fixed, variable)
		}
	}
	return fixed
}

func (s *Source) write(folder string) error {
	for _, f := range s.Files {
		name := filepath.Join(folder, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, s.data[f.Path], 0o644); err != nil {
			return err
		}
	}
	return nil
}
