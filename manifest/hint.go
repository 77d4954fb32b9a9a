package manifest

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// hinted carries a remedy beside an error. The error's own text stays one
// clause, so that it can be wrapped; the remedy is printed on a line of its own.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// WithHint adds a remedy ("build again") to err. A nil err stays nil, and an
// empty remedy adds nothing.
func WithHint(err error, hint string) error {
	if err == nil || hint == "" {
		return err
	}
	return hinted{err, hint}
}

// Hint returns the outermost remedy in err's chain, or "".
func Hint(err error) string {
	var h hinted
	if errors.As(err, &h) {
		return h.hint
	}
	return ""
}

// Cause strips the operation and paths that an *fs.PathError or *os.LinkError
// repeats: whoever wraps it names the act and the object already.
func Cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	var linkError *os.LinkError
	if errors.As(err, &linkError) {
		return linkError.Err
	}
	return err
}

// Clip bounds text from an input that is quoted in an error.
func Clip(text string) string {
	const most = 96
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
