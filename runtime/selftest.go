package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"slipway/manifest"
	"slipway/runtime/engine"
	"slipway/runtime/model"
	"slipway/runtime/plainfile"
)

// selftest is a list of greedy continuations that are known. It may be empty:
// whoever changes a checkpoint knows nothing of it any more.
type selftest []knownAnswer

type knownAnswer struct {
	Prompt []int32 `json:"prompt"`
	Tokens []int32 `json:"tokens"`
}

func readSelftest(name string) (known selftest, err error) {
	if name == "" {
		return nil, nil
	}
	data, err := plainfile.Read(name, plainfile.Config)
	if err != nil {
		return nil, err
	}
	if err := manifest.DecodeStrict(data, &known); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	for i, answer := range known {
		if len(answer.Prompt) == 0 || len(answer.Tokens) == 0 {
			return nil, fmt.Errorf("read %s: answer %d: prompt or tokens are empty", name, i)
		}
	}
	return known, nil
}

// check asks again and compares.
func (s selftest) check(e *engine.Engine) error {
	for i, answer := range s {
		outcome, err := generate(e, answer.Prompt, len(answer.Tokens), 0)
		if err != nil {
			return fmt.Errorf("answer %d: %w", i, err)
		}
		tokens := outcome.Tokens
		if len(tokens) != len(answer.Tokens) {
			return fmt.Errorf("answer %d: the context has room for %d of %d tokens", i, len(tokens), len(answer.Tokens))
		}
		for k := range tokens {
			if tokens[k] != answer.Tokens[k] {
				return fmt.Errorf("answer %d: token %d is %d, want %d", i, k, tokens[k], answer.Tokens[k])
			}
		}
	}
	return nil
}

// generate continues a prompt by n tokens, chosen greedily, and reports the top
// candidates of each.
func generate(e *engine.Engine, prompt []int32, n, top int) (engine.Outcome, error) {
	ctx := context.Background()
	stream, err := e.Submit(ctx, engine.Request{Prompt: prompt, MaxTokens: n, IgnoreEnd: true, Sampling: model.Sampling{TopLogprobs: top}})
	if err != nil {
		return engine.Outcome{}, err
	}
	for {
		if _, err := stream.Next(ctx); errors.Is(err, io.EOF) {
			return stream.Outcome(), nil
		} else if err != nil {
			return engine.Outcome{}, err
		}
	}
}
