// Package probe describes the machine that it runs on: the Python that would be
// started and what is installed for it, the mounts, the limits, the user, the
// programs, the accelerator.
//
// Its promise: what it says was read or tried here. What could not be found out
// is left out and listed, so that unknown never turns into absent. It changes
// nothing, but for a file that it creates and removes in each folder where it
// tries whether code may be mapped, and it uses no network.
package probe

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway/manifest"
	"slipway/verify/image"
)

// Environment is what of the machine is in variables.
type Environment struct {
	Variables  []string // NAME=value of what is started: PATH, HOME and the rest
	Submission string   // the folder of the submission; "" where there is none
}

func (e Environment) get(name string) string {
	for _, variable := range slices.Backward(e.Variables) {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

// Read describes this machine. The lines say what could not be found out.
func Read(ctx context.Context, environment Environment) (*image.Image, []string) {
	p := &prober{root: "/", environment: environment, image: &image.Image{Schema: image.Schema}}
	p.user()
	p.python(ctx)
	p.programs()
	p.mounts()
	p.glibc()
	p.limits()
	p.gpu(ctx)
	return p.image, p.unknown
}

type prober struct {
	root        string // of what is read under /proc, /sys and the libraries
	environment Environment
	image       *image.Image
	unknown     []string
}

// miss records what could not be found out.
func (p *prober) miss(what string, err error) {
	p.unknown = append(p.unknown, fmt.Sprintf("%s: %v", what, manifest.Cause(err)))
}

func (p *prober) user() {
	uid := os.Getuid()
	p.image.User = &uid
	if home := p.environment.get("HOME"); filepath.IsAbs(home) {
		p.image.Home = filepath.Clean(home)
	}
	if folder := p.environment.Submission; folder != "" {
		if absolute, err := filepath.Abs(folder); err == nil {
			p.image.Submission = absolute
		}
	}
}

// look finds a program in the PATH of what is started, as a shell does.
func (p *prober) look(name string) (path string, ok bool) {
	for _, folder := range filepath.SplitList(p.environment.get("PATH")) {
		if folder == "" {
			folder = "."
		}
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}

func (p *prober) programs() {
	p.image.Programs = map[string]bool{}
	for _, name := range image.Programs() {
		_, p.image.Programs[name] = p.look(name)
	}
}

// patience is how long a program of the machine may take to answer. A first
// import of Python from a cold disk takes seconds.
const patience = 30 * time.Second

// run returns what a program prints.
func (p *prober) run(ctx context.Context, path string, arguments ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, path, arguments...)
	command.Env = p.environment.Variables
	command.WaitDelay = time.Second
	out, err := command.Output()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out, err
}

// read returns a file of the machine; "" and false where there is none.
func (p *prober) read(path string) (string, bool) {
	data, err := os.ReadFile(filepath.Join(p.root, path))
	return string(data), err == nil
}

// absentOf lists the telling distributions that are not among the installed.
func absentOf(installed map[string]string) []string {
	names := image.Serving()
	names = slices.DeleteFunc(names, func(name string) bool { _, there := installed[name]; return there })
	return slices.Sorted(slices.Values(names))
}

// merge adds distributions to those that were found before, which win: Python
// takes a module from the first folder of its path that has it.
func merge(into, more map[string]string) {
	for name := range maps.Keys(more) {
		if _, there := into[name]; !there {
			into[name] = more[name]
		}
	}
}
