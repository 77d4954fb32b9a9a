package api

import (
	"net/http"

	"slipway/runtime/engine"
)

// Drafts have 16 tokens, or what the model's context has room for, unless the
// request says otherwise; more than maxDraft in one go help no verifier.
const (
	defaultDraft = 16
	maxDraft     = 256
)

// draftFields are the names under which clients send the context's ids.
var draftFields = []string{"tokens", "input_ids", "context", "prompt"}

// draft serves POST /draft: the likeliest continuation of a list of token ids,
// exactly n long. End tokens do not end it, and of a context that leaves no room
// for the draft the oldest tokens are left out: a guess is checked by its reader
// anyway, and none at all helps less.
func (s *Server) draft(w http.ResponseWriter, r *http.Request) *Error {
	m, problem := s.ready()
	if problem != nil {
		return problem
	}
	f, problem := readBody(w, r, s.config.MaxBody)
	if problem != nil {
		return problem
	}
	most := min(maxDraft, m.Engine.Context()-1) // one place is for the context
	n := f.integer("n", min(defaultDraft, most), 1, most)
	context := readContext(f, m.Engine.Vocabulary())
	if f.err != nil {
		return f.err
	}
	if room := m.Engine.Context() - n; len(context) > room {
		context = context[len(context)-room:]
	}
	stream, problem := m.submit(r.Context(), engine.Request{Prompt: context, MaxTokens: n, IgnoreEnd: true})
	if problem != nil {
		return problem
	}
	_, outcome, problem := collect(r.Context(), stream)
	if problem != nil {
		return problem
	}
	writeJSON(w, http.StatusOK, struct {
		Draft []int32 `json:"draft"`
	}{outcome.Tokens})
	return nil
}

func readContext(f *fields, vocabulary int) []int32 {
	for _, name := range draftFields {
		if !f.has(name) {
			continue
		}
		ids := f.ids(name)
		if len(ids) == 0 {
			f.fail(name, "has to have at least one token id")
		}
		f.known(name, ids, vocabulary)
		return ids
	}
	f.fail("tokens", "is missing: the context's token ids")
	return nil
}
