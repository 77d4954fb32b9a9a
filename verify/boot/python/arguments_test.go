package python

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// options begins a program that takes a few of them.
const options = `import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=1)
parser.add_argument("--mode", choices=sorted({"a": 1, "b": 2}))
`

func TestTryArguments(t *testing.T) {
	for _, test := range []struct {
		name, program string
		argv          string // after python3
		want          Arguments
	}{
		{"taken", options + "parser.parse_args()\nraise SystemExit('loaded')", "p.py --port 8 --mode a", Arguments{}},
		{"unknown", options + "parser.parse_args()", "p.py --prot 8", Arguments{Refused: "unrecognized arguments: --prot 8"}},
		{"of another type", options + "parser.parse_args()", "p.py --port eight", Arguments{Refused: "argument --port: invalid int value: 'eight'"}},
		{"no choice", options + "parser.parse_args()", "p.py --mode c", Arguments{Refused: "argument --mode: invalid choice: 'c'"}},
		{"missing", options + "parser.add_argument('folder')\nparser.parse_args()", "p.py", Arguments{Refused: "the following arguments are required: folder"}},
		{"in main, guarded", options + "if __name__ == '__main__':\n    parser.parse_args()\n    raise SystemExit('loaded')", "-u -X utf8 p.py --port x", Arguments{Refused: "argument --port"}},
		{"a type that raises", options + "parser.add_argument('--table', type=lambda name: {}[name])\nparser.parse_args()", "p.py --table x", Arguments{Refused: "KeyError: 'x'"}},
		{"another way to complain", "import argparse\nclass Parser(argparse.ArgumentParser):\n    def error(self, message):\n        raise SystemExit('own: ' + message)\nParser().parse_args()", "p.py --x", Arguments{Refused: "own: unrecognized arguments: --x"}},
		{"a subcommand", options + "parser.add_subparsers().add_parser('run').add_argument('--workers', type=int)\nparser.parse_args()", "p.py run --workers two", Arguments{Refused: "argument --workers: invalid int value: 'two'"}},
		{"a parser before the parser", options + "first = argparse.ArgumentParser(add_help=False)\nfirst.add_argument('--config')\nfirst.parse_known_args()\nparser.add_argument('--config')\nparser.parse_args()", "p.py --config c --port x", Arguments{Refused: "argument --port"}},
		{"words of its own", options + "argparse.ArgumentParser().parse_args([])\nparser.parse_args()", "p.py --port x", Arguments{Refused: "argument --port"}},
		{"words that it alters", options + "import sys\nparser.parse_args([w.replace('_', '-') for w in sys.argv[1:]])\nraise SystemExit(3)", "p.py --port 8", Arguments{}},
		{"a module", options + "parser.parse_args()", "-m p --port x", Arguments{Refused: "argument --port"}},
		{"a help that fails", options + "parser.add_argument('--share', help='of 100%.')\nparser.parse_args()", "p.py", Arguments{Help: "ValueError: "}},
		{"a help that cannot be added", options + "exec(compile('raise ValueError(\\'badly formed help string\\')', argparse.__file__, 'exec'))", "p.py", Arguments{Help: "ValueError: badly formed help string"}}, // as add_argument of Python 3.14 does
		{"it goes on without", options + "try:\n    parser.parse_args()\nexcept SystemExit:\n    pass\nraise SystemExit(1)", "p.py --old x", Arguments{Alone: "exit status 1"}},
		{"no argparse", "import sys\nassert sys.argv[1:] == ['--x', '1']", "p.py --x 1", Arguments{Alone: "it ended before it had read any by argparse: at its end"}},
		{"fails before", "import p_missing\n" + options + "parser.parse_args()", "p.py --port x", Arguments{Alone: "ModuleNotFoundError: No module named 'p_missing'"}},
		{"writes before", "import os\nopen(os.path.join(os.path.dirname(__file__), 'made'), 'w')\n" + options + "parser.parse_args()", "p.py --port x", Arguments{Alone: "before it reads any it writes the file "}},
		{"starts before", "import subprocess\nsubprocess.run(['touch', 'made'])\n" + options + "parser.parse_args()", "p.py --port x", Arguments{Alone: "before it reads any it starts a program"}},
		{"loads after it read what it knows", options + "parser.parse_known_args()\nopen('made', 'w')", "p.py --more x", Arguments{Alone: "writes the file made"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := write(t, map[string]string{"p.py": test.program})
			got := started(t, folder, strings.Fields(test.argv)...).TryArguments(t.Context(), here{})
			for _, text := range [][2]string{{got.Refused, test.want.Refused}, {got.Help, test.want.Help}, {got.Alone, test.want.Alone}} {
				if text[1] == "" && text[0] != "" || !strings.Contains(text[0], text[1]) {
					t.Errorf("got %+v, want %+v", got, test.want)
				}
			}
		})
	}
}

// A program that looks for a GPU is left with those that its start had.
func TestTryArgumentsGPU(t *testing.T) {
	folder := write(t, map[string]string{"p.py": options + "import os\nparser.add_argument('--gpu', choices=os.environ['CUDA_VISIBLE_DEVICES'].split(','))\nparser.parse_args()"})
	p := started(t, folder, "p.py", "--gpu", "0")
	p.env = append(p.env, "CUDA_VISIBLE_DEVICES=0,1")
	for gpu, refused := range map[bool]bool{false: true, true: false} {
		p.GPU = gpu
		if got := p.TryArguments(t.Context(), here{}); (got.Refused != "") != refused || got.Alone != "" {
			t.Errorf("GPU %v: %+v", gpu, got)
		}
	}
}

// What ended without a word is told from what was not waited for.
func TestTryArgumentsSilent(t *testing.T) {
	p := started(t, "/submission", "p.py", "x")
	for want, ended := range map[string]error{
		"it did not read them within 20s":                         fmt.Errorf("%w: 20s", ErrLate),
		"it ended before it had read any: signal: killed":         errors.New("signal: killed"),
		"it ended before it had read any by argparse: at its end": nil,
	} {
		place := &told{ended: ended}
		if ended == nil {
			place.lines = []string{`{"what": "ended", "text": "at its end"}`}
		}
		if got := p.TryArguments(t.Context(), place); got != (Arguments{Alone: want}) {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

// A program is stopped before it alters anything.
func TestTryArgumentsStops(t *testing.T) {
	for act, want := range map[string]string{
		"os.mkdir('made')":                           "makes the folder made",
		"os.makedirs('made', exist_ok=True)":         "makes the folder made",
		"os.symlink('p.py', 'made')":                 "makes a link",
		"os.link('p.py', 'made')":                    "makes a link",
		"os.chmod('p.py', 0o600)":                    "changes a file's mode",
		"os.chown('p.py', os.getuid(), os.getgid())": "changes a file's owner",
		"os.utime('p.py')":                           "changes a file's times",
		"os.kill(os.getpid(), 0)":                    "signals a process",
		"socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))":           "sends to an address",
		"socket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('127.0.0.1', 9))": "sends to an address",
		"sqlite3.connect('made')":         "opens the database made",
		"os.makedirs('.', exist_ok=True)": "", // is there
		"sqlite3.connect(':memory:')":     "",
	} {
		t.Run(act, func(t *testing.T) {
			imports := "import os, socket\n"
			if strings.HasPrefix(act, "sqlite3") {
				imports += "try:\n    import sqlite3\nexcept ImportError:\n    raise SystemExit('no sqlite3')\n"
			}
			folder := write(t, map[string]string{"p.py": imports + act + "\n" + options + "parser.parse_args()"})
			got := started(t, folder, "p.py", "--port", "x").TryArguments(t.Context(), here{})
			if strings.Contains(got.Alone, "no sqlite3") {
				t.Skip("this Python has no sqlite3")
			}
			if want == "" && got.Refused == "" || want != "" && got != (Arguments{Alone: "before it reads any it " + want}) {
				t.Errorf("%+v, want %q", got, want)
			}
			if _, err := os.Lstat(filepath.Join(folder, "made")); err == nil {
				t.Error("it is made")
			}
		})
	}
}
