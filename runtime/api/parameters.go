package api

import (
	"encoding/json"
	"errors"
	"math"

	"slipway/runtime/engine"
	"slipway/runtime/model"
)

// maxStops bounds the stop strings: each costs a little at every token.
const maxStops = 16

// maxTop is how many candidates a token may be reported with, as at OpenAI.
const maxTop = 20

// parameters are what chat and text completions have in common.
type parameters struct {
	sampling  model.Sampling
	maxTokens int // 0: not said
	stop      []string
	ignoreEnd bool
	logprobs  bool
	stream    bool
	usage     bool // in the stream
	tokenIDs  bool // return_token_ids
}

func readParameters(f *fields, defaults model.Sampling) parameters {
	p := parameters{
		sampling:  readSampling(f, defaults),
		stop:      readStop(f),
		stream:    f.boolean("stream"),
		ignoreEnd: f.boolean("ignore_eos"),
		tokenIDs:  f.boolean("return_token_ids"),
	}
	p.maxTokens = f.integer("max_tokens", 0, 1, math.MaxInt32)
	p.maxTokens = f.integer("max_completion_tokens", p.maxTokens, 1, math.MaxInt32)
	options := f.object("stream_options")
	p.usage = options.boolean("include_usage")
	f.adopt(options)
	if n := f.integer("n", 1, 1, math.MaxInt32); n != 1 {
		f.fail("n", "has to be 1: send the request again for another answer")
	}
	return p
}

func readSampling(f *fields, s model.Sampling) model.Sampling {
	f.number("temperature", &s.Temperature, 0, 2)
	f.number("top_p", &s.TopP, 0, 1)
	f.number("min_p", &s.MinP, 0, 1)
	s.TopK = f.integer("top_k", s.TopK, -1, math.MaxInt32)
	s.TopK = max(s.TopK, 0) // -1 is another way to say all
	if f.has("top_p") && s.TopP == 0 {
		s.TopP, s.TopK = 1, 1 // only the likeliest token; to the model 0 means all
	}
	f.number("presence_penalty", &s.PresencePenalty, -2, 2)
	f.number("frequency_penalty", &s.FrequencyPenalty, -2, 2)
	f.number("repetition_penalty", &s.RepetitionPenalty, 0.01, 100)
	s.Seed = f.seed("seed")
	return s
}

// ReadDefaults returns how the fields of a generation_config.json say to sample,
// within the bounds of requests: as they say if do_sample is true, else greedily.
func ReadDefaults(values map[string]json.RawMessage) (model.Sampling, error) {
	used := map[string]json.RawMessage{"repetition_penalty": values["repetition_penalty"]}
	f := &fields{values: values}
	var s model.Sampling
	if f.boolean("do_sample") {
		s.Temperature = 1
		for _, name := range []string{"temperature", "top_k", "top_p", "min_p"} {
			used[name] = values[name]
		}
	}
	f.values = used
	s = readSampling(f, s)
	if f.err != nil {
		return model.Sampling{}, errors.New(f.err.Message)
	}
	return s, nil
}

func readStop(f *fields) []string {
	raw := f.raw("stop")
	if raw == nil {
		return nil
	}
	var stops []string
	var one string
	if json.Unmarshal(raw, &one) == nil {
		stops = []string{one}
	} else if json.Unmarshal(raw, &stops) != nil {
		f.fail("stop", "has to be a string or a list of strings")
	}
	if len(stops) > maxStops {
		f.fail("stop", "has to have at most %d strings", maxStops)
	}
	for _, stop := range stops {
		if stop == "" {
			f.fail("stop", "has to have no empty string")
		}
	}
	return stops
}

// logged returns the tokens whose log-probabilities are reported: those of the
// answer's text as at OpenAI, or next to token ids one for each id.
func (p parameters) logged(all collected, outcome engine.Outcome) []engine.Token {
	if p.tokenIDs {
		return outcome.Logprobs
	}
	return all.tokens
}

// request returns what the engine is asked for.
func (p parameters) request(m *Model, prompt []int32) engine.Request {
	return engine.Request{
		Prompt: prompt, MaxTokens: p.maxTokens, Sampling: p.sampling, IgnoreEnd: p.ignoreEnd,
		Stop: p.stop, Decoder: m.NewDecoder(),
	}
}

// usage counts tokens as OpenAI does.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func usageOf(outcome engine.Outcome) *usage {
	generated := len(outcome.Tokens)
	return &usage{outcome.PromptTokens, generated, outcome.PromptTokens + generated}
}
