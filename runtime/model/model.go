// Package model turns a checkpoint into a program of kernels and steps it.
//
// A family (qwen3.go, qwen3_5.go) reads the dimensions from config.json, takes
// every tensor of the checkpoint, and binds the sequence of operations. A
// [Model] holds sequences in slots: [Model.Step] appends tokens to some of them
// and draws tokens where asked. Everything is allocated by [Load]; a step
// allocates nothing. What a step computes for a row does not depend on the
// slot, on its neighbours or on the order of work: with the same tokens before
// it, cut in the same places, a row's logits are bitwise the same. For attention
// the cuts do not matter either; Gated DeltaNet computes several tokens of one
// slot in chunks that end at multiples of 64, and a single one by its
// recurrence, which agree to rounding.
package model

import (
	"errors"
	"fmt"
	"slices"

	"slipway/runtime/kernels"
	"slipway/runtime/weights"
)

// Model is a loaded model. It is not safe for concurrent use.
type Model struct {
	program    *kernels.Program
	limits     Limits
	vocabulary int
	endTokens  []int32

	slots     []slot
	freePages []int32
	passed    []Work // of the current pass
	results   []Result
	tops      []TokenLogprob // MaxTopLogprobs for each result

	deltas []*kernels.DeltaState // by layer with one, for tests of state
	// observe, if set by a test, sees a layer's output for all rows of a pass:
	// 0 the embedding, layer+1 after each layer, the last one after the final
	// norm; -1 the logits of the rows drawn.
	observe func(layer int, values *kernels.Activation)
}

// slot is one sequence.
type slot struct {
	tokens    []int32 // capacity Limits.Context
	pages     int     // of the program's table, in use
	generated int     // index of the first generated token, -1 before any was drawn
	result    Result  // of the last draw
}

// DefaultPrefill is the value of Limits.Prefill where it is 0.
const DefaultPrefill = 256

// family binds an architecture.
type family func(*binder)

var families = map[string]family{
	"Qwen3ForCausalLM":                bindQwen3,
	"Qwen3_5ForCausalLM":              bindQwen35,
	"Qwen3_5ForConditionalGeneration": bindQwen35,
}

// Load reads the weights of an open checkpoint and allocates everything that
// limits call for. The checkpoint can be closed afterwards.
func Load(checkpoint *weights.Checkpoint, limits Limits) (*Model, error) {
	return load(checkpoint, limits, kernels.SharedPool())
}

func load(checkpoint *weights.Checkpoint, limits Limits, pool *kernels.Pool) (*Model, error) {
	if limits.Prefill == 0 {
		limits.Prefill = DefaultPrefill
	}
	if limits.Slots < 1 || limits.Context < 1 || limits.Prefill < 1 {
		return nil, fmt.Errorf("load model: limits of %d slots, %d tokens, %d tokens in prefill must be positive", limits.Slots, limits.Context, limits.Prefill)
	}
	if limits.Tokens < 0 {
		return nil, fmt.Errorf("load model: a limit of %d token ids is negative", limits.Tokens)
	}
	limits.Prefill = min(limits.Prefill, limits.Context)
	architecture := checkpoint.Config.Architecture()
	bind, ok := families[architecture]
	if !ok {
		return nil, fmt.Errorf("checkpoint %s: config.json: unknown architecture %q", checkpoint.Folder, architecture)
	}
	m := &Model{limits: limits, endTokens: checkpoint.EndTokens()}
	if limits.Device != nil {
		if err := m.measure(checkpoint, bind); err != nil {
			return nil, err
		}
		m.program = limits.Device.NewProgram(m.shape())
	} else {
		m.program = kernels.NewProgram(pool, m.shape())
	}
	bound := false
	defer func() {
		if !bound {
			_ = m.program.Close() // the first error is the one to tell
		}
	}()
	if err := m.bind(checkpoint, bind, false); err != nil {
		return nil, err
	}
	bound = true
	m.allocate()
	return m, nil
}

func (m *Model) shape() kernels.Shape {
	return kernels.Shape{Rows: max(m.limits.Slots, m.limits.Prefill), Slots: m.limits.Slots, Context: m.limits.Context}
}

func (m *Model) bind(checkpoint *weights.Checkpoint, bind family, measuring bool) error {
	m.deltas = nil
	b := &binder{checkpoint: checkpoint, config: checkpoint.Config, program: m.program, model: m, measuring: measuring}
	if err := b.run(bind); err != nil {
		return err
	}
	for _, id := range m.endTokens {
		if int(id) >= m.vocabulary {
			return fmt.Errorf("checkpoint %s: eos_token_id %d is not below vocab_size %d", checkpoint.Folder, id, m.vocabulary)
		}
	}
	err := m.program.Finish()
	var stored *kernels.StoredError
	switch {
	case errors.As(err, &stored):
		return fmt.Errorf("checkpoint %s: %w", checkpoint.Folder, stored.Err)
	case err != nil:
		return fmt.Errorf("load model: %w", err)
	}
	return nil
}

// measure refuses limits that the device has no memory for, before anything is
// read, and says what would fit.
func (m *Model) measure(checkpoint *weights.Checkpoint, bind family) error {
	device := m.limits.Device
	m.program = device.MeasureProgram(m.shape())
	if err := m.bind(checkpoint, bind, true); err != nil {
		return err
	}
	free, _, err := device.Memory()
	if err != nil {
		return fmt.Errorf("load model: %w", err)
	}
	all, perSlot := m.program.Needs()
	all += graphBytes
	if all <= free {
		return nil
	}
	gigabytes := func(bytes int64) string { return fmt.Sprintf("%.2f GB", float64(bytes)/1e9) }
	sequences := perSlot * int64(m.limits.Slots)
	text := fmt.Sprintf("load model: %s are needed and %s of %s's memory are free: %s for weights and work, %s for each of %d sequences of %d tokens",
		gigabytes(all), gigabytes(free), device.Name(), gigabytes(all-sequences), gigabytes(perSlot), m.limits.Slots, m.limits.Context)
	if fits := (free - all + sequences) / max(perSlot, 1); fits > 0 {
		return fmt.Errorf("%s; %d would fit", text, fits)
	}
	return errors.New(text)
}

// graphBytes is left for what the driver allocates for graphs.
const graphBytes = 256 << 20

// Close gives a device's memory back.
func (m *Model) Close() error { return m.program.Close() }

func (m *Model) allocate() {
	pages := m.limits.Slots * m.program.PagesPerSlot()
	m.freePages = make([]int32, 0, pages)
	for page := pages - 1; page >= 0; page-- {
		m.freePages = append(m.freePages, int32(page))
	}
	m.slots = make([]slot, m.limits.Slots)
	for i := range m.slots {
		m.slots[i] = slot{tokens: make([]int32, 0, m.limits.Context), generated: -1}
	}
	m.passed = make([]Work, 0, m.limits.Slots)
	m.results = make([]Result, m.limits.Slots)
	m.tops = make([]TokenLogprob, m.limits.Slots*kernels.MaxTopLogprobs)
}

// Vocabulary returns the number of token ids.
func (m *Model) Vocabulary() int { return m.vocabulary }

// drawable returns how many of a vocabulary's ids may be drawn.
func (m *Model) drawable(vocabulary int) int {
	if m.limits.Tokens == 0 {
		return vocabulary
	}
	return min(m.limits.Tokens, vocabulary)
}

// Limits returns what the model was loaded with, defaults filled in.
func (m *Model) Limits() Limits { return m.limits }

// EndTokens returns the ids that end an answer according to the checkpoint.
func (m *Model) EndTokens() []int32 { return slices.Clone(m.endTokens) }

// Length returns how many tokens a slot's sequence has.
func (m *Model) Length(slot int) int { return len(m.slots[slot].tokens) }

// Reset forgets a slot's sequence.
func (m *Model) Reset(slot int) {
	s := &m.slots[slot]
	table := m.table(slot)
	for s.pages > 0 {
		s.pages--
		m.freePages = append(m.freePages, table[s.pages])
	}
	s.tokens, s.generated = s.tokens[:0], -1
}

// table returns a slot's row of the page table.
func (m *Model) table(slot int) []int32 {
	pages := m.program.PagesPerSlot()
	return m.program.Batch.Pages[slot*pages:][:pages]
}
