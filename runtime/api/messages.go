package api

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Chat is what a chat template is given.
type Chat struct {
	Messages []Message
	Tools    []json.RawMessage // one JSON object each, as the client sent them
	Thinking bool
}

// Message is one turn. Content is plain text: lists of text parts are joined.
type Message struct {
	Role       string // system, user, assistant or tool
	Content    string
	Reasoning  *string    // of an assistant's turn, where the client sent it back
	ToolCalls  []ToolCall // of an assistant's turn
	ToolCallID string     // of a tool's turn
	Name       string
}

// ToolCall is a call that an earlier answer asked for.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // JSON
}

// readChat reads what decides the prompt.
func readChat(f *fields, think bool) Chat {
	chat := Chat{Thinking: think}
	if !f.has("messages") {
		f.fail("messages", "is missing")
	}
	list := f.list("messages")
	if len(list) == 0 {
		f.fail("messages", "has to have at least one message")
	}
	for i, raw := range list {
		nested := parseFields(fmt.Sprintf("messages[%d].", i), raw)
		chat.Messages = append(chat.Messages, readMessage(nested))
		f.adopt(nested)
	}
	for i, raw := range f.list("tools") {
		nested := parseFields(fmt.Sprintf("tools[%d].", i), raw)
		chat.Tools = append(chat.Tools, raw)
		f.adopt(nested)
	}
	options := f.object("chat_template_kwargs")
	if options.has("enable_thinking") {
		chat.Thinking = options.boolean("enable_thinking")
	}
	f.adopt(options)
	return chat
}

func readMessage(f *fields) Message {
	m := Message{
		Role: f.text("role"), Name: f.text("name"), ToolCallID: f.text("tool_call_id"),
	}
	switch m.Role {
	case "developer":
		m.Role = "system" // its newer name
	case "system", "user", "assistant", "tool":
	case "":
		f.fail("role", "is missing")
	default:
		f.fail("role", "has to be system, developer, user, assistant or tool, not %q", m.Role)
	}
	if m.Role == "assistant" {
		f.read("reasoning_content", "a string", &m.Reasoning)
		m.ToolCalls = readToolCalls(f)
	}
	if f.has("content") || m.Role != "assistant" {
		m.Content = readContent(f)
	}
	return m
}

func readToolCalls(f *fields) (calls []ToolCall) {
	for i, raw := range f.list("tool_calls") {
		nested := parseFields(fmt.Sprintf("%stool_calls[%d].", f.path, i), raw)
		function := nested.object("function")
		call := ToolCall{ID: nested.text("id"), Name: function.text("name"), Arguments: "{}"}
		if call.Name == "" {
			function.fail("name", "is missing")
		}
		// A string that holds JSON; there are clients that send the object itself.
		if arguments := function.raw("arguments"); arguments != nil && json.Unmarshal(arguments, &call.Arguments) != nil {
			call.Arguments = string(arguments)
		}
		nested.adopt(function)
		f.adopt(nested)
		calls = append(calls, call)
	}
	return calls
}

func readContent(f *fields) string {
	raw := f.raw("content")
	if raw == nil {
		f.fail("content", "is missing")
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		f.fail("content", "has to be a string or a list of parts")
		return ""
	}
	var joined strings.Builder
	for i, part := range parts {
		nested := parseFields(fmt.Sprintf("%scontent[%d].", f.path, i), part)
		joined.WriteString(readPart(nested))
		f.adopt(nested)
	}
	return joined.String()
}

func readPart(f *fields) string {
	switch kind := f.text("type"); kind {
	case "text":
		if !f.has("text") {
			f.fail("text", "is missing")
		}
		return f.text("text")
	case "image_url", "image", "input_image":
		f.fail("type", "is an image: this model reads text only")
	case "":
		f.fail("type", "is missing")
	default:
		f.fail("type", "has to be text, not %q", kind)
	}
	return ""
}
