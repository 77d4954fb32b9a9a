// Package python tries again, in the place where a submission ran, what its
// Python programs are made of: whether each takes the command line that it was
// started with, and whether the modules can be imported that the start itself
// did not import. It promises that no server starts, that while its arguments are
// read a program is stopped before it writes, binds, sends or starts anything, as
// far as Python announces that (PEP 578), and that every trial ends in a bounded
// time.
package python

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed" // the programs that are run
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway/verify/boot/sandbox"
	"slipway/verify/script/shell"
)

// Program is a Python program that was started.
type Program struct {
	Kind string // "file" or "module"
	Name string // as the command line gives it
	Args []string

	GPU         bool // its start had GPUs, and what reads its arguments may look at them
	PID         int
	interpreter []string // with its options
	env         []string
	dir         string
}

const (
	aFile   = "file"
	aModule = "module"
)

// Path is where a program's file lies; "" for a module.
func (p *Program) Path() string {
	switch {
	case p.Kind == aModule:
		return ""
	case filepath.IsAbs(p.Name):
		return filepath.Clean(p.Name)
	}
	return filepath.Join(p.dir, p.Name)
}

// Programs are those of a trace that run a file or a module, each once, in the
// order of their start. What Python itself runs for its own purposes is none.
func Programs(trace *sandbox.Trace) (all []Program) {
	for _, started := range trace.Programs {
		if p, ok := programOf(started); ok && !slices.ContainsFunc(all, p.same) {
			all = append(all, p)
		}
	}
	return all
}

func (p *Program) same(o Program) bool {
	return p.Kind == o.Kind && p.Name == o.Name && slices.Equal(p.Args, o.Args)
}

func programOf(started sandbox.Program) (p Program, ok bool) {
	call := started.Python
	if call == nil || len(call.Argv) == 0 {
		return p, false
	}
	p = Program{PID: started.PID, env: call.Env, dir: call.Dir}
	if line := strings.Fields(call.Interpreter); len(line) > 0 && isInterpreter(line[0]) {
		p.Kind, p.Name, p.Args, p.interpreter = aFile, started.Path, call.Argv[1:], line
		return p, true
	}
	if !isInterpreter(started.Path) {
		return p, false
	}
	read, ok := shell.PythonOf(append([]string{"python3"}, call.Argv[1:]...))
	p.Args, p.interpreter = read.Args, append([]string{started.Path}, read.Interpreter...)
	switch {
	case !ok || read.Code != "":
		return p, false
	case read.Module != "":
		p.Kind, p.Name = aModule, read.Module
	case read.File != "" && read.File != "-":
		p.Kind, p.Name = aFile, read.File
	}
	return p, p.Kind != "" && !slices.Contains(read.Interpreter, "-i") // with it, Python does not end
}

func isInterpreter(file string) bool { return strings.HasPrefix(path.Base(file), "python") }

// Server is the program that serves: the first of those that live, the process
// of serve.sh itself before others; nil where it is none of them.
func Server(programs []Program, main int, alive []int) *Program {
	var found *Program
	for i := range programs {
		p := &programs[i]
		switch {
		case !slices.Contains(alive, p.PID):
		case p.PID == main:
			found = p // the last that it became
		case found == nil:
			found = p
		}
	}
	return found
}

// Command is what a Place runs.
type Command struct {
	Argv, Env []string
	Dir       string
}

// ErrLate is of a command that had not ended at its limit, or when its context did.
var ErrLate = errors.New("it did not end in time")

// Place runs a command and ends all that it left: at the limit too. It returns
// what was printed, and how the command ended: nil for status 0, an error that
// wraps ErrLate where it was ended.
type Place interface {
	Run(ctx context.Context, command Command, limit time.Duration) (output string, ended error)
}

//go:embed arguments.py
var argumentsProgram string

//go:embed modules.py
var modulesProgram string

// run runs one of the two programs in a program's place, and returns what it said.
func (p *Program) run(ctx context.Context, place Place, gpu bool, limit time.Duration, text string, words ...string) (said []json.RawMessage, output string, ended error) {
	secret := rand.Text()
	argv := append(slices.Clone(p.interpreter), "-c", text, secret, p.Kind, p.Name)
	env := append(slices.DeleteFunc(slices.Clone(p.env), func(entry string) bool {
		return !gpu && strings.HasPrefix(entry, "CUDA_VISIBLE_DEVICES=") || strings.HasPrefix(entry, "PYTHONINSPECT=") || strings.HasPrefix(entry, "COLUMNS=")
	}), "COLUMNS=200")
	if !gpu {
		env = append(env, "CUDA_VISIBLE_DEVICES=")
	}
	output, ended = place.Run(ctx, Command{Argv: append(argv, words...), Env: env, Dir: p.dir}, limit)
	for line := range bytes.Lines([]byte(output)) {
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte(secret)); ok && json.Valid(data) {
			said = append(said, data)
		}
	}
	return said, output, ended
}

// Text is the program as people know it.
func (p *Program) Text() string {
	if p.Kind == aModule {
		return fmt.Sprintf("-m %s", p.Name)
	}
	return p.Name
}

// endOf says how a run ended, by the last line that it printed.
func endOf(output string, ended error) string {
	lines := strings.FieldsFunc(output, func(r rune) bool { return r == '\n' })
	how := "exit status 0"
	if ended != nil {
		how = ended.Error()
	}
	if len(lines) > 0 {
		how += ": " + strings.TrimSpace(lines[len(lines)-1])
	}
	return how
}
