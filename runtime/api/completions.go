package api

import (
	"encoding/json"
	"net/http"

	"slipway/runtime/engine"
)

// defaultCompletion is how many tokens a text completion has when the request
// does not say, as at OpenAI.
const defaultCompletion = 16

// textAnswer is the body of an answer and of a stream's chunk.
type textAnswer struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []textChoice `json:"choices"`
	Usage   *usage       `json:"usage,omitempty"`
}

type textChoice struct {
	Index    int           `json:"index"`
	Text     string        `json:"text"`
	Logprobs *textLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
	Prompt   []int32       `json:"prompt_token_ids,omitempty"`
	Tokens   []int32       `json:"token_ids,omitempty"`
}

// completion serves POST /v1/completions.
func (s *Server) completion(w http.ResponseWriter, r *http.Request) *Error {
	m, request, p, stream, problem := s.begin(w, r, readTextRequest)
	if problem != nil {
		return problem
	}
	answer := textAnswer{ID: "cmpl-" + s.newID(), Object: "text_completion", Created: s.now().Unix(), Model: s.config.Model}
	if p.stream {
		return s.streamText(w, r, m, p, answer, stream)
	}
	all, outcome, problem := collect(r.Context(), stream)
	if problem != nil {
		return problem
	}
	choice := textChoice{Text: all.content, Finish: &outcome.Reason}
	if p.logprobs {
		choice.Logprobs = m.textTokens(p.logged(all, outcome), 0)
	}
	if p.tokenIDs {
		choice.Prompt, choice.Tokens = request.Prompt, outcome.Tokens
	}
	answer.Choices, answer.Usage = []textChoice{choice}, usageOf(outcome)
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func (s *Server) streamText(w http.ResponseWriter, r *http.Request, m *Model, p parameters, chunk textAnswer, stream *engine.Stream) *Error {
	offset := 0
	return relay(w, r, stream, relayed{
		begin: func(*eventWriter) {},
		piece: func(events *eventWriter, piece engine.Piece) {
			choice := textChoice{Text: piece.Text}
			if p.logprobs {
				choice.Logprobs = m.textTokens(piece.Tokens, offset)
				offset = choice.Logprobs.next
			} else if piece.Text == "" {
				return
			}
			chunk.Choices = []textChoice{choice}
			events.send(chunk)
		},
		end: func(events *eventWriter, outcome engine.Outcome) {
			chunk.Choices = []textChoice{{Finish: &outcome.Reason}}
			events.send(chunk)
			if p.usage {
				chunk.Choices, chunk.Usage = []textChoice{}, usageOf(outcome)
				events.send(chunk)
			}
		},
	})
}

func readTextRequest(m *Model, f *fields) (engine.Request, parameters, *Error) {
	p := readParameters(f, m.Defaults)
	if p.maxTokens == 0 {
		p.maxTokens = defaultCompletion
	}
	if f.has("logprobs") {
		p.logprobs = true
		p.sampling.TopLogprobs = f.integer("logprobs", 0, 0, maxTop)
	}
	if f.boolean("echo") {
		f.fail("echo", "is not offered: the answer never repeats the prompt")
	}
	if f.integer("best_of", 1, 1, 1<<20) != 1 {
		f.fail("best_of", "has to be 1")
	}
	prompt := readPrompt(m, f)
	if f.err != nil {
		return engine.Request{}, p, f.err
	}
	return p.request(m, prompt), p, nil
}

// readPrompt takes one prompt: a string, token ids, or a list with one of them.
func readPrompt(m *Model, f *fields) []int32 {
	raw := f.raw("prompt")
	if raw == nil {
		f.fail("prompt", "is missing")
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 && (list[0][0] == '"' || list[0][0] == '[') {
		if len(list) > 1 {
			f.fail("prompt", "has to be one prompt; send others in requests of their own")
			return nil
		}
		raw = list[0]
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		ids, problem := m.encode(text)
		if f.err == nil {
			f.err = problem
		}
		return ids
	}
	ids, ok := parseIDs(raw)
	if !ok {
		f.fail("prompt", "has to be a string or a list of token ids")
	}
	f.known("prompt", ids, m.Engine.Vocabulary())
	return ids
}
