package boot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/verify/boot/python"
	"slipway/verify/boot/sandbox"
	"slipway/verify/report"
)

// tried is what was tried again of the first start, once it was over.
type tried struct {
	main     int   // process of serve.sh; 0 outside a sandbox
	alive    []int // processes that served
	programs []triedProgram
	modules  python.Modules
}

type triedProgram struct {
	program   python.Program
	arguments python.Arguments
}

// mostPrograms is how many command lines are tried.
const mostPrograms = 8

// tryPython tries the Python programs of the first start, which has ended: their
// command lines, and the imports of the server that was healthy.
func (s *session) tryPython(ctx context.Context, o *observed) error {
	if o.trace == nil || !s.shipsPython() || !slices.Contains(s.Profile.Gates, "install") {
		return nil
	}
	if s.process == nil {
		return nil // serve.sh could not be executed
	}
	if err := errors.Join(s.place.killAll(), s.awaitExit(ctx)); err != nil { // one that did not become healthy still runs
		return err
	}
	programs := slices.DeleteFunc(python.Programs(o.trace), func(p python.Program) bool { return !o.brought(&p) })
	for i := range programs[:min(len(programs), mostPrograms)] {
		programs[i].GPU = s.GPU
		s.waiting("trying the arguments of %s", programs[i].Text())
		o.python.programs = append(o.python.programs, triedProgram{programs[i], programs[i].TryArguments(ctx, tryout{s.place})})
	}
	if !o.first.healthy() || o.python.main == 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if server := python.Server(programs, o.python.main, o.python.alive); server != nil {
		s.waiting("trying the imports of %s", server.Text())
		o.python.modules = server.TryModules(ctx, tryout{s.place}, o.at)
		s.step("tried the imports of %s that its start did not: %d, %s", server.Text(), o.python.modules.Tried, modulesText(o.python.modules))
	}
	return context.Cause(ctx)
}

// brought reports whether a program is of the submission, or was installed by it:
// what the machine has is not tried.
func (o *observed) brought(p *python.Program) bool {
	switch file := p.Path(); {
	case file != "":
		return o.owns(file)
	case isInstaller(p.Text() + " " + strings.Join(p.Args, " ")):
		return false
	}
	return !slices.Contains(ofPython, p.Name)
}

// ofPython are modules that serve.sh may run and that Python itself brings, or
// pip.
var ofPython = []string{"pip", "venv", "ensurepip", "zipfile", "tarfile", "compileall", "site", "http.server", "json.tool"}

// tryout is the place of a start that is over.
type tryout struct{ place place }

// mostOutput is how much a trial may print, in bytes: what comes after is lost.
const mostOutput = 4 << 20

// Run runs a command and ends all that it left.
func (t tryout) Run(ctx context.Context, command python.Command, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var output bounded
	process, err := t.place.start(command.Argv, command.Env, command.Dir, &output)
	if err != nil {
		return "", err
	}
	select {
	case <-process.Exited():
	case <-ctx.Done():
	}
	if err := t.place.killAll(); err != nil {
		return "", err
	}
	err = process.Err()
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %s", python.ErrLate, rounded(limit))
	}
	return output.String(), err
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data.Write(p[:min(len(p), max(0, mostOutput-b.data.Len()))])
	return len(p), nil
}

func (b *bounded) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// pids are the processes of a place, where it is a sandbox.
func pids(p place) (all []int) {
	inside, is := p.(*sandboxPlace)
	if !is {
		return nil
	}
	processes, _ := inside.Processes() // an error means that none is known
	for _, process := range processes {
		all = append(all, process.PID)
	}
	return all
}

// findingsOfWheels is how many modules of wheels that fail are named.
const findingsOfWheels = 10

// judgeImports fails the gate for imports that the server is sure to meet and of
// which it is sure that nothing has them, and warns of the rest.
func (o *observed) judgeImports(v *verdict) {
	warned, unnamed := 0, 0
	for _, i := range o.python.modules.Failed {
		if c, _, ok := findCause(i.Problem); i.Late || ok && c.noGPU && o.card == "" {
			v.Note("%s says nothing here: %s", i.Statement, i.Problem)
			continue
		}
		f := importFinding(i)
		switch {
		case i.Certain && !o.opened(i.Files):
			v.Fail(f)
		case i.Why == python.OfWheel && warned == findingsOfWheels:
			unnamed++
		default:
			if i.Why == python.OfWheel {
				warned++
			}
			v.Warn(f)
		}
	}
	if unnamed > 0 {
		v.Note("%d other modules of wheels cannot be imported either", unnamed)
	}
	if n := o.python.modules.Tried; n > 0 {
		v.Note("imports tried beside those of the start: %d; %s", n, modulesText(o.python.modules))
	}
}

// opened reports whether the start opened one of the files: then it imported what
// a trial could not.
func (o *observed) opened(files []string) bool {
	return slices.ContainsFunc(o.trace.Opened, func(f sandbox.Opened) bool { return f.Exists && slices.Contains(files, f.Path) })
}

func importFinding(i python.Import) report.Finding {
	f := report.Finding{Path: i.Path, Problem: fmt.Sprintf("%s: %s", i.Statement, i.Problem), Want: "a module that can be imported where the server runs"}
	switch i.Why {
	case python.Reached:
		f.Problem = fmt.Sprintf("line %d: %s", i.Line, f.Problem)
		f.Hint = "the server meets it when it gets there: ship what is missing, or import it at the top, so that the start shows it"
		if !i.Certain {
			f.Hint = "a branch that the server never takes is no fault, nor what the server itself prepares; else ship what is missing, or import it at the top, so that the start shows it"
		}
	case python.Computed:
		f.Hint = "code that the server loads imports modules by names that only a run knows, and this one may be among them: mend it, or leave it out"
	case python.Own:
		f.Hint = "nothing that is started imports it: mend it, or leave it out"
	case python.OfWheel:
		f.Path, f.Hint = i.Wheel, "nothing that is started names it: install what it needs, or leave the wheel out"
	}
	if c, _, ok := findCause(i.Problem); ok {
		f.Hint += "; " + c.remedy
	}
	return f
}

// relative is a path in the submission, relative to it; others are as they are.
func (o *observed) relative(name string) string { return strings.TrimPrefix(name, o.at+"/") }

func modulesText(m python.Modules) string {
	switch {
	case m.Open != "":
		return m.Open
	case len(m.Failed) > 0:
		return fmt.Sprintf("%d in vain", len(m.Failed))
	case m.Tried == 0:
		return "there are none"
	}
	return "all went well"
}
