package template

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func user(content string) []Message { return []Message{{Role: "user", Content: content}} }

func TestRefusals(t *testing.T) {
	qwen3, qwen35 := parsed(t, "qwen3"), parsed(t, "qwen3_5")
	image := []Message{{Role: "user", Parts: []Part{{Type: "text", Text: "See:"}, {Type: "image"}}}}
	for _, tc := range []struct {
		name     string
		template *Template
		messages []Message
		options  Options
		want     string // "" for a prompt
	}{
		{"no messages", qwen3, nil, Options{}, "it has no messages"},
		{"image", qwen3, image, Options{}, `message 0: content has a part of type "image", and the template takes text only`},
		{"image taken", qwen35, image, Options{}, ""},
		{"tool no object", qwen3, user("Hi"), Options{Tools: []json.RawMessage{json.RawMessage(`[]`)}}, "tool 0 is no JSON object"},
		{"tool no JSON", qwen3, user("Hi"), Options{Tools: []json.RawMessage{json.RawMessage(`{}`), json.RawMessage(`{`)}}, "tool 1 is no JSON object"},
		{"raised", qwen35, []Message{{Role: "assistant", Content: "Hi"}}, Options{}, "No user query found in messages."},
	} {
		_, err := tc.template.Render(tc.messages, tc.options)
		var refusal *RefusalError
		switch {
		case tc.want == "":
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
		case !errors.As(err, &refusal) || refusal.Reason != tc.want:
			t.Errorf("%s: got %v, want a refusal: %s", tc.name, err, tc.want)
		}
	}
}

func TestImagePlace(t *testing.T) {
	prompt, err := parsed(t, "qwen3_5").Render([]Message{{Role: "user", Parts: []Part{{Type: "image"}, {Type: "text", Text: "What is it?"}}}}, Options{})
	if want := "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>What is it?<|im_end|>\n"; err != nil || prompt != want {
		t.Errorf("got %q, %v; want %q", prompt, err, want)
	}
}

// The clock must not reach a prompt: a template that asks whether there is one
// is told no, one that does not ask fails.
func TestNoClock(t *testing.T) {
	guarded, err := parse(`{% if strftime_now is defined %}{{ strftime_now("%Y") }}{% else %}26 Jul 2024{% endif %}`, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if prompt, err := guarded.Render(user("Hi"), Options{}); prompt != "26 Jul 2024" || err != nil {
		t.Errorf("guarded: %q, %v", prompt, err)
	}
	bare, err := parse(`{{ strftime_now("%Y") }}`, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if prompt, err := bare.Render(user("Hi"), Options{}); err == nil || !strings.Contains(err.Error(), "render chat template: strftime_now is not callable") {
		t.Errorf("bare: %q, %v", prompt, err)
	}
}

func TestParseErrors(t *testing.T) {
	for source, want := range map[string]string{
		"{% if x %}":           "compile chat template: ",
		"{{ x ":                "compile chat template: jinja scan: unclosed expression tag at line 1, col 1",
		"{% for in %}":         "compile chat template: ",
		"{{ messages | nix }}": "", // the engine finds an unknown filter when it runs
	} {
		template, err := parse(source, "", nil)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v, want %s", source, err, want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", source, err)
		}
		if _, err := template.Render(user("Hi"), Options{}); err == nil || !strings.Contains(err.Error(), `unknown filter "nix"`) {
			t.Errorf("%q: %v", source, err)
		}
	}
}

// The engine panics on some programs; that must stay an error.
func TestEnginePanics(t *testing.T) {
	template, err := parse(`{{ "ab" * -1 }}`, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := template.Render(user("Hi"), Options{}); err == nil || !strings.Contains(err.Error(), "the template engine broke off") {
		t.Errorf("got %v", err)
	}
}
