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
	program := kernels.NewProgram(pool, kernels.Shape{Rows: max(limits.Slots, limits.Prefill), Slots: limits.Slots, Context: limits.Context})
	m := &Model{program: program, limits: limits, endTokens: checkpoint.EndTokens()}
	b := &binder{checkpoint: checkpoint, config: checkpoint.Config, program: program, model: m}
	if err := b.run(bind); err != nil {
		return nil, err
	}
	for _, id := range m.endTokens {
		if int(id) >= m.vocabulary {
			return nil, fmt.Errorf("checkpoint %s: eos_token_id %d is not below vocab_size %d", checkpoint.Folder, id, m.vocabulary)
		}
	}
	m.allocate()
	return m, nil
}

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
