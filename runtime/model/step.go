package model

import "slipway/runtime/kernels"

// Work is what one slot does in a step: tokens are appended to the slot's
// sequence (several in prefill, one in decoding), and if Sample is set the next
// token is drawn from the logits of the last one.
type Work struct {
	Slot   int     // 0 <= Slot < Limits.Slots; at most one Work a slot and step
	Tokens []int32 // at least one; ids below the vocabulary's size
	Sample bool
	Params Sampling
}

// Sampling says how the next token is drawn. The zero value is greedy: the
// largest logit, the lowest id where several are equal.
type Sampling struct {
	Temperature float32 // 0: greedy
	TopK        int     // 0: all
	TopP        float32 // 0 or 1: all
	MinP        float32 // 0: all
	Seed        uint64  // draws are Philox(Seed, position): the same wherever and with whomever the slot runs

	PresencePenalty   float32 // subtracted from logits of tokens that were generated in this slot
	FrequencyPenalty  float32 // times how often
	RepetitionPenalty float32 // 0 or 1: none; divides positive, multiplies negative logits of tokens in the sequence

	TopLogprobs int // how many of the largest log-probabilities to return, 0 to 20; the chosen one's comes always
}

// Result is the outcome of one Work whose Sample is set. Log-probabilities are
// natural logarithms over the whole vocabulary before temperature and cuts.
type Result struct {
	Token   int32
	Logprob float32
	Top     []TokenLogprob // largest first, lowest id first where equal
}

// TokenLogprob is one candidate.
type TokenLogprob struct {
	Token   int32
	Logprob float32
}

// Limits fix what is allocated when a model is loaded; nothing is allocated
// per step.
type Limits struct {
	Slots   int // sequences at a time
	Context int // tokens a sequence
	Prefill int // tokens that a step appends to one slot at most; 0: 256
	Tokens  int // ids from here on are never drawn or reported: padding rows of the vocabulary; 0: there are none

	Device *kernels.Device // where to compute; nil: on this machine's processors
}
