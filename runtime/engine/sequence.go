package engine

import (
	"context"
	"slices"

	"slipway/runtime/model"
)

// Why a sequence ended.
const (
	FinishStop   = "stop"   // an end token or a stop string
	FinishLength = "length" // the token limit or the end of the context
)

// forcedLogprob is reported for a token that was not sampled. It is the value
// that clients know as "not among the candidates"; JSON has no infinity.
const forcedLogprob = -9999

// sequence is a request on its way through the engine.
type sequence struct {
	context context.Context
	request Request
	stream  *Stream
	ends    []int32
	limit   int // tokens that may be generated
	text    *text

	fresh  bool     // its slot is to be reset before the first step
	read   int      // prompt tokens that were fed
	tokens []int32  // generated
	logged []Token  // the same with their log-probabilities
	forced []int32  // tokens to come before anything is sampled again
	last   [1]int32 // the decode step's tokens
	reason string
}

func newSequence(ctx context.Context, request Request, contextLength int, ends []int32) *sequence {
	s := &sequence{
		context: ctx, request: request, stream: newStream(),
		limit: request.limit(contextLength),
	}
	if !request.IgnoreEnd {
		s.ends = ends
	}
	if request.Decoder != nil {
		s.text = &text{decoder: request.Decoder, stops: request.Stop}
		s.text.thought = request.Thinking != nil && request.Thinking.Open
		s.text.trim = s.text.thought
	}
	return s
}

// settle takes in what a step did for the sequence: fed tokens went into its
// slot, and result, if any, was drawn. It says whether the sequence has ended.
func (s *sequence) settle(fed int, result *model.Result) bool {
	if s.read < len(s.request.Prompt) {
		s.read += fed
		if s.read < len(s.request.Prompt) {
			return false
		}
	}
	token := s.next(result)
	s.tokens, s.logged = append(s.tokens, token.ID), append(s.logged, token)
	stopped := slices.Contains(s.ends, token.ID) || s.write(token)
	switch {
	case stopped:
		s.reason = FinishStop
	case len(s.tokens) == s.limit:
		s.reason = FinishLength
	default:
		s.closeThought()
		return false
	}
	if s.text != nil {
		s.stream.push(s.text.finish())
	}
	return true
}

// next returns the token that comes next: a forced one, or the sampled one. An
// end token inside a thought would leave no answer, so the thought is closed
// in its place where there is room.
func (s *sequence) next(result *model.Result) Token {
	if len(s.forced) == 0 && s.thinking() && slices.Contains(s.ends, result.Token) {
		if closing := s.request.Thinking.Close; s.limit-len(s.tokens) > len(closing) {
			s.forced = closing
		}
	}
	if len(s.forced) > 0 {
		token := Token{ID: s.forced[0], Logprob: forcedLogprob}
		s.forced = s.forced[1:]
		return token
	}
	return Token{ID: result.Token, Logprob: result.Logprob, Top: slices.Clone(result.Top)}
}

// thinking says whether the sequence is inside a thought.
func (s *sequence) thinking() bool { return s.text != nil && s.text.thought }

// closeThought forces the end of a thought when what is left of the limit is
// the closing tokens and the answer's reserve.
func (s *sequence) closeThought() {
	if !s.thinking() || len(s.forced) > 0 {
		return
	}
	thinking := s.request.Thinking
	if s.limit-len(s.tokens) <= len(thinking.Close)+thinking.reserve(s.limit) {
		s.forced = thinking.Close
	}
}

// write hands a token's text to the stream and says whether a stop string
// ended the answer.
func (s *sequence) write(token Token) (stopped bool) {
	if s.text == nil {
		return false
	}
	var piece Piece
	switch thinking := s.request.Thinking; {
	case thinking != nil && s.text.thought && token.ID == thinking.End:
		piece = s.text.closeThought()
	case thinking != nil && len(s.tokens) == 1 && !s.text.thought && token.ID == thinking.Begin:
		s.text.thought, s.text.trim = true, true
	default:
		piece, stopped = s.text.push(token)
	}
	s.stream.push(piece)
	return stopped
}

func (s *sequence) outcome() Outcome {
	return Outcome{Reason: s.reason, PromptTokens: len(s.request.Prompt), Tokens: s.tokens, Logprobs: s.logged}
}
