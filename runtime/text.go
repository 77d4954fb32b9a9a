package main

import (
	"errors"
	"slices"

	"slipway/runtime/api"
	"slipway/runtime/engine"
	"slipway/runtime/tokenizer"
	"slipway/runtime/tokenizer/template"
)

// textModel is what turns conversations into tokens and tokens into text.
type textModel struct {
	tokenizer *tokenizer.Tokenizer
	template  *template.Template // nil: the checkpoint has none
}

func readText(folder string) (t textModel, err error) {
	if t.tokenizer, err = tokenizer.Load(folder); err != nil {
		return t, err
	}
	t.template, err = template.Load(folder)
	if errors.Is(err, template.ErrNone) {
		return t, nil
	}
	return t, err
}

// endTokens adds to the checkpoint's end tokens those that its tokenizer names:
// there are checkpoints whose configuration knows the end of a text but not the
// end of a turn, and they would go on to invent the user's next question.
func (t textModel) endTokens(ends []int32) []int32 {
	if id, ok := t.tokenizer.EndToken(); ok {
		ends = append(ends, id)
	}
	for _, literal := range []string{"<|im_end|>", "<|endoftext|>"} {
		if id, ok := t.tokenizer.ID(literal); ok {
			ends = append(ends, id)
		}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}

func (t textModel) serve(o options, e *engine.Engine) *api.Model {
	return &api.Model{
		Engine:      e,
		Encode:      t.tokenizer.Encode,
		LongestText: t.tokenizer.LongestText(),
		NewDecoder:  func() engine.Decoder { return t.tokenizer.Stream(true) },
		Token:       t.tokenizer.Token,
		Prompt:      t.prompt,
		Think:       o.thinking,
		Thinking:    t.thinking(o.answerReserve),
	}
}

// thinking returns how the model marks a thought, or nil if its tokenizer has
// no marks.
func (t textModel) thinking(reserve int) *engine.Thinking {
	begin, begins := t.tokenizer.ID("<think>")
	end, ends := t.tokenizer.ID("</think>")
	if !begins || !ends {
		return nil
	}
	return &engine.Thinking{Begin: begin, End: end, Close: t.tokenizer.Encode("\n</think>\n\n"), Reserve: reserve}
}

func (t textModel) prompt(chat api.Chat) (string, error) {
	if t.template == nil {
		return "", errors.New("the model has no chat template; use /v1/completions")
	}
	messages := make([]template.Message, 0, len(chat.Messages))
	for _, m := range chat.Messages {
		turn := template.Message{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID, Name: m.Name}
		for _, call := range m.ToolCalls {
			turn.ToolCalls = append(turn.ToolCalls, template.ToolCall(call))
		}
		messages = append(messages, turn)
	}
	return t.template.Render(messages, template.Options{AddGenerationPrompt: true, EnableThinking: &chat.Thinking, Tools: chat.Tools})
}
