package ask

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway/manifest"
	"slipway/verify/picture"
)

// Question is one public question: asked as one user message, right if the
// answer is the given one, white space around it aside. Choices are the options
// of a question that has some; Image or Images name what it shows, which is in
// Pictures.
type Question struct {
	ID       string   `json:"id"`
	Question string   `json:"question"`
	Answer   string   `json:"answer"`
	Choices  []string `json:"choices,omitempty"`
	Image    string   `json:"image,omitempty"`
	Images   []string `json:"images,omitempty"`

	Pictures []picture.Picture `json:"-"`
}

// ReadQuestions reads questions, one JSON object a line. images are those that
// they name.
func ReadQuestions(data []byte, images map[string][]byte) ([]Question, error) {
	questions, err := readLines[Question](data, nil)
	for i := range questions {
		q := &questions[i]
		names, nameErr := picture.Names(q.Image, q.Images)
		if nameErr != nil {
			return nil, fmt.Errorf("question %q %w", manifest.Clip(q.ID), nameErr)
		}
		for _, name := range names {
			if images[name] == nil {
				return nil, fmt.Errorf("question %q: image %s was not read", manifest.Clip(q.ID), manifest.Clip(name))
			}
			q.Pictures = append(q.Pictures, picture.Picture{Name: name, Data: images[name]})
		}
	}
	return questions, err
}

// Shown are the digests of what a question shows, in order.
func (q Question) Shown() (digests []string) {
	for _, p := range q.Pictures {
		digests = append(digests, manifest.DigestBytes(p.Data).String())
	}
	return digests
}

// pictureLength is how long a question gets by an image, in bytes of text: most
// encoders make some hundreds of tokens of one.
const pictureLength = 2000

// Length is about how long a question is to a model, in bytes of text.
func (q Question) Length() int { return len(q.Question) + pictureLength*len(q.Pictures) }

// readLines reads one JSON object a line. check, which may be nil, says what is
// wrong with one.
func readLines[T any](data []byte, check func(T) error) ([]T, error) {
	var all []T
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var one T
		err := manifest.DecodeStrict(lines.Bytes(), &one)
		if err == nil && check != nil {
			err = check(one)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, one)
	}
	return all, lines.Err()
}

// WithoutRepeats drops the questions whose text was there before with the same
// images, whatever its letters' case and white space: a server may remember the
// answer.
func WithoutRepeats(questions []Question) (kept []Question, repeats int) {
	seen := map[string]bool{}
	for _, q := range questions {
		text := strings.Join(append(strings.Fields(strings.ToLower(q.Question)), q.Shown()...), " ")
		if seen[text] {
			repeats++
			continue
		}
		seen[text] = true
		kept = append(kept, q)
	}
	return kept, repeats
}

// Answer is what a server made of a question. Failed holds why there is no
// answer.
type Answer struct {
	Question Question
	Content  string
	Finish   string  // "stop", "length"
	Tokens   int     // generated
	IDs      []int32 // of them, where they were asked for and the server knows how to say them
	Thought  bool    // there is text in a field of its own for thoughts
	Took     time.Duration
	Tries    int
	Failed   error

	Exchange // the last try
}

// Right reports whether the answer that the reply gives is the expected one.
func (a Answer) Right() bool {
	if a.Failed != nil {
		return false
	}
	if strings.TrimSpace(a.Content) == strings.TrimSpace(a.Question.Answer) {
		return true
	}
	answer, ok := Extract(a.Content, a.Question.Answer)
	return ok && equal(answer, a.Question.Answer)
}

// Parsed reports whether the reply gives an answer of the expected form.
func (a Answer) Parsed() bool {
	if a.Failed != nil {
		return false
	}
	_, ok := Extract(a.Content, a.Question.Answer)
	return ok
}

// Empty reports an answer without content.
func (a Answer) Empty() bool { return a.Failed == nil && strings.TrimSpace(a.Content) == "" }

// Load says how questions are sent.
type Load struct {
	Concurrency int
	MaxTokens   int
	Temperature float64
	Request     time.Duration // limit of one try; 0: none
	Attempts    int           // tries of a request; 0: one
	IDs         bool          // the token ids are asked for
	Done        *atomic.Int64 // counts the requests that have ended, failed ones too; may be nil
}

// count is told that a request has ended.
func (l Load) count() {
	if l.Done != nil {
		l.Done.Add(1)
	}
}

// All sends every question to the chat endpoint, load.Concurrency at a time,
// and returns the answers in the order of the questions. Only the end of ctx is
// an error; a failed request is a failed answer.
func All(ctx context.Context, server Endpoint, questions []Question, load Load) ([]Answer, error) {
	answers := make([]Answer, len(questions))
	var group errgroup.Group
	group.SetLimit(max(1, load.Concurrency))
	for i, question := range questions {
		group.Go(func() error {
			began := time.Now()
			answers[i] = One(ctx, server, question, load)
			answers[i].Took = time.Since(began)
			load.count()
			return ctx.Err()
		})
	}
	return answers, group.Wait()
}

// ChatPath is where questions are asked.
const ChatPath = "/v1/chat/completions"

// One asks a question until it is answered or has been tried often enough.
func One(ctx context.Context, server Endpoint, question Question, load Load) Answer {
	answer := Answer{Question: question}
	for answer.Tries < max(1, load.Attempts) && ctx.Err() == nil {
		var reply chatReply
		answer.Tries++
		answer.Exchange = server.post(ctx, ChatPath, chatBody(question, load, picture.Picture.URL), &reply, load.Request)
		if len(question.Pictures) > 0 {
			answer.short = shorten(question, load)
		}
		if answer.Failed = answer.Exchange.Failed; answer.Failed == nil {
			answer.Failed, answer.Thought = reply.fault(), reply.thought()
		}
		if answer.Failed == nil {
			answer.Content, answer.Finish = *reply.Choices[0].Message.Content, reply.Choices[0].FinishReason
			answer.Tokens, answer.IDs = reply.Usage.CompletionTokens, reply.Choices[0].IDs
			return answer
		}
	}
	if answer.Failed == nil {
		answer.Failed = context.Cause(ctx)
	}
	return answer
}

// chatReply is what a chat endpoint answers.
type chatReply struct {
	Choices []struct {
		Message struct {
			Content   *string `json:"content"`
			Reasoning any     `json:"reasoning_content"` // as vLLM and SGLang call it; later versions of vLLM: reasoning
			Thought   any     `json:"reasoning"`
		} `json:"message"`
		FinishReason string  `json:"finish_reason"`
		IDs          []int32 `json:"token_ids"`
	} `json:"choices"`
	Usage struct {
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
}

// thought reports text in a field for thoughts.
func (r chatReply) thought() bool {
	if len(r.Choices) == 0 {
		return false
	}
	for _, field := range []any{r.Choices[0].Message.Reasoning, r.Choices[0].Message.Thought} {
		if text, ok := field.(string); ok && strings.TrimSpace(text) != "" {
			return true
		}
	}
	return false
}

func (r chatReply) fault() error {
	switch {
	case len(r.Choices) == 0:
		return fmt.Errorf("%w: it has no choice", errMalformed)
	case r.Choices[0].Message.Content == nil:
		return fmt.Errorf("%w: choices[0].message.content is absent or null", errMalformed)
	case r.Usage.CompletionTokens < 0:
		return fmt.Errorf("%w: usage.completion_tokens is %d", errMalformed, r.Usage.CompletionTokens)
	}
	return nil
}
