package template

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	tool := []json.RawMessage{json.RawMessage(`{"type":"function"}`)}
	for _, tc := range []struct {
		name  string
		files map[string]string
		tools []json.RawMessage
		want  string
	}{
		{"config", map[string]string{"tokenizer_config.json": `{"chat_template":"config {{ eos_token }}{{ pad_token }}{{ bos_token is defined }}","eos_token":"<e>","pad_token":{"content":"<p>","lstrip":false},"bos_token":null}`}, nil, "config <e><p>False"},
		{"file before config", map[string]string{"chat_template.jinja": "file\r\n{{ eos_token }}\r\n", "tokenizer_config.json": `{"chat_template":"config","eos_token":"<e>"}`}, nil, "file\n<e>"},
		{"config before processor", map[string]string{"chat_template.json": `{"chat_template":"processor"}`, "tokenizer_config.json": `{"chat_template":"config"}`}, nil, "config"},
		{"processor", map[string]string{"chat_template.json": `{"chat_template":"processor"}`, "tokenizer_config.json": `{"chat_template":null}`}, nil, "processor"},
		{"list", map[string]string{"tokenizer_config.json": `{"chat_template":[{"name":"tool_use","template":"with tools"},{"name":"default","template":"plain"}]}`}, nil, "plain"},
		{"list, tools", map[string]string{"tokenizer_config.json": `{"chat_template":[{"name":"tool_use","template":"with tools"},{"name":"default","template":"plain"}]}`}, tool, "with tools"},
		{"list without tool_use", map[string]string{"tokenizer_config.json": `{"chat_template":[{"name":"rag","template":"rag"},{"name":"default","template":"plain"}]}`}, tool, "plain"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			template, err := Load(folderOf(t, tc.files))
			if err != nil {
				t.Fatal(err)
			}
			got, err := template.Render(user("Hi"), Options{Tools: tc.tools})
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"nothing", nil, ErrNone.Error()},
		{"null", map[string]string{"tokenizer_config.json": `{"chat_template":null}`}, ErrNone.Error()},
		{"processor without", map[string]string{"chat_template.json": `{}`}, ErrNone.Error()},
		{"config no JSON", map[string]string{"tokenizer_config.json": `{`}, "tokenizer_config.json: unexpected end of JSON input"},
		{"processor no JSON", map[string]string{"chat_template.json": `{`}, "chat_template.json: unexpected end of JSON input"},
		{"number", map[string]string{"tokenizer_config.json": `{"chat_template":7}`}, "tokenizer_config.json: chat_template: is neither a string nor a list of named templates"},
		{"no default", map[string]string{"tokenizer_config.json": `{"chat_template":[{"name":"rag","template":"x"}]}`}, `chat_template: has no template named "default"`},
		{"broken", map[string]string{"chat_template.jinja": "{% if x %}"}, "chat_template.jinja: compile chat template: "},
		{"tool_use broken", map[string]string{"tokenizer_config.json": `{"chat_template":[{"name":"tool_use","template":"{{"},{"name":"default","template":"plain"}]}`}, "tokenizer_config.json: compile chat template for tools: "},
	} {
		folder := folderOf(t, tc.files)
		_, err := Load(folder)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "load chat template of "+folder) {
			t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
		}
		if tc.want == ErrNone.Error() && !errors.Is(err, ErrNone) {
			t.Errorf("%s: does not wrap ErrNone", tc.name)
		}
	}
}

func folderOf(t *testing.T, files map[string]string) string {
	folder := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
