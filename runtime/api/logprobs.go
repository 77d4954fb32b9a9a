package api

import "slipway/runtime/engine"

// chatToken is one token of a chat answer with its log-probability. Bytes are
// given because a token may end inside a character.
type chatToken struct {
	chatCandidate
	Top []chatCandidate `json:"top_logprobs"`
}

type chatCandidate struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
	ID      *int32  `json:"token_id,omitempty"` // an extension, with return_token_ids
}

func (m *Model) chatTokens(tokens []engine.Token, ids bool) []chatToken {
	list := make([]chatToken, 0, len(tokens))
	for _, t := range tokens {
		entry := chatToken{m.candidate(t.ID, t.Logprob, ids), []chatCandidate{}}
		for _, top := range t.Top {
			entry.Top = append(entry.Top, m.candidate(top.Token, top.Logprob, ids))
		}
		list = append(list, entry)
	}
	return list
}

func (m *Model) candidate(id int32, logprob float32, withID bool) chatCandidate {
	text := m.Token(id)
	bytes := make([]int, len(text))
	for i := range text {
		bytes[i] = int(text[i])
	}
	candidate := chatCandidate{Token: text, Logprob: logprob, Bytes: bytes}
	if withID {
		candidate.ID = &id
	}
	return candidate
}

// textLogprobs is the older form, of text completions: parallel lists.
type textLogprobs struct {
	Tokens  []string             `json:"tokens"`
	Values  []float32            `json:"token_logprobs"`
	Top     []map[string]float32 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"` // bytes from the answer's beginning
	next    int
}

// textTokens returns the lists for tokens whose text begins at byte offset.
func (m *Model) textTokens(tokens []engine.Token, offset int) *textLogprobs {
	list := &textLogprobs{Tokens: []string{}, Values: []float32{}, Top: []map[string]float32{}, Offsets: []int{}, next: offset}
	for _, t := range tokens {
		text := m.Token(t.ID)
		list.Tokens = append(list.Tokens, text)
		list.Values = append(list.Values, t.Logprob)
		top := map[string]float32{}
		for _, candidate := range t.Top {
			top[m.Token(candidate.Token)] = candidate.Logprob
		}
		list.Top = append(list.Top, top)
		list.Offsets = append(list.Offsets, list.next)
		list.next += len(text)
	}
	return list
}
