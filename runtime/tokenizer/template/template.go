// Package template renders conversations into prompts with the chat template
// of a checkpoint, a Jinja program.
//
// It promises the text that Hugging Face's transformers renders from the same
// template with Python's jinja2, and the same text for the same conversation on
// any day: strftime_now, which templates may use if it is defined, is not.
//
// Numbers and objects are written as Python writes them, because tool schemas
// and arguments go into the prompt as JSON: 1.0 stays 1.0, keys keep their
// order, separators are ", " and ": ".
//
// A template that does not end is an error, at the start if a plain question
// shows it: a rendering may print 64 MiB, run a million passes of loops, call
// itself about a thousand deep and take ten seconds.
package template

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"
)

// Template is the chat template of a checkpoint. It may be used by many
// goroutines at once.
type Template struct {
	plain      *jinja.Template
	withTools  *jinja.Template // for conversations with tools; nil: plain
	tokens     map[string]string
	takesParts bool
}

// RefusalError says that a conversation is not one the template can render: the
// request is at fault, not the checkpoint.
type RefusalError struct{ Reason string }

func (e *RefusalError) Error() string {
	return "the chat template refuses the conversation: " + e.Reason
}

// parse compiles a template, and one for conversations with tools, "" for none.
// Tokens are the checkpoint's special tokens by the names that templates know them
// under, such as eos_token; nil for none.
func parse(source, withTools string, tokens map[string]string) (*Template, error) {
	t := &Template{tokens: tokens}
	var err error
	if t.plain, err = compile(source); err != nil {
		return nil, fmt.Errorf("compile chat template: %w", err)
	}
	if withTools != "" {
		if t.withTools, err = compile(withTools); err != nil {
			return nil, fmt.Errorf("compile chat template for tools: %w", err)
		}
	}
	if t.takesParts, err = t.probeParts(); err != nil {
		return nil, err
	}
	return t, nil
}

// lineFeeds writes line ends as Jinja reads them. It also drops the last one,
// which the engine leaves.
var lineFeeds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func compile(source string) (compiled *jinja.Template, err error) {
	defer recovered(&err)
	source = strings.TrimSuffix(lineFeeds.Replace(source), "\n")
	if err := checkSource(source); err != nil {
		return nil, err
	}
	source = withPythonFilters(source)
	if _, err := jinja.Compile(source); err != nil { // with the positions that its author knows
		return nil, err
	}
	return jinja.Compile(guarded(source))
}

// recovered turns a panic of the engine into an error: a checkpoint's template
// must not end the process.
func recovered(err *error) {
	if problem := recover(); problem != nil {
		*err = fmt.Errorf("the template engine broke off: %v", problem)
	}
}

// probeParts reports whether the template takes content as a list of parts, by
// what it makes of one: templates that do not print the list or fail. An error
// says that the template does not end, with parts or with text.
func (t *Template) probeParts() (bool, error) {
	const text = "a part of text"
	t.takesParts = true
	for _, probe := range []Message{{Role: "user", Content: text}, {Role: "user", Parts: []Part{{Type: "text", Text: text}}}} {
		prompt, err := t.Render([]Message{probe}, Options{})
		var limit *limitError
		switch {
		case errors.As(err, &limit):
			return false, err
		case probe.Parts != nil:
			return err == nil && strings.Contains(prompt, text) && !strings.Contains(prompt, "'"+text+"'"), nil
		}
	}
	return false, nil
}

// Render returns the prompt of a conversation. An error that wraps RefusalError
// is the conversation's fault: the template raised it, or a message has what
// the template cannot take. Other errors are those of running the template on
// it, which a conversation of another shape may avoid.
func (t *Template) Render(messages []Message, options Options) (prompt string, err error) {
	if len(messages) == 0 {
		return "", &RefusalError{"it has no messages"}
	}
	data, err := t.data(messages, options)
	if err != nil {
		return "", err
	}
	program := t.plain
	if len(options.Tools) > 0 && t.withTools != nil {
		program = t.withTools
	}
	prompt, err = run(program, data)
	var refusal *RefusalError
	if err != nil && !errors.As(err, &refusal) {
		return "", fmt.Errorf("render chat template: %w", err)
	}
	return prompt, err
}

// run renders under the guard's limits. A rendering that the guard cannot stop in
// time is left behind.
func run(program *jinja.Template, data map[string]jinja.Value) (string, error) {
	maps.Copy(data, (&guard{ends: time.Now().Add(maxTime)}).names())
	type result struct {
		prompt string
		err    error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() { done <- r }()
		defer recovered(&r.err)
		r.prompt, r.err = program.RenderValues(data)
	}()
	late := time.NewTimer(maxTime + maxTime/4)
	defer late.Stop()
	select {
	case r := <-done:
		return r.prompt, r.err
	case <-late.C:
		return "", &limitError{"takes too long"}
	}
}

// data returns the variables that transformers gives a template.
func (t *Template) data(messages []Message, options Options) (map[string]jinja.Value, error) {
	data := map[string]jinja.Value{
		"add_generation_prompt": jinja.NewBool(options.AddGenerationPrompt),
		"documents":             jinja.None(),
		"tools":                 jinja.None(),
		"raise_exception":       jinja.NewCallable("raise_exception", refuse),
		"strftime_now":          jinja.Undefined(), // hides the engine's own, which reads the clock
		tojsonFilter:            jinja.NewCallable("tojson", tojson),
		stringFilter:            jinja.NewCallable("string", toString),
	}
	for name, text := range t.tokens {
		data[name] = jinja.NewString(text)
	}
	if options.EnableThinking != nil {
		data["enable_thinking"] = jinja.NewBool(*options.EnableThinking)
	}
	turns := make([]jinja.Value, len(messages))
	for i, message := range messages {
		turn, err := t.turn(message)
		if err != nil {
			return nil, &RefusalError{fmt.Sprintf("message %d: %v", i, err)}
		}
		turns[i] = turn
	}
	data["messages"] = jinja.NewList(turns)
	if len(options.Tools) > 0 {
		tools := make([]jinja.Value, len(options.Tools))
		for i, tool := range options.Tools {
			value, err := parseJSON(tool)
			if err != nil || !value.IsDict() {
				return nil, &RefusalError{fmt.Sprintf("tool %d is no JSON object", i)}
			}
			tools[i] = value
		}
		data["tools"] = jinja.NewList(tools)
	}
	return data, nil
}

func refuse(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	reason := "no reason given"
	if len(args) > 0 && args[0].IsString() {
		reason = args[0].AsString()
	}
	return jinja.Undefined(), &RefusalError{reason}
}

// turn returns the mapping that templates know a message as. What the client
// did not send is not in it.
func (t *Template) turn(message Message) (jinja.Value, error) {
	turn := jinja.NewDict()
	keys := turn.AsDict()
	keys.Set("role", jinja.NewString(message.Role))
	content, err := t.content(message)
	if err != nil {
		return turn, err
	}
	keys.Set("content", content)
	if message.Reasoning != nil {
		keys.Set("reasoning_content", jinja.NewString(*message.Reasoning))
	}
	if len(message.ToolCalls) > 0 {
		calls := make([]jinja.Value, len(message.ToolCalls))
		for i, call := range message.ToolCalls {
			calls[i] = call.value()
		}
		keys.Set("tool_calls", jinja.NewList(calls))
	}
	if message.ToolCallID != "" {
		keys.Set("tool_call_id", jinja.NewString(message.ToolCallID))
	}
	if message.Name != "" {
		keys.Set("name", jinja.NewString(message.Name))
	}
	return turn, nil
}

// content returns a message's content as the template takes it. For templates
// that take text only, parts become lines of one text.
func (t *Template) content(message Message) (jinja.Value, error) {
	if message.Parts == nil {
		return jinja.NewString(message.Content), nil
	}
	var texts []string
	var parts []jinja.Value
	for _, part := range message.Parts {
		value := jinja.NewDict()
		value.AsDict().Set("type", jinja.NewString(part.Type))
		if part.Type == "text" {
			value.AsDict().Set("text", jinja.NewString(part.Text))
		} else if !t.takesParts {
			return jinja.Undefined(), fmt.Errorf("content has a part of type %q, and the template takes text only", part.Type)
		}
		texts = append(texts, part.Text)
		parts = append(parts, value)
	}
	if t.takesParts {
		return jinja.NewList(parts), nil
	}
	return jinja.NewString(strings.Join(texts, "\n")), nil
}

// value gives templates the arguments as a mapping, which they write out in
// their own way, or as the text that came if it is no JSON object.
func (c ToolCall) value() jinja.Value {
	arguments, err := parseJSON([]byte(c.Arguments))
	if err != nil || !arguments.IsDict() {
		arguments = jinja.NewString(c.Arguments)
	}
	function := jinja.NewDict()
	function.AsDict().Set("name", jinja.NewString(c.Name))
	function.AsDict().Set("arguments", arguments)
	call := jinja.NewDict()
	call.AsDict().Set("type", jinja.NewString("function"))
	if c.ID != "" {
		call.AsDict().Set("id", jinja.NewString(c.ID))
	}
	call.AsDict().Set("function", function)
	return call
}
