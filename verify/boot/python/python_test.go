package python

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/verify/boot/sandbox"
)

// interpreter is the one of this machine.
func interpreter(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	if os.Getenv("REQUIRE_SANDBOX") == "1" {
		t.Fatal("this machine has no Python")
	}
	t.Skip("this machine has no Python")
	return ""
}

// minor is the n of the interpreter's version 3.n.
func minor(t *testing.T) int {
	t.Helper()
	output, err := exec.Command(interpreter(t), "-c", "import sys; print(sys.version_info[1])").Output()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(output)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// here runs commands on this machine: the programs of these tests harm nothing.
type here struct{}

func (here) Run(ctx context.Context, command Command, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(ctx, command.Argv[0], command.Argv[1:]...)
	c.Env, c.Dir = command.Env, command.Dir
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	err := c.Run()
	if ctx.Err() != nil {
		err = ErrLate
	}
	return output.String(), err
}

// write writes files into a new folder, and returns its real path.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// started is the program of a command line in a folder.
func started(t *testing.T, folder string, argv ...string) *Program {
	t.Helper()
	python := interpreter(t)
	trace := sandbox.Trace{Programs: []sandbox.Program{{Path: python, Argv: argv, PID: 7, Python: &sandbox.Invocation{
		Argv: append([]string{"python3"}, argv...), Env: []string{"PATH=/usr/bin:/bin"}, Dir: folder}}}}
	programs := Programs(&trace)
	if len(programs) != 1 {
		t.Fatalf("%q: programs %+v", argv, programs)
	}
	return &programs[0]
}

func TestPrograms(t *testing.T) {
	call := func(path, line string, argv ...string) sandbox.Program {
		return sandbox.Program{Path: path, Argv: argv, Python: &sandbox.Invocation{Interpreter: line, Argv: argv, Dir: "/submission"}}
	}
	trace := sandbox.Trace{Programs: []sandbox.Program{
		{Path: "/usr/bin/bash", Argv: []string{"bash", "serve.sh"}},
		call("/usr/bin/python3", "", "python3", "-u", "-X", "utf8", "code/server.py", "--port", "8000"),
		call("/usr/bin/python3.12", "", "python3", "-m", "app.server", "x"),
		call("/tmp/venv/bin/serve", "/tmp/venv/bin/python3 -B", "serve", "run"),
		call("/submission/code/tool.py", "/usr/bin/env python3", "code/tool.py"), // env starts Python itself, which is another program
		call("/usr/bin/python3", "", "python3", "-c", "print()"),
		call("/usr/bin/python3", "", "python3", "-"),
		call("/usr/bin/python3", "", "python3", "-i", "code/server.py"),
		call("/usr/bin/python3", "", "python3", "-u", "-X", "utf8", "code/server.py", "--port", "8000"), // once more
	}}
	var got []string
	for _, p := range Programs(&trace) {
		got = append(got, strings.Join(p.interpreter, " ")+" | "+p.Kind+" "+p.Name+" | "+strings.Join(p.Args, " ")+" | "+p.Path())
	}
	want := []string{
		"/usr/bin/python3 -u -X utf8 | file code/server.py | --port 8000 | /submission/code/server.py",
		"/usr/bin/python3.12 | module app.server | x | ",
		"/tmp/venv/bin/python3 -B | file /tmp/venv/bin/serve | run | /tmp/venv/bin/serve",
	}
	if !slices.Equal(got, want) {
		t.Errorf("programs:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestServer(t *testing.T) {
	programs := []Program{{Name: "export", PID: 3}, {Name: "helper", PID: 5}, {Name: "stub", PID: 2}, {Name: "server", PID: 2}, {Name: "worker", PID: 9}}
	for _, test := range []struct {
		name  string
		alive []int
		want  string
	}{
		{"it took the shell's place", []int{2, 5, 9}, "server"},
		{"the shell waits for it", []int{1, 5, 9}, "helper"},
		{"none", []int{1}, ""},
	} {
		got := ""
		if p := Server(programs, 2, test.alive); p != nil {
			got = p.Name
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
