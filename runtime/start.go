package main

import (
	"context"
	"fmt"
	"time"

	"slipway/runtime/api"
	"slipway/runtime/engine"
	"slipway/runtime/kernels"
	"slipway/runtime/model"
	"slipway/runtime/weights"
)

// start does what comes before ready: tokenizer, weights, a first step, known
// answers. What it takes is written into one line.
func (p *process) start(o options, server *api.Server, events *lineLog) (*api.Model, error) {
	began := time.Now()
	stages := 2 + int64(len(o.devices))
	server.Progress("reading the tokenizer", 0, stages)
	opening := openDevices(o)
	text, err := readText(o.weights)
	if err != nil {
		return nil, err
	}
	known, err := readSelftest(o.selftest)
	if err != nil {
		return nil, err
	}
	devices, err := opening()
	if err != nil {
		return nil, err
	}
	server.Progress("reading the weights", 1, stages)
	loaded, err := loadModels(o, text.tokenizer.VocabularySize(), devices)
	if err != nil {
		return nil, err
	}
	defaults, err := readDefaults(o.weights)
	if err != nil {
		return nil, err
	}
	for _, device := range devices {
		events.print("computing on " + deviceName(device))
	}
	limits := loaded[0].Limits()
	events.print(fmt.Sprintf("loaded %s in %.2fs: %d slots of %d tokens", o.weights, time.Since(began).Seconds(), len(loaded)*limits.Slots, limits.Context))
	config := engine.Config{EndTokens: text.endTokens(loaded[0].EndTokens()), Queue: o.queue, Log: events.print, Lost: p.lost}
	if o.device == "cuda" {
		config.StepLimit = stepLimit
	}
	steppers := p.steppers(loaded)
	for i, stepper := range steppers {
		server.Progress("warming up and checking known answers", 2+int64(i), stages)
		if err := alone(stepper, config, func(e *engine.Engine) error { return prove(e, o.selftest, known) }); err != nil {
			return nil, err
		}
	}
	m := text.serve(o, engine.New(config, steppers...))
	m.Defaults = defaults
	return m, nil
}

// stepLimit is how long a step on a GPU may take: the longest ones take a second.
const stepLimit = 60 * time.Second

// steppers returns the models as the engine takes them.
func (p *process) steppers(models []*model.Model) []engine.Stepper {
	var steppers []engine.Stepper
	for _, m := range models {
		var stepper engine.Stepper = m
		if p.wrap != nil {
			stepper = p.wrap(m)
		}
		steppers = append(steppers, stepper)
	}
	return steppers
}

// alone runs use on an engine of one copy of the model, which is idle afterwards.
func alone(stepper engine.Stepper, config engine.Config, use func(*engine.Engine) error) error {
	e := engine.New(config, stepper)
	if err := use(e); err != nil {
		return err // of a process that ends
	}
	return e.Drain(context.Background())
}

// prove touches every kernel once and has the known answers reproduced.
func prove(e *engine.Engine, name string, known selftest) error {
	if _, err := generate(e, []int32{0, 0}, 2, 0); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	if err := known.check(e); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// loadModels loads the checkpoint once for each device, one after the other: a
// device that is named twice is asked for the memory that the first copy left.
func loadModels(o options, tokens int, devices []*kernels.Device) ([]*model.Model, error) {
	var loaded []*model.Model
	for _, device := range devices {
		m, err := loadModel(o, tokens, device)
		if err != nil {
			return nil, err
		}
		loaded = append(loaded, m)
	}
	return loaded, nil
}

// loadModel opens the checkpoint and loads it within the options' limits. Ids
// that the tokenizer, which has that many, does not know are never drawn.
func loadModel(o options, tokens int, device *kernels.Device) (*model.Model, error) {
	checkpoint, err := weights.Open(o.weights)
	if err != nil {
		return nil, err
	}
	defer checkpoint.Close()
	context := min(o.context, checkpoint.Config.IntOr("max_position_embeddings", o.context))
	if context < minContext {
		checkpoint.Config.Fail("max_position_embeddings is %d; the server needs %d", context, minContext)
	}
	m, err := model.Load(checkpoint, model.Limits{Slots: o.slots, Context: context, Tokens: tokens, Device: device})
	if err == nil && tokens > m.Vocabulary() {
		return nil, fmt.Errorf("checkpoint %s: tokenizer.json has ids up to %d, config.json: vocab_size is %d", o.weights, tokens-1, m.Vocabulary())
	}
	return m, err
}
