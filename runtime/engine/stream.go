package engine

import (
	"context"
	"io"
	"sync"

	"slipway/runtime/model"
)

// Token is one generated token with what the model thought of it.
type Token struct {
	ID      int32
	Logprob float32 // natural logarithm
	Top     []model.TokenLogprob
}

// Piece is some text of an answer and the tokens that begin in it. Tokens
// without text of their own (end tokens, markers of a thought) come in no piece.
type Piece struct {
	Text    string
	Thought bool
	Tokens  []Token
}

// Outcome is how a sequence ended.
type Outcome struct {
	Reason       string // FinishStop or FinishLength; "" when it failed
	PromptTokens int
	Tokens       []int32 // everything generated, the end token and forced ones too
	Logprobs     []Token // the same with their log-probabilities
}

// Stream is what a request produces. The engine writes without ever waiting;
// one goroutine reads.
type Stream struct {
	signal chan struct{} // has room for one: something changed

	mutex   sync.Mutex
	pieces  []Piece
	ended   bool
	err     error
	outcome Outcome
}

func newStream() *Stream { return &Stream{signal: make(chan struct{}, 1)} }

// Next returns the pieces since the last call and waits for the first of them.
// After the last one it returns io.EOF, or why the request failed: ErrStep,
// ErrDraining, or the cause of the context's end.
func (s *Stream) Next(ctx context.Context) ([]Piece, error) {
	for {
		s.mutex.Lock()
		pieces, ended, err := s.pieces, s.ended, s.err
		s.pieces = nil
		s.mutex.Unlock()
		switch {
		case len(pieces) > 0:
			return pieces, nil
		case err != nil:
			return nil, err
		case ended:
			return nil, io.EOF
		}
		select {
		case <-s.signal:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Outcome returns how the sequence ended; only after Next returned io.EOF.
func (s *Stream) Outcome() Outcome {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.outcome
}

func (s *Stream) push(piece Piece) {
	if piece.Text == "" && len(piece.Tokens) == 0 {
		return
	}
	s.mutex.Lock()
	s.pieces = append(s.pieces, piece)
	s.mutex.Unlock()
	s.notify()
}

func (s *Stream) finish(outcome Outcome, err error) {
	s.mutex.Lock()
	s.outcome, s.err, s.ended = outcome, err, true
	s.mutex.Unlock()
	s.notify()
}

func (s *Stream) notify() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}
