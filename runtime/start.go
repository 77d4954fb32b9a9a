package main

import (
	"fmt"
	"time"

	"slipway/runtime/api"
	"slipway/runtime/engine"
	"slipway/runtime/model"
	"slipway/runtime/weights"
)

// start does what comes before ready: tokenizer, weights, a first step, known
// answers. What it takes is written into one line.
func start(o options, server *api.Server, events *lineLog) (*api.Model, error) {
	began := time.Now()
	const stages = 4
	server.Progress("reading the tokenizer", 0, stages)
	text, err := readText(o.weights)
	if err != nil {
		return nil, err
	}
	known, err := readSelftest(o.selftest)
	if err != nil {
		return nil, err
	}
	server.Progress("reading the weights", 1, stages)
	loaded, err := loadModel(o, text.tokenizer.VocabularySize())
	if err != nil {
		return nil, err
	}
	defaults, err := readDefaults(o.weights)
	if err != nil {
		return nil, err
	}
	m := text.serve(o, engine.New(loaded, engine.Config{
		EndTokens: text.endTokens(loaded.EndTokens()), Queue: o.queue, Log: events.print,
	}))
	m.Defaults = defaults
	events.print(fmt.Sprintf("loaded %s in %.2fs: %d slots of %d tokens", o.weights, time.Since(began).Seconds(), loaded.Limits().Slots, loaded.Limits().Context))
	server.Progress("warming up", 2, stages)
	if _, err := generate(m.Engine, []int32{0, 0}, 2); err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	server.Progress("checking known answers", 3, stages)
	if err := known.check(m.Engine); err != nil {
		return nil, fmt.Errorf("%s: %w", o.selftest, err)
	}
	return m, nil
}

// loadModel opens the checkpoint and loads it within the options' limits. Ids
// that the tokenizer, which has that many, does not know are never drawn.
func loadModel(o options, tokens int) (*model.Model, error) {
	checkpoint, err := weights.Open(o.weights)
	if err != nil {
		return nil, err
	}
	defer checkpoint.Close()
	context := min(o.context, checkpoint.Config.IntOr("max_position_embeddings", o.context))
	if context < minContext {
		checkpoint.Config.Fail("max_position_embeddings is %d; the server needs %d", context, minContext)
	}
	m, err := model.Load(checkpoint, model.Limits{Slots: o.slots, Context: context, Tokens: tokens})
	if err == nil && tokens > m.Vocabulary() {
		return nil, fmt.Errorf("checkpoint %s: tokenizer.json has ids up to %d, config.json: vocab_size is %d", o.weights, tokens-1, m.Vocabulary())
	}
	return m, err
}
