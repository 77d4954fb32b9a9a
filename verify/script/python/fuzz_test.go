package python

import (
	"strings"
	"testing"
)

func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		"", "import a\nfrom . import (b,\nc)\n", "x = f'{a[\"b\"]:>{w}}' rb'''c'''\n", "try: import a\nexcept: pass\n",
		"p = argparse.ArgumentParser()\np.add_argument('--x', '-x', action=argparse.BooleanOptionalAction, choices=['a'])\np.parse_args(sys.argv[1:])\n",
		"with torch.device('cuda'):\n\tAutoModel.from_pretrained(x, device_map='auto').to(y)\n", "@a.b\ndef f(): yield\n", "(((", "'\\", "f'{f\"{", "0x1e+1j\\\r\n",
		"f'''{\n#'''\n", "x[", "@", "=", "async", "def", "from", "if", "a=", ",", ":",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		m := Scan(source)
		lines := strings.Count(string(source), "\n") + strings.Count(string(source), "\r") + 1
		for _, c := range m.Calls {
			if c.Line < 1 || c.Line > lines {
				t.Errorf("call %q is on line %d of %d", c.Name, c.Line, lines)
			}
			for _, a := range c.Arguments {
				if !strings.Contains(string(source), a.Text) {
					t.Errorf("argument %q is not in the source", a.Text)
				}
			}
		}
		for _, i := range m.Imports {
			if i.Module == "" || i.Line < 1 || i.Line > lines {
				t.Errorf("import %+v of %d lines", i, lines)
			}
		}
		Requirements("x.py", m)
		Programs("x.py", m)
		LocalProblems(map[string]Module{"a/x.py": m, "a/json.py": m})
		RequirementsOfConfig("config.json", source)
	})
}

// Time and memory grow with the source alone.
func TestScanIsLinear(t *testing.T) {
	for name, part := range map[string]string{
		"brackets": "f(", "nested arguments": "f('a' 'b',", "chain": "a.", "f-strings": "f'{a}' ", "choices": "p.add_argument('x',choices=[",
		"statements": "import a;", "decorators": "@a.b\n", "with": "with f():\n", "concatenated": "'a' ",
	} {
		source := []byte(strings.Repeat(part, 200_000/len(part)))
		allocated := testing.AllocsPerRun(1, func() { Scan(source) })
		if allocated > 20*float64(len(source)) {
			t.Errorf("%s: %.0f allocations for %d bytes", name, allocated, len(source))
		}
	}
}
