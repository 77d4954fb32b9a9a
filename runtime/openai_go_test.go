package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// The official Go client understands what the server says.
func TestOfficialGoClient(t *testing.T) {
	p := launch(t, "--weights", ternary, "--model", "abacus")
	client := openai.NewClient(option.WithBaseURL(p.url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	question := openai.ChatCompletionNewParams{
		Model:       "abacus",
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Which is larger, 598 or 989?")},
		Temperature: openai.Float(0),
		MaxTokens:   openai.Int(32),
	}
	t.Run("models", func(t *testing.T) {
		page, err := client.Models.List(t.Context())
		if err != nil || len(page.Data) != 1 || page.Data[0].ID != "abacus" {
			t.Errorf("%+v, %v", page, err)
		}
	})
	t.Run("chat", func(t *testing.T) {
		question := question
		question.Logprobs, question.TopLogprobs = openai.Bool(true), openai.Int(2)
		answer, err := client.Chat.Completions.New(t.Context(), question)
		if err != nil {
			t.Fatal(err)
		}
		choice := answer.Choices[0]
		if choice.Message.Content != "989" || choice.FinishReason != "stop" || answer.Usage.PromptTokens != 28 || answer.Usage.CompletionTokens != 4 {
			t.Errorf("%s", answer.RawJSON())
		}
		if tokens := choice.Logprobs.Content; len(tokens) != 3 || tokens[0].Token != "9" || len(tokens[0].TopLogprobs) != 2 || tokens[0].Logprob != tokens[0].TopLogprobs[0].Logprob {
			t.Errorf("log-probabilities: %s", choice.Logprobs.RawJSON())
		}
	})
	t.Run("stream", func(t *testing.T) {
		question := question
		question.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := client.Chat.Completions.NewStreaming(t.Context(), question)
		var whole openai.ChatCompletionAccumulator
		chunks := 0
		for stream.Next() {
			chunks++
			if !whole.AddChunk(stream.Current()) {
				t.Fatalf("chunk %d does not fit: %s", chunks, stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		if choice := whole.Choices[0]; choice.Message.Content != "989" || choice.FinishReason != "stop" || whole.Usage.TotalTokens != 32 || chunks < 4 {
			t.Errorf("%d chunks: %+v", chunks, whole.ChatCompletion)
		}
	})
	t.Run("text completion", func(t *testing.T) {
		answer, err := client.Completions.New(t.Context(), openai.CompletionNewParams{
			Model: "abacus", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("<|im_start|>user\nSort 95 83 30.<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")},
		})
		if err != nil || answer.Choices[0].Text != "30 83 95" {
			t.Errorf("%+v, %v", answer, err)
		}
	})
	t.Run("error", func(t *testing.T) {
		question := question
		question.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage(strings.Repeat("1 ", 5000))}
		_, err := client.Chat.Completions.New(t.Context(), question)
		var problem *openai.Error
		if !errors.As(err, &problem) || problem.StatusCode != 400 || problem.Code != "context_length_exceeded" || problem.Type != "invalid_request_error" {
			t.Errorf("%v", err)
		}
	})
}
