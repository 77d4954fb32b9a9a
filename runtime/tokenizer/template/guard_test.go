package template

import (
	"errors"
	"strings"
	"testing"

	"github.com/ardanlabs/jinja"
)

// Programs that do not end, or not in this machine's memory, are refused when
// they are loaded; a twin that does less is not.
func TestEndlessTemplates(t *testing.T) {
	// On a machine that is busy, or under the race detector, the limit of time
	// may come before the one that is counted.
	tooSlow := func(err error) bool { return strings.Contains(err.Error(), "the template takes too long") }
	for _, tc := range []struct{ name, source, want, twin string }{
		{"a macro that calls itself", `{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}`, "calls itself without end",
			`{% macro m(n) %}{% if n < 100 %}{{ m(n + 1) }}{% endif %}{% endmacro %}{{ m(0) }}`},
		{"macros that call each other", `{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}`, "calls itself without end",
			`{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{% endmacro %}{{ a() }}`},
		{"a macro behind a variable", `{% set ns = namespace(f=none) %}{% macro a() %}{{ ns.f() }}{% endmacro %}{% set ns.f = a %}{{ a() }}`, "calls itself without end",
			`{% set ns = namespace(f=none) %}{% macro a() %}{{ ns.f }}{% endmacro %}{{ a() }}`},
		{"loops in loops", `{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}`, "runs more than 1048576 loop passes",
			`{% for a in range(100) %}{% for b in range(100) %}{% endfor %}{% endfor %}`},
		{"a list that grows while it is read", `{% set l = [1] %}{% for a in range(1000) %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}{% endfor %}`, "runs more than 1048576 loop passes",
			`{% set l = [1] %}{% for a in range(10) %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}{% endfor %}`},
		{"a range of everything", `{{ range(10 ** 12) | length }}`, "makes a list of more than 1048576 items", `{{ range(10 ** 3) | length }}`},
		{"a range downwards", `{{ range(0, -9000000000, -1) | length }}`, "makes a list of more than 1048576 items", `{{ range(0, -9, -1) | length }}`},
		{"a string that doubles", `{% set ns = namespace(s="x") %}{% for a in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}`, "makes a string of more than 67108864 bytes",
			`{% set ns = namespace(s="x") %}{% for a in range(6) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}`},
		{"much printed", `{% set s = "x" * 1000000 %}{% for a in range(100) %}{{- s -}}{% endfor %}`, "prints more than 67108864 bytes",
			`{% set s = "x" * 1000 %}{% for a in range(100) %}{{- s -}}{% endfor %}`},
		{"a string repeated", `{{ "x" * 10000000000 }}`, "repeats a string too often", `{{ "x" * 1000 }}`},
		{"a string repeated twice", `{{ "x" * 100000 * 100000 }}`, "repeats a string too often", `{{ "1000000000 * 10" * 3 }}`},
		{"brackets", `{{ ` + strings.Repeat("(", 101) + "1" + strings.Repeat(")", 101) + ` }}`, "brackets stand more than 100 deep",
			`{{ ` + strings.Repeat("(", 99) + "1" + strings.Repeat(")", 99) + ` }}`},
		{"size", strings.Repeat("x", maxSource+1), "it has 1048577 bytes; at most 1048576 are taken", strings.Repeat("x", maxSource)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := parse(tc.source, "", nil); err == nil || !strings.Contains(err.Error(), tc.want) && !tooSlow(err) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
			}
			template, err := parse(tc.twin, "", nil)
			if err == nil {
				_, err = template.Render(user("Hi"), Options{})
			}
			if err != nil {
				t.Errorf("%s: the twin: %v", tc.name, err)
			}
		})
	}
}

// A template that runs away with some conversations only is an error of those.
func TestEndlessConversation(t *testing.T) {
	template, err := parse(`{% macro m() %}{{ m() }}{% endmacro %}{% if messages | length > 1 %}{{ m() }}{% endif %}`, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = template.Render(append(user("Hi"), user("Hi")...), Options{})
	var limit *limitError
	if !errors.As(err, &limit) || err.Error() != "render chat template: the template calls itself without end" {
		t.Errorf("got %v", err)
	}
	if _, err := template.Render(user("Hi"), Options{}); err != nil {
		t.Error(err)
	}
}

// What the guard adds to a template changes nothing that it prints.
func TestGuardPrintsNothing(t *testing.T) {
	for source, want := range map[string]string{
		"a\n{% for x in [1, 2] %}\n\n {{ x }}\n{% endfor %}\nb":                                                     "a\n\n 1\n\n 2\nb",
		"a {%- for x in [1, 2] -%} \n {{- x }} {% endfor -%} b":                                                     "a1 2 b",
		"{% set x = 1 %}\n\n{% set y = x == 1 %}\n{{ y }}":                                                          "\nTrue",
		"{% macro m(x) %}\n\n{{ x }}\n{% endmacro %}{{ m(1) }}":                                                     "\n1\n",
		"{% raw %}{{ x }}{% for %}{% endraw %}{{ }}{# {{ #}":                                                        "{{ x }}{% for %}",
		"{{ 1 if true }}{{ 'a' ~ 'b' | upper }}{{ nix }}{{-1}}":                                                     "1aB1",
		"{% for k, v in {'a': 1}.items() if v %}{{ k }}{{ v }}{% else %}none{% endfor %}{{ range(3) | join(',') }}": "a10,1,2",
	} {
		template, err := parse(source, "", nil)
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		if got, err := template.Render(user("Hi"), Options{}); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", source, got, err, want)
		}
		bare, err := jinja.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := bare.RenderValues(nil); err != nil || plain != want {
			t.Errorf("%q without the guard: got %q, %v", source, plain, err)
		}
	}
}
