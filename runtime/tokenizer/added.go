package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// addedToken is one of tokenizer.json's added_tokens, or of
// tokenizer_config.json's added_tokens_decoder, where the id is the key.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Lstrip     bool   `json:"lstrip"`
	Rstrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

func (a addedToken) check() error {
	switch {
	case a.Content == "":
		return fmt.Errorf("added token %d is empty", a.ID)
	case a.SingleWord || a.Lstrip || a.Rstrip:
		return fmt.Errorf("added token %q: single_word, lstrip and rstrip are not supported", clip(a.Content))
	}
	return nil
}

// matcher finds added tokens: by first byte, the longest first.
type matcher struct {
	candidates [256][]addedToken
	empty      bool
}

func newMatcher(tokens []addedToken) matcher {
	m := matcher{empty: len(tokens) == 0}
	for _, token := range tokens {
		first := token.Content[0]
		m.candidates[first] = append(m.candidates[first], token)
	}
	for _, sameStart := range m.candidates {
		slices.SortFunc(sameStart, func(a, b addedToken) int { return len(b.Content) - len(a.Content) })
	}
	return m
}

// cut appends the ids of the added tokens in text and, by encode, of what lies
// between them.
func (m *matcher) cut(ids []int32, text string, encode func([]int32, string) []int32) []int32 {
	if m.empty {
		return encode(ids, text)
	}
	start := 0
	for i := 0; i < len(text); {
		token, ok := m.match(text[i:])
		if !ok {
			i++
			continue
		}
		ids = append(encode(ids, text[start:i]), token.ID)
		i += len(token.Content)
		start = i
	}
	return encode(ids, text[start:])
}

func (m *matcher) match(text string) (addedToken, bool) {
	for _, token := range m.candidates[text[0]] {
		if strings.HasPrefix(text, token.Content) {
			return token, true
		}
	}
	return addedToken{}, false
}

// clip shortens what an error quotes.
func clip(text string) string {
	if len(text) > 80 {
		return text[:80] + "..."
	}
	return text
}
