package engine

import (
	"fmt"

	"slipway/runtime/model"
)

// Request is one prompt to continue.
type Request struct {
	Prompt    []int32        // at least one id
	MaxTokens int            // generated tokens at most; 0: as many as the context holds
	Sampling  model.Sampling // the next token's choice
	IgnoreEnd bool           // generate to the limit, whatever token comes
	Decoder   Decoder        // turns tokens into text; nil: tokens only, and then no Stop and no Thinking
	Stop      []string       // the answer ends before the first of these; never looked for in a thought
	Thinking  *Thinking      // how thoughts are marked; nil: everything is answer
}

// Decoder turns a sequence of token ids into text piece by piece. What it
// returns joins to the text of the whole; it holds back incomplete characters.
type Decoder interface {
	Next(id int32) string
	Flush() string
}

// Thinking separates the thought before an answer from the answer, and closes a
// thought that would leave no room for one.
type Thinking struct {
	Open       bool    // the prompt ends inside a thought
	Begin, End int32   // the tokens around a thought; Begin counts only as the very first token
	Close      []int32 // what is forced to close a thought; contains End
	Reserve    int     // tokens kept for the answer
}

// TooLongError says that a prompt leaves no room in the context.
type TooLongError struct{ Tokens, Context int }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the prompt has %d tokens, and with at least one generated token the model's context holds %d", e.Tokens, e.Context)
}

// InvalidError says what is wrong with a request.
type InvalidError struct{ Problem string }

func (e *InvalidError) Error() string { return e.Problem }

func (r *Request) check(context, vocabulary int) error {
	if len(r.Prompt) == 0 {
		return &InvalidError{"the prompt is empty"}
	}
	if len(r.Prompt) >= context {
		return &TooLongError{len(r.Prompt), context}
	}
	for i, id := range r.Prompt {
		if id < 0 || int(id) >= vocabulary {
			return &InvalidError{fmt.Sprintf("token %d of the prompt is %d; ids are 0 to %d", i, id, vocabulary-1)}
		}
	}
	if r.Decoder == nil && (len(r.Stop) > 0 || r.Thinking != nil) {
		panic("engine: Stop and Thinking need a Decoder")
	}
	return nil
}

// limit returns how many tokens may be generated.
func (r *Request) limit(context int) int {
	room := context - len(r.Prompt)
	if r.MaxTokens > 0 {
		return min(r.MaxTokens, room)
	}
	return room
}

// reserve returns how many of limit tokens stay for the answer once Close has
// been fed. A reserve that takes more than half of the limit would leave no
// thought, so half is the most.
func (t *Thinking) reserve(limit int) int {
	return min(t.Reserve, max(0, limit-len(t.Close))/2)
}
