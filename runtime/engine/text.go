package engine

import "strings"

// text turns tokens into the pieces that a client may see: it separates
// thought from answer, ends the answer at a stop string, and holds back what
// may still turn out to belong to one.
type text struct {
	decoder Decoder
	stops   []string
	thought bool // what comes now is thought
	trim    bool // line feeds at the beginning of what comes are markup
	ended   bool // a stop string was found

	pending  string // decoded and held back
	released int    // bytes of the answer, or of the thought, before pending
	tokens   []heldToken
}

// heldToken is a token whose text begins at byte at.
type heldToken struct {
	Token
	at int
}

// push adds a token. It returns what may be shown, and whether the answer has
// ended at a stop string; nothing may be pushed after that.
func (t *text) push(token Token) (piece Piece, stopped bool) {
	t.tokens = append(t.tokens, heldToken{token, t.released + len(t.pending)})
	t.add(t.decoder.Next(token.ID))
	if t.thought {
		// White space before the end marker is markup, so it waits for more.
		return t.release(len(strings.TrimRight(t.pending, " \t\r\n"))), false
	}
	if cut, found := firstStop(t.pending, t.stops); found {
		t.ended = true
		return t.release(cut), true
	}
	return t.release(len(t.pending) - heldBack(t.pending, t.stops)), false
}

// closeThought ends the thought and returns what was left of it.
func (t *text) closeThought() Piece {
	piece := t.finish()
	t.thought, t.trim, t.released = false, true, 0
	return piece
}

// finish returns what was held back: no more comes to change it.
func (t *text) finish() Piece {
	if t.ended {
		return Piece{}
	}
	t.add(t.decoder.Flush())
	length := len(t.pending)
	if t.thought {
		length = len(strings.TrimRight(t.pending, " \t\r\n"))
	}
	piece := t.release(length)
	for _, token := range t.tokens {
		piece.Tokens = append(piece.Tokens, token.Token)
	}
	t.pending, t.tokens = "", nil
	return piece
}

func (t *text) add(decoded string) {
	if t.trim {
		decoded = strings.TrimLeft(decoded, "\n")
		t.trim = decoded == ""
	}
	t.pending += decoded
}

// release gives out the first length bytes of what is pending, with the tokens
// that begin in them. A token whose text the decoder holds back stays behind.
func (t *text) release(length int) Piece {
	piece := Piece{Text: t.pending[:length], Thought: t.thought}
	t.pending = t.pending[length:]
	t.released += length
	count := 0
	for count < len(t.tokens) && t.tokens[count].at < t.released {
		piece.Tokens = append(piece.Tokens, t.tokens[count].Token)
		count++
	}
	t.tokens = t.tokens[count:]
	return piece
}

// firstStop returns where the earliest stop string begins.
func firstStop(pending string, stops []string) (at int, found bool) {
	at = len(pending)
	for _, stop := range stops {
		if i := strings.Index(pending, stop); i >= 0 && i < at {
			at, found = i, true
		}
	}
	return at, found
}

// heldBack returns the length of pending's longest end that a stop string
// begins with.
func heldBack(pending string, stops []string) int {
	longest := 0
	for _, stop := range stops {
		for n := min(len(stop)-1, len(pending)); n > longest; n-- {
			if strings.HasSuffix(pending, stop[:n]) {
				longest = n
			}
		}
	}
	return longest
}
