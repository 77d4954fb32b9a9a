package python

import (
	"slices"
	"strings"
	"testing"
)

// spelled writes an option as the tests spell it: "--x -x !" for a required one,
// "=" for one with a value, its nargs behind that, its choices in brackets.
func spelled(o Option) string {
	text := strings.Join(o.Names, " ")
	if o.Positional {
		text = "<" + text + ">"
	}
	if o.TakesValue {
		text += "=" + o.NArgs
	}
	if o.Required {
		text += "!"
	}
	if o.Choices != nil {
		text += "[" + strings.Join(o.Choices, " ") + "]"
	}
	return text
}

const parser = "import argparse\np = argparse.ArgumentParser(description='(a')\n"

func TestOptions(t *testing.T) {
	for _, test := range []struct{ name, source, want string }{
		{"usual", parser + `
p.add_argument("--submission", required=True, type=Path)
p.add_argument(
    "--out", "-o",   # where to
    default="x",
)
p.add_argument('--workers', type=int, default=os.cpu_count())
args = p.parse_args()
`, "--submission=! --out -o= --workers="},
		{"flags", parser + "p.add_argument('--a', action='store_true')\np.add_argument('-v', action='count')\np.add_argument('--b', action=argparse.BooleanOptionalAction)\np.add_argument('--c', action='append')\np.add_argument('--d', action=Own)\np.parse_args()",
			"--a -v --b --no-b --c= --d=?"},
		{"positional", parser + "p.add_argument('model')\np.add_argument('rest', nargs='*')\np.add_argument('one', nargs='?')\np.add_argument('tail', nargs=argparse.REMAINDER)\np.add_argument('two', nargs=2)\np.parse_args(sys.argv[1:])",
			"<model>=! <rest>=* <one>=? <tail>=... <two>=2!"},
		{"choices", parser + "p.add_argument('--dtype', choices=['bf16', \"fp8\",])\np.add_argument('--e', choices=NAMES)\np.parse_args()", "--dtype=[bf16 fp8] --e="},
		{"groups", parser + "g = p.add_mutually_exclusive_group(required=True)\ng.add_argument('--a')\np.add_argument_group('x').add_argument('--b')\np.parse_args()", "--a= --b="},
		{"in functions", "import argparse\ndef add(parser):\n  parser.add_argument('--a')\ndef main(argv=None):\n  parser = argparse.ArgumentParser()\n  add(parser)\n  args = parser.parse_args(argv)\n", "--a="},
		{"made by a function of its own", "import argparse\ndef make():\n  p = argparse.ArgumentParser()\n  p.add_argument('--a')\n  return p\nparser = make()\nargs = parser.parse_args()\nmake().parse_args()\n", "--a="},
		{"own parse_args", "from argparse import ArgumentParser\ndef parse_args():\n  p = ArgumentParser()\n  p.add_argument('--a')\n  return p.parse_args()\nargs = parse_args()\n", "--a="},
		{"in a class", "import argparse\nclass A:\n  def __init__(self):\n    self.p = argparse.ArgumentParser()\n    self.p.add_argument('--a')\n    self.args = self.p.parse_args()\n", "--a="},
		{"chained", "import argparse\nargs = argparse.ArgumentParser().parse_args()\n", ""},
		{"subcommands", parser + "s = p.add_subparsers(dest='command')\nr = s.add_parser('run')\nr.add_argument('--a', required=True)\np.parse_args()", "--a= <command>=..."},
		{"sys.argv is printed", parser + "p.add_argument('--a')\nprint(sys.argv, sys.argv[0], ' '.join(sys.argv[1:]))\nif len(sys.argv) == 1: p.print_help()\np.parse_args()", "--a="},
		{"other add_argument", parser + "p.add_argument('--a')\np.parse_args()\nlog(p)\n", "OPEN line 5: log(p) may add options"},
		{"parse_known_args", parser + "p.add_argument('--a')\na, _ = p.parse_known_args()", "OPEN line 4: p.parse_known_args takes other options too"},
		{"computed names", parser + "for n in names:\n  p.add_argument('--' + n)\np.parse_args()", "OPEN line 4: names of options are computed"},
		{"computed by f-string", parser + "p.add_argument(f'--{n}')\np.parse_args()", "OPEN line 3: names of options are computed"},
		{"unpacked names", parser + "p.add_argument(*names, type=int)\np.parse_args()", "OPEN line 3: names of options are computed"},
		{"unpacked settings", parser + "p.add_argument('--a', **settings)\np.parse_args()", "OPEN line 3: settings of options are computed"},
		{"from files", "import argparse\np = argparse.ArgumentParser(fromfile_prefix_chars='@')\np.add_argument('--a')\np.parse_args()", "OPEN line 2: options may come from files (fromfile_prefix_chars)"},
		{"other prefixes", "import argparse\np = argparse.ArgumentParser(prefix_chars='-+')\np.add_argument('+a')\np.parse_args()", "OPEN line 2: options may begin with other characters than - (prefix_chars)"},
		{"another module's options", "import argparse\nfrom vllm import EngineArgs\np = argparse.ArgumentParser()\np = EngineArgs.add_cli_args(p)\np.add_argument('--a')\nargs = p.parse_args()", "OPEN line 6: p comes from elsewhere and may have other options"},
		{"another module's parser", "import argparse\nfrom own import parser\nparser.add_argument('--a')\nparser.parse_args()", "OPEN line 4: parser is another module's parser"},
		{"made by another module", "import argparse\nimport own\np = own.make()\np.add_argument('--a')\np.parse_args()", "OPEN line 5: p comes from elsewhere and may have other options"},
		{"its own list", parser + "p.add_argument('--a')\np.parse_args(['--a', '1'])", "OPEN line 4: what it parses is not the command line as it is"},
		{"sys.argv is changed", parser + "p.add_argument('--a')\nif '--b' in sys.argv: sys.argv.remove('--b')\np.parse_args()", "OPEN line 4: it reads or changes sys.argv itself"},
		{"parser class of its own", "import argparse\nclass P(argparse.ArgumentParser): pass\np = P()\np.add_argument('--a')\np.parse_args()", "OPEN line 2: it has a parser class of its own"},
		{"sys.argv", "import sys\nx = sys.argv[1]\n", "OPEN it reads sys.argv itself"},
		{"from sys import argv", "from sys import argv\nx = argv[1]\n", "OPEN line 1: it reads sys.argv itself"},
		{"click", "import click\n@click.command()\n@click.option('--a')\ndef f(a): pass\n", "OPEN line 1: its options are those of click"},
		{"absl", "from absl import app, flags\n", "OPEN line 1: its options are those of absl.flags"},
		{"absl's log is no option", parser + "from absl import logging\np.add_argument('--a')\np.parse_args()", "--a="},
		{"transformers", "from transformers import HfArgumentParser\np = HfArgumentParser(A)\n", "OPEN line 2: its options are those of HfArgumentParser"},
		{"pydantic", "from pydantic_settings import CliApp\nCliApp.run(A)\n", "OPEN line 1: its options are those of pydantic_settings"},
		{"vllm", "from vllm.utils import FlexibleArgumentParser\np = FlexibleArgumentParser()\np.add_argument('--a')\np.parse_args()", "OPEN line 2: FlexibleArgumentParser takes other options too"},
		{"another module reads it", "from own import parse_args\nargs = parse_args()\n", "OPEN line 2: its options are those of parse_args"},
		{"none", "import os\nport = os.environ['PORT']\nprint(__file__)\n", "OPEN " + ReadsNone},
		{"selenium", "from selenium import webdriver\no = webdriver.ChromeOptions()\no.add_argument('--headless')\n", "OPEN " + ReadsNone},
	} {
		m := Scan([]byte(test.source))
		var got []string
		for _, o := range m.Options {
			if !slices.Contains(o.Names, "--help") {
				got = append(got, spelled(o))
			}
		}
		text := strings.Join(got, " ")
		if m.OpenEnded != "" {
			text = "OPEN " + m.OpenEnded
		}
		if m.Problem != "" || text != test.want {
			t.Errorf("%s:\n got %s\nwant %s (problem %q)", test.name, text, test.want, m.Problem)
		}
	}
}

func TestHelpAndAbbreviations(t *testing.T) {
	usual := Scan([]byte(parser + "p.add_argument('--a')\np.parse_args()"))
	if n := len(usual.Options); n != 2 || !slices.Equal(usual.Options[1].Names, []string{"-h", "--help"}) || !usual.Abbreviates {
		t.Errorf("%+v", usual)
	}
	strict := Scan([]byte("import argparse\np = argparse.ArgumentParser(add_help=False, allow_abbrev=False)\np.add_argument('--a')\np.parse_args()"))
	if len(strict.Options) != 1 || strict.Abbreviates {
		t.Errorf("%+v", strict)
	}
}
