package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"slipway/runtime/plainfile"
)

// ErrNone is returned, wrapped, for a checkpoint without a chat template.
var ErrNone = errors.New("no chat template in chat_template.jinja, tokenizer_config.json or chat_template.json")

// Load finds the chat template of a checkpoint's folder: chat_template.jinja,
// else chat_template in tokenizer_config.json, else in chat_template.json. Of
// several named templates "default" is taken, and "tool_use" where there are
// tools.
func Load(folder string) (*Template, error) {
	t, err := load(folder)
	if err != nil {
		return nil, fmt.Errorf("load chat template of %s: %w", folder, err)
	}
	return t, nil
}

func load(folder string) (*Template, error) {
	config, err := readOptional(folder, "tokenizer_config.json")
	if err != nil {
		return nil, err
	}
	keys, tokens := map[string]json.RawMessage{}, map[string]string{}
	if config != nil {
		if err := json.Unmarshal(config, &keys); err != nil {
			return nil, fmt.Errorf("tokenizer_config.json: %w", err)
		}
		tokens = namedTokens(keys)
	}
	source, err := readOptional(folder, "chat_template.jinja")
	if err != nil {
		return nil, err
	}
	if source != nil {
		return named("chat_template.jinja", templates{plain: string(source)}, tokens)
	}
	found, err := templatesOf(keys["chat_template"])
	if err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: chat_template: %w", err)
	}
	if found.plain != "" {
		return named("tokenizer_config.json", found, tokens)
	}
	return loadProcessor(folder, tokens)
}

// loadProcessor reads chat_template.json, which older image models have.
func loadProcessor(folder string, tokens map[string]string) (*Template, error) {
	data, err := readOptional(folder, "chat_template.json")
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, ErrNone
	}
	keys := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, fmt.Errorf("chat_template.json: %w", err)
	}
	found, err := templatesOf(keys["chat_template"])
	if err == nil && found.plain == "" {
		err = ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("chat_template.json: chat_template: %w", err)
	}
	return named("chat_template.json", found, tokens)
}

func named(file string, found templates, tokens map[string]string) (*Template, error) {
	t, err := parse(found.plain, found.withTools, tokens)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// readOptional returns nil for a file that is not there.
func readOptional(folder, name string) ([]byte, error) {
	data, err := plainfile.Read(filepath.Join(folder, name), plainfile.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

type templates struct{ plain, withTools string }

// templatesOf reads a template that is written as a string, as a list of
// {name, template}, or as null.
func templatesOf(value json.RawMessage) (templates, error) {
	var found templates
	if len(value) == 0 || string(value) == "null" {
		return found, nil
	}
	if value[0] == '"' {
		err := json.Unmarshal(value, &found.plain)
		return found, err
	}
	var list []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if err := json.Unmarshal(value, &list); err != nil {
		return found, errors.New("is neither a string nor a list of named templates")
	}
	for _, entry := range list {
		switch entry.Name {
		case "default":
			found.plain = entry.Template
		case "tool_use":
			found.withTools = entry.Template
		}
	}
	if found.plain == "" {
		return found, errors.New(`has no template named "default"`)
	}
	return found, nil
}

// namedTokens returns bos_token, eos_token and their like, which are written as
// a string, as an object with content, or as null.
func namedTokens(keys map[string]json.RawMessage) map[string]string {
	tokens := map[string]string{}
	for key, value := range keys {
		if !strings.HasSuffix(key, "_token") {
			continue
		}
		var text string
		var added struct {
			Content string `json:"content"`
		}
		switch {
		case value[0] == '"' && json.Unmarshal(value, &text) == nil:
			tokens[key] = text
		case value[0] == '{' && json.Unmarshal(value, &added) == nil:
			tokens[key] = added.Content
		}
	}
	return tokens
}
