package ask

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"slipway/verify/picture"
)

// Reference is a server's own account of its answer to a question: what later
// runs of the same weights are compared with. Ids are of the checkpoint's
// tokenizer and include the one that ended the answer. For each of them Logprobs
// has its own value and Top the likeliest tokens in its place, natural logarithms
// over the whole vocabulary.
type Reference struct {
	ID       string        `json:"id"`
	Question string        `json:"question,omitempty"` // "" in files that name it by its id only
	Images   []string      `json:"images,omitempty"`   // digests of what the question shows
	Prompt   []int32       `json:"prompt"`
	Answer   string        `json:"answer"`
	Tokens   []int32       `json:"tokens"`
	Logprobs []float32     `json:"logprobs"`
	Top      [][]Candidate `json:"top"`
	Finish   string        `json:"finish_reason"`
}

// Candidate is one of the likeliest tokens of a step.
type Candidate struct {
	Token   int32   `json:"token"`
	Logprob float32 `json:"logprob"`
}

// ReadReferences reads references, one JSON object a line.
func ReadReferences(data []byte) ([]Reference, error) { return readLines[Reference](data, nil) }

// References asks every question greedily and returns the answers with their
// token ids and the top log-probabilities of every step. It needs a server that
// knows return_token_ids, as the vendored runtime does.
func References(ctx context.Context, server string, questions []Question, load Load, top int) ([]Reference, error) {
	references := make([]Reference, len(questions))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(max(1, load.Concurrency))
	for i, question := range questions {
		group.Go(func() (err error) {
			references[i], err = referenceOne(inner, Endpoint{URL: server, most: maxReference}, question, load, top)
			if err != nil {
				return fmt.Errorf("question %q: %w", question.ID, err)
			}
			return nil
		})
	}
	return references, group.Wait()
}

// maxReference is how many bytes a reply may have that holds log-probabilities.
const maxReference = 64 << 20

// loggedToken is a token of a chat answer with its log-probability.
type loggedToken struct {
	ID      *int32        `json:"token_id"`
	Logprob float32       `json:"logprob"`
	Top     []loggedToken `json:"top_logprobs"`
}

func referenceOne(ctx context.Context, server Endpoint, question Question, load Load, top int) (Reference, error) {
	var reply struct {
		Prompt  []int32 `json:"prompt_token_ids"`
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
			FinishReason string  `json:"finish_reason"`
			Tokens       []int32 `json:"token_ids"`
			Logprobs     struct {
				Content []loggedToken `json:"content"`
			} `json:"logprobs"`
		} `json:"choices"`
	}
	failed := server.post(ctx, ChatPath, map[string]any{
		"messages":   []map[string]any{{"role": "user", "content": content(question, picture.Picture.URL)}},
		"max_tokens": load.MaxTokens, "temperature": 0, "logprobs": true, "top_logprobs": top, "return_token_ids": true,
	}, &reply, load.Request).Failed
	if failed != nil {
		return Reference{}, failed
	}
	if len(reply.Choices) != 1 || len(reply.Prompt) == 0 || len(reply.Choices[0].Tokens) == 0 {
		return Reference{}, fmt.Errorf("the server does not say its token ids")
	}
	choice := reply.Choices[0]
	if len(choice.Tokens) != len(choice.Logprobs.Content) {
		return Reference{}, fmt.Errorf("the server has %d log-probabilities for %d tokens", len(choice.Logprobs.Content), len(choice.Tokens))
	}
	r := Reference{ID: question.ID, Question: question.Question, Images: question.Shown(), Prompt: reply.Prompt, Answer: choice.Message.Content, Tokens: choice.Tokens, Finish: choice.FinishReason}
	for _, token := range choice.Logprobs.Content {
		r.Logprobs = append(r.Logprobs, token.Logprob)
		step := []Candidate{}
		for _, candidate := range token.Top {
			if candidate.ID == nil {
				return Reference{}, fmt.Errorf("the server does not say its token ids")
			}
			step = append(step, Candidate{*candidate.ID, candidate.Logprob})
		}
		r.Top = append(r.Top, step)
	}
	return r, nil
}
