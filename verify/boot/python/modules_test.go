package python

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func texts(modules Modules) (all []string) {
	for _, i := range modules.Failed {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s:%d %s: %s %s", i.Why, i.Path, i.Line, i.Statement, i.Problem, i.Wheel)))
	}
	return all
}

func TestTryModules(t *testing.T) {
	const missing = "ModuleNotFoundError: No module named "
	for _, test := range []struct {
		name  string
		files map[string]string // serve.py is started
		tried int
		want  []string
	}{
		{"what the start imports is not tried", map[string]string{"serve.py": "import other, json\nimport absent", "other.py": "import json"}, 0, nil},
		{"in a function", map[string]string{"serve.py": "def f():\n    import absent"}, 1, []string{"0 serve.py:2 import absent: " + missing + "'absent'"}},
		{"in a method of an imported module", map[string]string{"serve.py": "import other", "other.py": "class A:\n    async def f(self):\n        from absent.deep import x, y"}, 1,
			[]string{"0 other.py:3 from absent.deep import x, y: " + missing + "'absent'"}},
		{"what that needs", map[string]string{"serve.py": "def f():\n    import other", "other.py": "import deeper", "deeper.py": "import absent"}, 1, []string{"0 serve.py:2 import other: " + missing + "'absent'"}},
		{"a name that is not there", map[string]string{"serve.py": "def f():\n    from other import old", "other.py": "new = 1"}, 1, []string{"0 serve.py:2 from other import old: ImportError: cannot import name 'old' from 'other'"}},
		{"its syntax", map[string]string{"serve.py": "def f():\n    import other", "other.py": "def\n"}, 1, []string{"0 serve.py:2 import other: SyntaxError: invalid syntax"}},
		{"a package's own", map[string]string{"serve.py": "import parts.one", "parts/__init__.py": "", "parts/one.py": "def f():\n    from . import two\n    from .three import x", "parts/two.py": ""}, 2,
			[]string{"0 parts/one.py:3 from .three import x: " + missing + "'parts.three'"}},
		{"by a literal name", map[string]string{"serve.py": "import importlib\ndef f():\n    importlib.import_module('absent')"}, 1, []string{"0 serve.py:3 import absent: " + missing + "'absent'"}},
		{"by a computed name", map[string]string{"serve.py": "import importlib\nimportlib.import_module('oth' + 'er')", "other.py": "", "old.py": "import absent"}, 2, []string{"1 old.py:0 import old: " + missing + "'absent'"}},
		{"by nothing", map[string]string{"serve.py": "", "old.py": "import absent"}, 1, []string{"2 old.py:0 import old: " + missing + "'absent'"}},
		{"a script that nothing starts", map[string]string{"serve.py": "", "train.py": "import absent\nif __name__ == '__main__':\n    absent.train()", "pack.py": "import absent\nabsent.pack()",
			"fetch.py": "import os, absent\nTOKEN = os.environ['TOKEN']", "sum.py": "import sys, absent\ntotal = int(sys.argv[1])", "loop.py": "import absent\nfor x in absent.all:\n    x()"}, 0, nil},

		{"prepared for", map[string]string{"serve.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import absent\ntry:\n    import absent\nexcept ImportError:\n    absent = None\n" +
			"import contextlib, importlib.util\nwith contextlib.suppress(ImportError):\n    import absent\ndef f():\n    if importlib.util.find_spec('absent'):\n        import absent\n"}, 0, nil},
		{"in what nests deep", map[string]string{"serve.py": "x = 1" + strings.Repeat(" + 1", 600) + "\nif x == 0:\n    pass\n" + elifs(500) + "else:\n    import absent"}, 1,
			[]string{"0 serve.py:1005 import absent: " + missing + "'absent'"}},
		{"in the cases of a match", map[string]string{"serve.py": "import sys\nmatch sys.argv[1:]:\n    case ['x']:\n        import absent\nmatch sys.platform:\n    case 'win32':\n        import winreg"}, 1,
			[]string{"0 serve.py:4 import absent: " + missing + "'absent'"}},
		{"beside except*", map[string]string{"serve.py": "try:\n    import absent\nexcept* ImportError:\n    import gone\n"}, 1, []string{"0 serve.py:4 import gone: " + missing + "'gone'"}},
		{"it ends the interpreter", map[string]string{"serve.py": "def f():\n    import dies\n    import absent", "dies.py": "import os\nos._exit(3)"}, 2,
			[]string{"0 serve.py:2 import dies: it ended the interpreter: exit status 3", "0 serve.py:3 import absent: " + missing + "'absent'"}},
		{"it exits", map[string]string{"serve.py": "def f():\n    import exits", "exits.py": "raise SystemExit('usage')"}, 1, []string{"0 serve.py:2 import exits: SystemExit: usage"}},
		{"only after another", map[string]string{"serve.py": "def f():\n    import first\n    import second", "first.py": "import sys\nsys.modules['second'] = None", "second.py": ""}, 2, nil},
		{"for when the file is started", map[string]string{"serve.py": "import other", "other.py": "if __name__ == '__main__':\n    import absent"}, 0, nil},
		{"an argument at import", map[string]string{"serve.py": "def f():\n    import other", "other.py": "import sys\nassert sys.argv == ['serve.py']"}, 1, nil},
		{"the script itself", map[string]string{"serve.py": "def f():\n    import serve\nprint('started')"}, 0, nil},
		{"it prints", map[string]string{"serve.py": "def f():\n    import other", "other.py": "print('{\"done\": true}')"}, 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if needs := map[string]int{"in the cases of a match": 10, "beside except*": 11}[test.name]; minor(t) < needs {
				t.Skipf("not of Python 3.%d", minor(t))
			}
			root := write(t, test.files)
			got := started(t, root, "serve.py").TryModules(t.Context(), here{}, root)
			if got.Open != "" || got.Tried != test.tried || len(got.Failed) != len(test.want) {
				t.Fatalf("tried %d, failed %q, open %q; want %d, %q", got.Tried, texts(got), got.Open, test.tried, test.want)
			}
			for i, text := range texts(got) {
				if !strings.HasPrefix(text, test.want[i]) {
					t.Errorf("%q, want %q", text, test.want[i])
				}
			}
		})
	}
}

func elifs(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("elif x == %d:\n    pass\n", -1-i)
	}
	return text
}

// What Python's own reader cannot take to pieces is named, and the rest is tried.
func TestTryModulesUnread(t *testing.T) {
	root := write(t, map[string]string{"serve.py": "def f():\n    import absent", "deep.py": "sum = 1" + strings.Repeat(" + 1", 5000)})
	if exec.Command(interpreter(t), "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", filepath.Join(root, "deep.py")).Run() == nil {
		t.Skip("this Python reads it")
	}
	got := started(t, root, "serve.py").TryModules(t.Context(), here{}, root)
	if len(got.Failed) < 1 || got.Failed[0].Statement != "import absent" || !strings.Contains(got.Open, "deep.py was not searched for imports: ") {
		t.Errorf("got %q, open %q", texts(got), got.Open)
	}
}

// told is a place where every command says the same and ends in the same way.
type told struct {
	lines []string
	ended error
	runs  int
}

func (f *told) Run(_ context.Context, command Command, _ time.Duration) (output string, ended error) {
	f.runs++
	secret := command.Argv[slices.Index(command.Argv, "-c")+2]
	for _, line := range f.lines {
		output += "\n" + secret + line + "\n"
	}
	return output, f.ended
}

// An import on which time runs out is not a broken one.
func TestTryModulesLate(t *testing.T) {
	begun := `{"number": 0, "statement": "import slow", "path": "serve.py", "line": 2, "why": "reached"}`
	p := started(t, "/submission", "serve.py")
	for _, test := range []struct {
		name string
		told told
		late bool
		says string
	}{
		{"time ran out", told{lines: []string{begun}, ended: fmt.Errorf("%w: 3m0s", ErrLate)}, true, "it did not end in time: 3m0s"},
		{"it died", told{lines: []string{begun}, ended: errors.New("signal: segmentation fault")}, false, "it ended the interpreter: signal: segmentation fault"},
		{"it failed, and time ran out when it was alone", told{lines: []string{begun, `{"ended": "KeyError: 'x'"}`}, ended: ErrLate}, true, "KeyError: 'x', and there was no time to try it alone"},
	} {
		got := p.tryModules(t.Context(), &test.told, "/submission", time.Hour)
		if len(got.Failed) == 0 || got.Failed[0].Late != test.late || got.Failed[0].Problem != test.says {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

// Once the time is over nothing is tried again, and what was not is left open.
func TestTryModulesOver(t *testing.T) {
	p := started(t, "/submission", "serve.py")
	failing := []string{`{"number": 0, "statement": "import a", "why": "reached"}`, `{"ended": "KeyError: 'a'"}`, `{"number": 1, "statement": "import b", "why": "reached"}`, `{"ended": "KeyError: 'b'"}`, `{"done": true}`}
	place := &told{lines: failing}
	if got := p.tryModules(t.Context(), place, "/submission", 0); place.runs != 1 || len(got.Failed) != 0 || !strings.Contains(got.Open, "the time for the trials was over") {
		t.Errorf("over: %d runs, %+v", place.runs, got)
	}
	place = &told{lines: failing}
	if got := p.tryModules(t.Context(), place, "/submission", time.Hour); place.runs != 3 || len(got.Failed) != 2 || got.Open != "" {
		t.Errorf("in time: %d runs, %+v", place.runs, got)
	}
}

// Only an import that stands first in a function that something calls, and whose
// module is nowhere, is a fault for certain.
func TestTryModulesCertain(t *testing.T) {
	const call = "\ndef g():\n    f()\n"
	for _, test := range []struct {
		name    string
		files   map[string]string
		certain bool
	}{
		{"in a function", map[string]string{"serve.py": "def f():\n    import absent" + call}, true},
		{"in a method", map[string]string{"serve.py": "class A:\n    def f(self):\n        x = 1\n        import absent\n    def g(self):\n        self.f()"}, true},
		{"of a module that needs it", map[string]string{"serve.py": "def f():\n    import other" + call, "other.py": "import absent.deep"}, true},
		{"in a table of backends", map[string]string{"serve.py": "def f():\n    import absent\nBACKENDS = {'x': f}\ndef g(name):\n    BACKENDS[name]()"}, false},
		{"in a function that nothing calls", map[string]string{"serve.py": "def f():\n    import absent"}, false},
		{"in a branch", map[string]string{"serve.py": "def f(backend='x'):\n    if backend == 'y':\n        import absent" + call}, false},
		{"after a return", map[string]string{"serve.py": "import sys\ndef f():\n    if sys.platform != 'darwin':\n        return\n    import absent" + call}, false},
		{"by a flag", map[string]string{"serve.py": "try:\n    import absent\n    HAS = True\nexcept ImportError:\n    HAS = False\ndef f():\n    if HAS:\n        import absent.ops" + call}, false},
		{"caught by another name", map[string]string{"serve.py": "E = (ImportError, OSError)\ndef f():\n    try:\n        import absent\n    except E:\n        pass" + call}, false},
		{"the path is prepared", map[string]string{"serve.py": "import sys\nsys.path.insert(0, 'lib')\ndef f():\n    import mylib" + call, "lib/mylib.py": ""}, false},
		{"a stub", map[string]string{"serve.py": "import sys\nsys.modules['absent'] = sys\ndef f():\n    import absent" + call}, false},
		{"a finder of another module", map[string]string{"serve.py": "import hook\ndef f():\n    import absent" + call, "hook.py": "from sys import meta_path"}, false},
		{"an environment", map[string]string{"serve.py": "import os\nos.environ['A'] = ''\ndef f():\n    import other" + call, "other.py": "import os\nos.environ['A']"}, false},
		{"in a circle", map[string]string{"serve.py": "import models\ndef f():\n    from views import V" + call, "models.py": "class M: pass\nfrom views import V", "views.py": "from models import M\nclass V(M): pass"}, false},
		{"a name that is not there", map[string]string{"serve.py": "def f():\n    from other import old" + call, "other.py": ""}, false},
		{"it ends the interpreter", map[string]string{"serve.py": "def f():\n    import dies" + call, "dies.py": "import os\nos._exit(0)"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := write(t, test.files)
			got := started(t, root, "serve.py").TryModules(t.Context(), here{}, root)
			if test.certain && len(got.Failed) != 1 || got.Open != "" {
				t.Fatalf("failed %q, open %q", texts(got), got.Open)
			}
			for _, i := range got.Failed {
				if i.Certain != test.certain {
					t.Errorf("%s: %s, certain: %v", i.Statement, i.Problem, i.Certain)
				}
			}
		})
	}
}

// What is imported may print without end, and a folder may go with the server.
func TestTryModulesPlace(t *testing.T) {
	root := write(t, map[string]string{"serve.py": "def f():\n    import loud", "loud.py": "import os\nprint('x' * 99)\nos.write(2, b'y' * 99)"})
	p := started(t, root, "serve.py")
	if said, output, _ := p.run(t.Context(), here{}, false, time.Minute, modulesProgram, root, "0", "-1"); len(said) != 3 || strings.Contains(output, "xxx") || strings.Contains(output, "yyy") {
		t.Errorf("printed %q", output)
	}
	p.dir = filepath.Join(root, "gone")
	if got := p.TryModules(t.Context(), here{}, root); !got.Gone || len(got.Failed) > 0 {
		t.Errorf("without its folder: %+v", got)
	}
}

// Modules of a wheel that nothing names are tried, and said to be of it.
func TestTryModulesOfWheels(t *testing.T) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, member := range []string{"named.py", "free/__init__.py", "_private.py", "x-1.dist-info/METADATA"} {
		if _, err := w.Create(member); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	root := write(t, map[string]string{"serve.py": "try:\n    import named\nexcept ImportError:\n    pass", "wheels/x-1-py3-none-any.whl": archive.String(), "wheels/broken-1-py3-none-any.whl": "no archive"})
	got := started(t, root, "serve.py").TryModules(t.Context(), here{}, root)
	if want := []string{"3 :0 import free: ModuleNotFoundError: No module named 'free' wheels/x-1-py3-none-any.whl"}; got.Open != "" || !slices.Equal(texts(got), want) {
		t.Errorf("got %q, open %q", texts(got), got.Open)
	}
}

// The application that a server of somebody else's loads is the server.
func TestTryModulesOfApplication(t *testing.T) {
	root := write(t, map[string]string{"web.py": "import app", "app.py": "def f():\n    import absent"})
	got := started(t, root, "-m", "web", "app:application").TryModules(t.Context(), here{}, root)
	if len(got.Failed) != 1 || got.Failed[0].Path != "app.py" {
		t.Errorf("got %q, open %q", texts(got), got.Open)
	}
}

// What was on the module path and is gone says nothing of modules.
func TestTryModulesLost(t *testing.T) {
	root := write(t, map[string]string{"serve.py": "def f():\n    import absent"})
	p := started(t, root, "serve.py")
	p.env = append(p.env, "PYTHONPATH="+root+"/gone")
	if got := p.TryModules(t.Context(), here{}, root); len(got.Failed) != 0 || !strings.Contains(got.Open, "gone, which was on PYTHONPATH, went with the server") {
		t.Errorf("got %q, open %q", texts(got), got.Open)
	}
}

// A Python that cannot start is no fault of a module.
func TestTryModulesWithoutPython(t *testing.T) {
	root := write(t, map[string]string{"serve.py": "def f():\n    import absent"})
	p := started(t, root, "serve.py")
	p.interpreter = []string{"/bin/false"}
	if got := p.TryModules(t.Context(), here{}, root); len(got.Failed) != 0 || !strings.Contains(got.Open, "nothing was tried: exit status 1") {
		t.Errorf("got %q, open %q", texts(got), got.Open)
	}
}
