package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"

	"slipway/runtime/engine"
)

// What the known answers are made of.
const (
	knownTokens = 16 // of an answer, at most
	// knownMargin is how much likelier, in natural logarithms, a token must be
	// than the next one to be known: below it, other hardware may choose the other.
	knownMargin = 0.05
	// knownContext holds every prompt with its answer.
	knownContext = 256
)

// knownLengths are those of the prompts: one token, some, and more than the 64
// that a chunk of Gated DeltaNet has.
var knownLengths = []int{1, 7, 30, 100}

// writeSelftest writes the known answers of a checkpoint, as this machine's
// processors compute them: the same bytes on every machine. The list is empty
// where the model prefers no token clearly.
func writeSelftest(o options) error {
	text, err := readText(o.weights)
	if err != nil {
		return err
	}
	o.slots, o.context = 1, knownContext
	loaded, err := loadModel(o, text.tokenizer.VocabularySize(), nil)
	if err != nil {
		return err
	}
	e := engine.New(engine.Config{}, loaded)
	known, err := learn(e, min(text.tokenizer.VocabularySize(), loaded.Vocabulary()))
	if err != nil {
		return fmt.Errorf("ask %s: %w", o.weights, err)
	}
	data, err := known.encode()
	if err != nil {
		return err
	}
	return os.WriteFile(o.writeSelftest, data, 0o644)
}

// learn asks the model of that many ids.
func learn(e *engine.Engine, ids int) (selftest, error) {
	known := selftest{}
	for i, length := range knownLengths {
		if length+knownTokens > e.Context() {
			continue
		}
		prompt := knownPrompt(i, length, ids)
		outcome, err := generate(e, prompt, knownTokens, 2)
		if err != nil {
			return nil, err
		}
		if clear := clearTokens(outcome.Logprobs); clear > 0 {
			known = append(known, knownAnswer{prompt, outcome.Tokens[:clear]})
		}
	}
	return known, nil
}

// knownPrompt spreads a prompt over the ids (multiplicative hashing by the golden
// ratio, Knuth, The Art of Computer Programming 3, section 6.4).
func knownPrompt(number, length, ids int) []int32 {
	prompt := make([]int32, length)
	for i := range prompt {
		hash := uint32(1000*number+i+1) * 2654435769
		prompt[i] = int32(uint64(hash) * uint64(ids) >> 32)
	}
	return prompt
}

// clearTokens counts the tokens before the first that another comes close to.
func clearTokens(tokens []engine.Token) int {
	for i, token := range tokens {
		if len(token.Top) < 2 || !(token.Top[0].Logprob-token.Top[1].Logprob > knownMargin) || math.IsInf(float64(token.Top[0].Logprob), 0) {
			return i
		}
	}
	return len(tokens)
}

// encode writes one answer a line.
func (s selftest) encode() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("[")
	for i, answer := range s {
		line, err := json.Marshal(answer)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n ")
		out.Write(line)
	}
	if len(s) > 0 {
		out.WriteByte('\n')
	}
	out.WriteString("]\n")
	return out.Bytes(), nil
}

// errWritesOnCPU refuses known answers from other hardware than the reference.
var errWritesOnCPU = errors.New("--write-selftest computes on the CPU: leave --device out")
