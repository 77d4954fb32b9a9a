package tokenizer

// Streamer decodes a sequence token by token. The texts it returns, joined,
// equal Decode of the whole sequence. It is for one goroutine.
type Streamer struct {
	tokenizer   *Tokenizer
	skipSpecial bool
	pending     string // the beginning of a character, at most three bytes
}

// Stream starts decoding a sequence.
func (t *Tokenizer) Stream(skipSpecial bool) *Streamer {
	return &Streamer{tokenizer: t, skipSpecial: skipSpecial}
}

// Next takes the sequence's next token and returns the text that it completes:
// always whole characters, "" while one is incomplete.
func (s *Streamer) Next(id int32) string {
	if s.skipSpecial && s.tokenizer.special[id] {
		return ""
	}
	text := s.pending + s.tokenizer.Token(id)
	keep := incompleteTail(text)
	s.pending = text[len(text)-keep:]
	return validText(text[:len(text)-keep])
}

// Flush ends the sequence: an incomplete character becomes U+FFFD. The Streamer
// is then ready for another sequence.
func (s *Streamer) Flush() string {
	text := validText(s.pending)
	s.pending = ""
	return text
}
