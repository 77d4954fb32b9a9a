package api

import (
	"net/http"
	"strings"

	"slipway/runtime/engine"
)

// chatAnswer is the body of an answer and of a stream's chunk; a choice has a
// message or a delta.
type chatAnswer struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *usage       `json:"usage,omitempty"`
	Prompt  []int32      `json:"prompt_token_ids,omitempty"`
}

type chatChoice struct {
	Index    int           `json:"index"`
	Message  *chatMessage  `json:"message,omitempty"`
	Delta    *chatDelta    `json:"delta,omitempty"`
	Logprobs *chatLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
	Tokens   []int32       `json:"token_ids,omitempty"`
}

type chatMessage struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content,omitempty"`
}

type chatDelta struct {
	Role      string  `json:"role,omitempty"`
	Content   *string `json:"content,omitempty"`
	Reasoning string  `json:"reasoning_content,omitempty"`
}

type chatLogprobs struct {
	Content []chatToken `json:"content"`
}

// begin reads a completion's request, by read, and submits it.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, read func(*Model, *fields) (engine.Request, parameters, *Error)) (m *Model, request engine.Request, p parameters, stream *engine.Stream, problem *Error) {
	if m, problem = s.ready(); problem != nil {
		return m, request, p, nil, problem
	}
	f, problem := readBody(w, r, s.config.MaxBody)
	if problem != nil {
		return m, request, p, nil, problem
	}
	if request, p, problem = read(m, f); problem != nil {
		return m, request, p, nil, problem
	}
	stream, problem = m.submit(r.Context(), request)
	return m, request, p, stream, problem
}

// chat serves POST /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) *Error {
	m, request, p, stream, problem := s.begin(w, r, readChatRequest)
	if problem != nil {
		return problem
	}
	answer := chatAnswer{ID: "chatcmpl-" + s.newID(), Created: s.now().Unix(), Model: s.config.Model}
	if p.stream {
		answer.Object = "chat.completion.chunk"
		return s.streamChat(w, r, m, p, answer, stream)
	}
	return s.wholeChat(w, r, m, p, answer, request.Prompt, stream)
}

// readChatRequest turns a request's fields into the engine's request.
func readChatRequest(m *Model, f *fields) (engine.Request, parameters, *Error) {
	p := readParameters(f, m.Defaults)
	chat := readChat(f, m.Think)
	p.logprobs = f.boolean("logprobs")
	p.sampling.TopLogprobs = f.integer("top_logprobs", 0, 0, maxTop)
	if p.sampling.TopLogprobs > 0 && !p.logprobs {
		f.fail("top_logprobs", "needs logprobs to be true")
	}
	if f.err != nil {
		return engine.Request{}, p, f.err
	}
	prompt, err := m.Prompt(chat)
	if err != nil {
		return engine.Request{}, p, invalid("messages", "%v", err)
	}
	ids, problem := m.encode(prompt)
	if problem != nil {
		return engine.Request{}, p, problem
	}
	request := p.request(m, ids)
	if m.Thinking != nil {
		thinking := *m.Thinking
		thinking.Open = m.endsInThought(request.Prompt)
		request.Thinking = &thinking
	}
	return request, p, nil
}

// endsInThought says whether a prompt ends with the mark that opens a thought,
// white space apart. Looking at tokens and only at the end, it cannot be misled
// by a message that quotes the mark: the template's own text comes last.
func (m *Model) endsInThought(prompt []int32) bool {
	for i := len(prompt) - 1; i >= 0; i-- {
		if prompt[i] == m.Thinking.Begin {
			return true
		}
		if strings.TrimSpace(m.Token(prompt[i])) != "" {
			return false
		}
	}
	return false
}

// wholeChat answers in one piece.
func (s *Server) wholeChat(w http.ResponseWriter, r *http.Request, m *Model, p parameters, answer chatAnswer, prompt []int32, stream *engine.Stream) *Error {
	all, outcome, problem := collect(r.Context(), stream)
	if problem != nil {
		return problem
	}
	choice := chatChoice{Message: &chatMessage{Role: "assistant", Content: all.content, Reasoning: all.thought}, Finish: &outcome.Reason}
	if p.logprobs {
		choice.Logprobs = &chatLogprobs{m.chatTokens(p.logged(all, outcome), p.tokenIDs)}
	}
	answer.Object = "chat.completion"
	answer.Usage = usageOf(outcome)
	if p.tokenIDs {
		answer.Prompt, choice.Tokens = prompt, outcome.Tokens
	}
	answer.Choices = []chatChoice{choice}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// streamChat answers piece by piece: a chunk with the role, one for each piece,
// one with the reason of the end, and the usage if it was asked for.
func (s *Server) streamChat(w http.ResponseWriter, r *http.Request, m *Model, p parameters, chunk chatAnswer, stream *engine.Stream) *Error {
	send := func(events *eventWriter, delta chatDelta, logprobs *chatLogprobs, finish *string) {
		chunk.Choices = []chatChoice{{Delta: &delta, Logprobs: logprobs, Finish: finish}}
		events.send(chunk)
	}
	return relay(w, r, stream, relayed{
		begin: func(events *eventWriter) {
			send(events, chatDelta{Role: "assistant", Content: new(string)}, nil, nil)
		},
		piece: func(events *eventWriter, piece engine.Piece) {
			if piece.Thought {
				send(events, chatDelta{Reasoning: piece.Text}, nil, nil)
				return
			}
			var logprobs *chatLogprobs
			if p.logprobs {
				logprobs = &chatLogprobs{m.chatTokens(piece.Tokens, p.tokenIDs)}
			}
			if piece.Text != "" || p.logprobs {
				send(events, chatDelta{Content: &piece.Text}, logprobs, nil)
			}
		},
		end: func(events *eventWriter, outcome engine.Outcome) {
			send(events, chatDelta{}, nil, &outcome.Reason)
			if p.usage {
				chunk.Choices, chunk.Usage = []chatChoice{}, usageOf(outcome)
				events.send(chunk)
			}
		},
	})
}
