package boot

import (
	"fmt"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/verify/boot/python"
	"slipway/verify/boot/sandbox"
	"slipway/verify/report"
)

func TestInstallers(t *testing.T) {
	for command, want := range map[string]bool{
		"process 7, python3 -m pip install --no-index x": true, "/opt/venv/bin/pip3.12 install x": true, "uv pip install x": true, "uv sync": true,
		"python3 -m zipfile -e wheels/x-1-py3-none-any.whl /tmp/y": true, "unzip -q wheels/x-1-py3-none-any.whl -d /tmp/y": true, "unzip data.zip": false,
		"pip --version": false, "python3 server.py install": false, "/usr/bin/install -m 644 a b": false, "": false,
	} {
		if got := isInstaller(command); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
	o := tracedObserved()
	o.rehearsal.Files = []manifest.File{{Path: "wheels/x-1-py3-none-any.whl"}}
	o.first.Healthy = 9
	if v := o.judgeInstall(); v.Status != report.NotApplicable {
		t.Errorf("no installer: %+v", v)
	}
	pip := sandbox.Program{Path: "/usr/bin/pip", Argv: []string{"pip", "install", "x"}, At: 1e9}
	server := sandbox.Program{Path: "/usr/bin/python3", Argv: []string{"python3", "server.py"}, At: 5e9, Python: &sandbox.Invocation{Argv: []string{"python3", "server.py"}}}
	o.trace.Programs = []sandbox.Program{pip, server}
	if v := o.judgeInstall(); v.Status != "" || !strings.Contains(v.Notes[0], "installing took 4s, 44% of the start of 9s") {
		t.Errorf("an installer: %+v", v)
	}
	for _, test := range []struct {
		name, log, says string
		programs        []sandbox.Program
	}{
		{"pip said so", "ERROR: No matching distribution found for uvicorn\nModuleNotFoundError: No module named 'uvicorn'", "pip finds no wheel of uvicorn", []sandbox.Program{pip, server}},
		{"no pip", "/usr/bin/python3: No module named pip", "this Python has no pip", []sandbox.Program{pip}},
		{"noexec", "ImportError: /dev/shm/x.so: failed to map segment from shared object", "mount without exec", []sandbox.Program{pip, server}},
		{"full, and nothing was started after it", "OSError: [Errno 28] No space left on device", "a folder is full", []sandbox.Program{pip}},
		{"for a reason that nobody knows", "Segmentation fault", "an installer failed: the server ended", []sandbox.Program{pip}},
		{"full, and the server was started", "OSError: [Errno 28] No space left on device", "", []sandbox.Program{pip, server}},
		{"no installer", "OSError: [Errno 28] No space left on device", "", []sandbox.Program{server}},
	} {
		o.first.problem, o.first.log, o.trace.Programs = "the server ended", test.log, test.programs
		v := o.judgeInstall()
		if test.says == "" && len(v.Findings) > 0 || test.says != "" && (len(v.Findings) != 1 || !strings.Contains(v.Findings[0].Problem, test.says)) {
			t.Errorf("%s: %+v", test.name, v)
		}
	}
}

// What runs no Python has nothing that could be missing for it; what does is
// undecided where nobody saw it.
func TestInstallApplies(t *testing.T) {
	o := tracedObserved()
	o.rehearsal.Files = []manifest.File{{Path: "runtime/serve"}}
	if v := o.judgeInstall(); v.Status != report.NotApplicable || !strings.Contains(v.Notes[0], "neither wheels nor Python") {
		t.Errorf("a program: %+v", v)
	}
	o.rehearsal.Files, o.trace = []manifest.File{{Path: "code/server.py"}}, nil
	if v := o.judgeInstall(); v.Status != report.Undecided {
		t.Errorf("without a sandbox: %+v", v)
	}
}

// Imports of what serves fail the gate, others warn, and what only an
// accelerator or a faster machine would show does neither.
func TestJudgeImports(t *testing.T) {
	for _, test := range []struct {
		name  string
		tried python.Import
		level report.Level
	}{
		{"in a function", python.Import{Why: python.Reached, Certain: true, Problem: "ModuleNotFoundError: No module named 'x'"}, report.Error},
		{"in a branch", python.Import{Why: python.Reached, Problem: "ModuleNotFoundError: No module named 'x'"}, report.Warning},
		{"of what the start opened", python.Import{Why: python.Reached, Certain: true, Files: []string{"/opened.py"}, Problem: "ModuleNotFoundError: No module named 'x'"}, report.Warning},
		{"by a computed name", python.Import{Why: python.Computed, Problem: "SyntaxError: invalid syntax"}, report.Warning},
		{"by nothing", python.Import{Why: python.Own, Problem: "ModuleNotFoundError: No module named 'x'"}, report.Warning},
		{"of a wheel", python.Import{Why: python.OfWheel, Problem: "ModuleNotFoundError: No module named 'x'"}, report.Warning},
		{"late", python.Import{Why: python.Reached, Problem: "it did not end within 60 s", Late: true}, ""},
		{"of a GPU", python.Import{Why: python.Reached, Problem: "ImportError: libcuda.so.1: cannot open shared object file"}, ""},
	} {
		o := tracedObserved()
		o.trace.Opened = append(o.trace.Opened, sandbox.Opened{Path: "/opened.py", Exists: true})
		o.python.modules = python.Modules{Tried: 1, Failed: []python.Import{test.tried}}
		var v verdict
		o.judgeImports(&v)
		if test.level == "" && len(v.Findings) > 0 || test.level != "" && (len(v.Findings) != 1 || v.Findings[0].Level != test.level) {
			t.Errorf("%s: %+v, want %q", test.name, v.Findings, test.level)
		}
	}
}

// Of a start that became healthy no refusal fails the gate: the program may have
// gone on, or look at what is gone since.
func TestJudgeArguments(t *testing.T) {
	for _, test := range []struct {
		name      string
		arguments python.Arguments
		unhealthy bool
		level     report.Level // "": no finding
	}{
		{"taken", python.Arguments{}, false, ""},
		{"not tried", python.Arguments{Alone: "it reads none"}, false, ""},
		{"unknown", python.Arguments{Refused: "unrecognized arguments: --prot 8"}, false, report.Warning},
		{"a file that is gone", python.Arguments{Refused: "argument --table: can't open '/tmp/x'"}, false, report.Warning},
		{"a file that never was", python.Arguments{Refused: "argument --table: can't open '/tmp/x'"}, true, report.Error},
		{"a help that fails", python.Arguments{Help: "ValueError: badly formed help string"}, false, report.Warning},
	} {
		o := tracedObserved()
		o.python.programs = []triedProgram{{python.Program{Kind: "module", Name: "server"}, test.arguments}}
		if test.unhealthy {
			o.first.problem = "the server ended"
		}
		var v verdict
		o.judgeArguments(&v)
		if test.level == "" && len(v.Findings) > 0 || test.level != "" && (len(v.Findings) != 1 || v.Findings[0].Level != test.level) {
			t.Errorf("%s: %+v, want %q", test.name, v.Findings, test.level)
		}
	}
}

// What went away with the server leaves the gate decided.
func TestInstallGone(t *testing.T) {
	for _, gone := range []bool{false, true} {
		o := tracedObserved()
		o.rehearsal.Files = []manifest.File{{Path: "code/server.py"}}
		o.first.Healthy = 9
		o.python.programs = []triedProgram{{}}
		o.python.modules = python.Modules{Open: "nothing was tried: chdir", Gone: gone}
		if v := o.judgeInstall(); (v.Status == report.Undecided) == gone {
			t.Errorf("gone %v: %+v", gone, v)
		}
	}
}

// Of the modules of wheels ten are named, and all are counted.
func TestJudgeImportsOfWheels(t *testing.T) {
	o := tracedObserved()
	o.python.modules.Tried = 40
	for i := range findingsOfWheels + 3 {
		o.python.modules.Failed = append(o.python.modules.Failed, python.Import{Why: python.OfWheel, Statement: fmt.Sprint("import m", i), Problem: "ImportError: x", Wheel: "x.whl"})
	}
	var v verdict
	o.judgeImports(&v)
	if notes := strings.Join(v.Notes, "\n"); len(v.Findings) != findingsOfWheels || notes != "3 other modules of wheels cannot be imported either\nimports tried beside those of the start: 40; 13 in vain" {
		t.Errorf("%d findings, notes %s", len(v.Findings), notes)
	}
}

// What the machine itself has is not the submission's.
func TestBrought(t *testing.T) {
	o := tracedObserved()
	for _, test := range []struct {
		kind, name, arguments string
		want                  bool
	}{
		{"file", "/submission/code/server.py", "", true},
		{"file", "/tmp/venv/bin/serve", "", true},
		{"file", "/usr/bin/pip", "install x", false},
		{"file", "/usr/lib/python3/dist-packages/tool.py", "", false},
		{"module", "server", "--port 8000", true},
		{"module", "pip", "install x", false},
		{"module", "http.server", "8000", false},
		{"module", "zipfile", "-e wheels/x-1-py3-none-any.whl /tmp/y", false},
	} {
		p := &python.Program{Kind: test.kind, Name: test.name, Args: strings.Fields(test.arguments)}
		if got := o.brought(p); got != test.want {
			t.Errorf("%s %s: %v", test.kind, test.name, got)
		}
	}
}
