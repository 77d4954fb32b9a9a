package python

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// short writes an import as the tests spell it: "? a.b: x y" for an optional one,
// "~ a" for a deferred one.
func short(i Import) string {
	text := i.Module
	if i.Names != nil {
		text += ": " + strings.Join(i.Names, " ")
	}
	switch {
	case i.Deferred:
		return "~ " + text
	case i.Optional:
		return "? " + text
	}
	return text
}

func TestImports(t *testing.T) {
	for _, test := range []struct {
		name, source string
		want         []string
	}{
		{"plain", "import a\nimport b.c as d, e\n", []string{"a", "b.c", "e"}},
		{"from", "from a.b import c as d, e\nfrom f import *\n", []string{"a.b: c e", "f: *"}},
		{"in parentheses over lines", "from a import ( # why\n  b as c,\n  d,\n)\n", []string{"a: b d"}},
		{"continued by a backslash", "from a \\\n  import b\nimport c, \\\r\n d\n", []string{"a: b", "c", "d"}},
		{"relative", "from . import a\nfrom .b import c\nfrom ... d import e\nfrom .... import f\n", []string{".: a", ".b: c", "...d: e", "....: f"}},
		{"several on a line", "import a; import b;from c import d\n", []string{"a", "b", "c: d"}},
		{"try", "try:\n  import a\nexcept ImportError:\n  import b\nimport c\n", []string{"? a", "? b", "c"}},
		{"try on a line", "try: import a\nexcept: pass\nimport b\n", []string{"? a", "b"}},
		{"function", "def f():\n  import a\n  if x:\n    import b\nclass C:\n  import c\n  async def g(self):\n    import d\n", []string{"~ a", "? b", "c", "~ d"}},
		{"condition", "if x: import a\nelse: import b\nwith y():\n  import c\nfor i in j:\n  import d\n", []string{"? a", "? b", "c", "? d"}},
		{"main", "if __name__ == '__main__':\n    import a\nif __name__ is not None:\n    import b\n", []string{"a", "? b"}},
		{"type checking", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import a\nelse:\n  import b\nif typing.TYPE_CHECKING: import c\nif TYPE_CHECKING or x:\n  import d\n",
			[]string{"typing: TYPE_CHECKING", "? b", "? d"}},
		{"by call", "a = __import__('b.c')\nimportlib.import_module(\"d\")\nimport_module('.e', p)\nimport_module(f'g{x}')\n", []string{"b.c", "d"}},
		{"in strings and comments", "'''\nimport a\n'''\n# import b\nx = \"\"\"\nimport c\"\"\"\n", nil},
		{"no statement", "x = y.import_\nraise E from e\ndef g():\n  yield from h\nfrom_ = 1\n", nil},
		{"match", "match x:\n  case 1:\n    import a\n", []string{"? a"}},
		{"byte order mark, form feed, tabs", "\ufeffimport a\n\fimport b\nif x:\n\timport c\n        import d\nimport e\n", []string{"a", "b", "? c", "? d", "e"}},
		{"old Mac lines", "import a\rif x:\r  import b\rimport c", []string{"a", "? b", "c"}},
		{"no newline at the end", "import a", []string{"a"}},
	} {
		m := Scan([]byte(test.source))
		var got []string
		for _, i := range m.Imports {
			got = append(got, short(i))
		}
		if m.Problem != "" || !slices.Equal(got, test.want) {
			t.Errorf("%s: imports %q, problem %q, want %q", test.name, got, m.Problem, test.want)
		}
	}
}

func TestStrings(t *testing.T) {
	for _, test := range []struct {
		source string
		want   []string
	}{
		{`x = 'a' "b" r'\c'`, []string{`ab\c`}},
		{`x = ('a'` + "\n" + `"b")`, []string{"ab"}},
		{`x = """a"b""c""" + '''d'e'''`, []string{`a"b""c`, "d'e"}},
		{`x = 'a\'b' "c\"d" '\\'`, []string{`a'bc"d\`}},
		{`x = r'a\'b'`, []string{`a\'b`}},
		{`x = '\x41\u0042\103\n\q\N{DASH}'`, []string{"ABC\n" + `\q\N{DASH}`}},
		{"x = 'a\\\nb'", []string{"ab"}},
		{`x = b'a' + Rb'\b' + u'c'`, []string{"a", `\b`, "c"}},
		{`x = f'{a["b"]}' + f"{a!r:>{w}}{{}}"`, []string{`{a["b"]}`, `{a!r:>{w}}{{}}`}},
		{`x = f"{a["b"]}" + f'{x:%H:%M}{'c' + f'{'d'}'}'`, []string{`{a["b"]}`, `{x:%H:%M}{'c' + f'{'d'}'}`}},
		{"x = f'''{\n a # '''\n}'''", []string{"{\n a # '''\n}"}},
		{`x = f"{ {'a': 1}['a'] }\N{DASH}" + rf'\{a}' + f'\{b}'`, []string{`{ {'a': 1}['a'] }\N{DASH}`, `\{a}`, `\{b}`}},
		{`x = ''+""+''''''`, []string{"", "", ""}},
		{`'''doc'''`, nil},
		{"def f():\n  'doc'\n  return 'a'", []string{"a"}},
		{`# 'a'`, nil},
	} {
		m := Scan([]byte(test.source))
		var got []string
		for _, s := range m.Strings {
			got = append(got, s.Text)
		}
		if m.Problem != "" || !slices.Equal(got, test.want) {
			t.Errorf("%s: strings %q, problem %q, want %q", test.source, got, m.Problem, test.want)
		}
	}
}

func TestCalls(t *testing.T) {
	source := `@app.post("/v1", tags=[a, b])
@torch.compile
def serve(x: int = f(1)):
    with torch.device("cuda"), open(
        path
    ) as g:
        model = AutoModel.from_pretrained(  # here
            name, "a" 'b', device_map="auto", *rest, **more
        ).to(("cuda"))
    return (yield) if (x) else not (y), lambda: z(), f"{unseen()}", t[0](1)
class C(Base): pass
`
	m := Scan([]byte(source))
	if m.Problem != "" {
		t.Fatal(m.Problem)
	}
	var got []string
	for _, c := range m.Calls {
		text := c.Name + "("
		for i, a := range c.Arguments {
			if i > 0 {
				text += ", "
			}
			if a.Keyword != "" {
				text += a.Keyword + "="
			}
			if a.Literal != nil {
				text += "<" + *a.Literal + ">"
			} else {
				text += a.Text
			}
		}
		text += ")"
		if c.Within != nil {
			text += " in " + strings.Join(c.Within, ",")
		}
		got = append(got, text)
	}
	want := []string{
		`app.post(</v1>, tags=[a, b])`,
		`torch.compile()`,
		`f(1)`,
		`torch.device(<cuda>)`,
		`open(path)`,
		`AutoModel.from_pretrained(name, <ab>, device_map=<auto>, *=rest, **=more) in torch.device,open`,
		`.to(<cuda>) in torch.device,open`,
		`z()`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("calls\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if m.Calls[5].Line != 7 {
		t.Errorf("from_pretrained is on line %d", m.Calls[5].Line)
	}
}

func TestTables(t *testing.T) {
	pairs := "a = {" + strings.Repeat(`"q": "a", `, 100) + "}\n"
	lists := "b = {" + strings.Repeat("'q': [1, 2],\n", 150) + "}\n"
	numbers := "\nc = [" + strings.Repeat("1, ", 1000) + "]\n"
	few := "d = {'a': 'b', 'c': 1}\ne = [1, 2, 3]\n"
	got := Scan([]byte(pairs + lists + few + numbers)).Tables
	want := []Table{{Pairs: 100, Line: 1}, {Pairs: 150, Numbers: 300, Line: 2}, {Numbers: 1000, Line: 156}}
	if !slices.Equal(got, want) {
		t.Errorf("tables %+v, want %+v", got, want)
	}
}

func TestProblems(t *testing.T) {
	for source, want := range map[string]string{
		"x = 'a\ny = 1\n":             "line 1: a string does not end on its line",
		"\nx = '''a\n":                "line 2: a string does not end",
		"x = (1,\n[2)\n":              "line 2: ')' closes nothing that is open",
		"x = 1)\n":                    "line 1: ')' closes nothing that is open",
		"\nf(1,\n  2\n":               "line 2: '(' is never closed",
		"x = a ? b\n":                 "line 1: '?' does not belong there",
		"x = 1 \\ y\n":                "line 1: a backslash is followed by more than the end of the line",
		"x = f'{a'\n":                 "line 1: a string does not end on its line",
		"x = f'{a:'\n":                "line 1: a replacement field of a string does not end",
		"x = " + deep(400) + "\n":     "line 1: strings are nested too deeply",
		"\x00":                        `line 1: '\x00' does not belong there`,
		"import a\n<<<<<<< HEAD\n$\n": "line 3: '$' does not belong there",
	} {
		m := Scan([]byte(source))
		if m.Problem != want {
			t.Errorf("%.40q: problem %q, want %q", source, m.Problem, want)
		}
		if m.OpenEnded == "" {
			t.Errorf("%.40q: its options are taken for known", source)
		}
	}
	if m := Scan(bytes.Repeat([]byte("#"), maxSourceBytes+1)); m.Problem == "" {
		t.Error("an overlong source has no problem")
	}
}

// deep nests f-strings.
func deep(n int) string { return strings.Repeat("f'{", n) + "1" + strings.Repeat("}'", n) }

// What comes before a problem was read.
func TestPartOfBrokenSource(t *testing.T) {
	m := Scan([]byte("import a\nf(x='y')\nz = 'open\nimport b\n"))
	if m.Problem == "" || len(m.Imports) != 1 || len(m.Calls) != 1 {
		t.Errorf("problem %q, imports %v, calls %v", m.Problem, m.Imports, m.Calls)
	}
}

// Real Python: every file of an installed standard library reads as such.
func TestStandardLibrary(t *testing.T) {
	const root = "/usr/lib/python3.11"
	if _, err := os.Stat(root); err != nil {
		t.Skip("no ", root, " here")
	}
	files := 0
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(p) != ".py" || strings.Contains(p, "/bad") {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		files++
		if m := Scan(data); m.Problem != "" {
			t.Errorf("%s: %s", p, m.Problem)
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("read %d files, %v", files, err)
	}
}
