package template

import "encoding/json"

// Message is one turn of a conversation.
type Message struct {
	Role    string
	Content string
	Parts   []Part // instead of Content, unless nil

	// Reasoning is the thought of an assistant's turn where the client sent it
	// apart from the content; nil where it did not.
	Reasoning *string
	ToolCalls []ToolCall // of an assistant

	ToolCallID string // of a tool's reply: the call it answers
	Name       string
}

// Part is a piece of a message: text, or the place of an image or a video.
type Part struct {
	Type string // "text", "image", "video"
	Text string // of "text"
}

// ToolCall is a call that an assistant made.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // JSON, as the API carries them
}

// Options say what stands beside the messages.
type Options struct {
	AddGenerationPrompt bool              // open the assistant's turn
	EnableThinking      *bool             // nil: the template's own default
	Tools               []json.RawMessage // one JSON object each, as the client sent them
}
