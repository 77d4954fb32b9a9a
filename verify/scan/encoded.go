package scan

// minimumRun is how many characters a run has at least to be taken for encoded
// bytes: more than any word, number, digest or key.
const minimumRun = 4096

// encodedText counts the characters of a text that stand in long runs of what
// encoders write: hexadecimal digits, also over the ends of lines, or base64
// within a line. It is fed the text in pieces of any length.
type encodedText struct{ hex, base64 runs }

// runs sums the long runs of one alphabet.
type runs struct{ current, total int64 }

func (r *runs) end() {
	if r.current >= minimumRun {
		r.total += r.current
	}
	r.current = 0
}

// The alphabets that a character belongs to.
const (
	inHex = 1 << iota
	inBase64
	endsLine
)

var alphabets = func() (table [256]uint8) {
	for c := range 256 {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
			table[c] = inHex | inBase64
		case c > 'f' && c <= 'z', c > 'F' && c <= 'Z', c == '+', c == '/', c == '-', c == '_', c == '=':
			table[c] = inBase64
		case c == '\n', c == '\r':
			table[c] = endsLine
		}
	}
	return table
}()

func (e *encodedText) write(p []byte) {
	for _, c := range p {
		in := alphabets[c]
		if in&inHex != 0 {
			e.hex.current++
		} else if in != endsLine {
			e.hex.end()
		}
		if in&inBase64 != 0 {
			e.base64.current++
		} else {
			e.base64.end()
		}
	}
}

// size ends the text and returns how many of its characters are encoded bytes.
func (e *encodedText) size() int64 {
	e.hex.end()
	e.base64.end()
	return max(e.hex.total, e.base64.total)
}
