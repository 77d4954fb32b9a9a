package template

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// conversation is a case of testdata/cases.json, in the form of the API.
type conversation struct {
	Name     string            `json:"name"`
	Messages []wireMessage     `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
	Thinking *bool             `json:"enable_thinking"`
	Prompt   *bool             `json:"add_generation_prompt"`
}

type wireMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Reasoning *string         `json:"reasoning_content"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

func (w wireMessage) message(t *testing.T) Message {
	m := Message{Role: w.Role, Reasoning: w.Reasoning, ToolCallID: w.ToolCallID}
	target := any(&m.Content)
	if w.Content[0] == '[' {
		target = &m.Parts
	}
	if err := json.Unmarshal(w.Content, target); err != nil {
		t.Fatal(err)
	}
	for _, call := range w.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, ToolCall{call.ID, call.Function.Name, call.Function.Arguments})
	}
	return m
}

func (c conversation) render(t *testing.T, template *Template) (string, error) {
	var messages []Message
	for _, message := range c.Messages {
		messages = append(messages, message.message(t))
	}
	options := Options{AddGenerationPrompt: c.Prompt == nil || *c.Prompt, EnableThinking: c.Thinking, Tools: c.Tools}
	return template.Render(messages, options)
}

func decodeFile(t *testing.T, name string, target any) {
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, target); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func parsed(t testing.TB, name string) *Template {
	source, err := os.ReadFile(filepath.Join("testdata", name+".jinja"))
	if err != nil {
		t.Fatal(err)
	}
	template, err := parse(string(source), "", map[string]string{"eos_token": "<|im_end|>"})
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// testdata/render.py says what rendered the prompts.
func TestRendered(t *testing.T) {
	var cases []conversation
	decodeFile(t, "testdata/cases.json", &cases)
	var rendered map[string]map[string]struct {
		Prompt, Refused string
		Fails           bool
	}
	decodeFile(t, "testdata/rendered.json", &rendered)
	if len(rendered) != 4 || len(cases) < 20 {
		t.Fatalf("%d templates, %d cases", len(rendered), len(cases))
	}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		template := parsed(t, name)
		for _, c := range cases {
			want, ok := rendered[name][c.Name]
			if !ok {
				t.Fatalf("%s has no %q", name, c.Name)
			}
			got, err := c.render(t, template)
			var refusal *RefusalError
			switch {
			case want.Refused != "":
				if !errors.As(err, &refusal) || refusal.Reason != want.Refused {
					t.Errorf("%s, %s: error %v, want a refusal: %s", name, c.Name, err, want.Refused)
				}
			case want.Fails:
				if err == nil {
					t.Errorf("%s, %s: no error", name, c.Name)
				}
			case err != nil:
				t.Errorf("%s, %s: %v", name, c.Name, err)
			default:
				if diff := cmp.Diff(want.Prompt, got); diff != "" {
					t.Errorf("%s, %s (-want +got):\n%s", name, c.Name, diff)
				}
			}
		}
	}
}
