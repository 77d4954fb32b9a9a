package boot

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway/manifest"
)

// Question is one public question: asked as one user message, right if the
// answer is the given one, white space around it aside.
type Question struct {
	ID       string `json:"id"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

// ReadQuestions reads questions, one JSON object a line.
func ReadQuestions(data []byte) ([]Question, error) {
	return readLines[Question](data)
}

func readLines[T any](data []byte) ([]T, error) {
	var all []T
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var one T
		if err := manifest.DecodeStrict(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, one)
	}
	return all, lines.Err()
}

// Answer is what a server made of a question. Failed holds why there is no
// answer.
type Answer struct {
	Question Question
	Content  string
	Finish   string // "stop", "length"
	Tokens   int    // generated
	Took     time.Duration
	Failed   error
}

// Right reports whether the answer is the expected one.
func (a Answer) Right() bool {
	return a.Failed == nil && strings.TrimSpace(a.Content) == strings.TrimSpace(a.Question.Answer)
}

// Load says how questions are sent.
type Load struct {
	Concurrency int
	MaxTokens   int
	Temperature float64
	Request     time.Duration // limit of one request
}

// Ask sends every question to the chat endpoint, load.Concurrency at a time,
// and returns the answers in the order of the questions. Only the end of ctx is
// an error; a failed request is a failed answer.
func Ask(ctx context.Context, server string, questions []Question, load Load) ([]Answer, error) {
	answers := make([]Answer, len(questions))
	client := &http.Client{Timeout: load.Request}
	var group errgroup.Group
	group.SetLimit(max(1, load.Concurrency))
	for i, question := range questions {
		group.Go(func() error {
			began := time.Now()
			answers[i] = askOne(ctx, client, server, question, load)
			answers[i].Took = time.Since(began)
			return ctx.Err()
		})
	}
	return answers, group.Wait()
}

func askOne(ctx context.Context, client *http.Client, server string, question Question, load Load) Answer {
	answer := Answer{Question: question}
	var reply struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			CompletionTokens int `json:"completion_tokens"`
		} `json:"usage"`
	}
	answer.Failed = post(ctx, client, server+"/v1/chat/completions", map[string]any{
		"model":       "submission",
		"messages":    []map[string]string{{"role": "user", "content": question.Question}},
		"max_tokens":  load.MaxTokens,
		"temperature": load.Temperature,
	}, &reply)
	if answer.Failed == nil && len(reply.Choices) == 0 {
		answer.Failed = fmt.Errorf("the reply has no choice")
	}
	if answer.Failed == nil {
		answer.Content, answer.Finish = reply.Choices[0].Message.Content, reply.Choices[0].FinishReason
		answer.Tokens = reply.Usage.CompletionTokens
	}
	return answer
}

// maxReply bounds a reply, in bytes.
const maxReply = 32 << 20

func post(ctx context.Context, client *http.Client, url string, body, reply any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err = io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, manifest.Printable(string(data[:min(len(data), 300)])))
	}
	return json.Unmarshal(data, reply)
}
