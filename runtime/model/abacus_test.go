package model

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const abacus = "../../examples/abacus"

// question is a line of answers-public.jsonl: token ids of a prompt and of the
// float32 reference's greedy answer, the end token last.
type question struct {
	ID     string
	Prompt []int32
	Tokens []int32
}

func questions(t testing.TB, name string) []question {
	file, err := os.Open(filepath.Join(abacus, name, "answers-public.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var list []question
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		var q question
		if err := json.Unmarshal(scanner.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		list = append(list, q)
	}
	if len(list) != 150 {
		t.Fatalf("%d questions", len(list))
	}
	return list
}

// answer decodes greedily, all questions of a batch at once.
func answer(t testing.TB, m *Model, batch []question) [][]int32 {
	answers := make([][]int32, len(batch))
	var work []Work
	for slot, q := range batch {
		m.Reset(slot)
		work = append(work, Work{Slot: slot, Tokens: q.Prompt, Sample: true})
	}
	for len(work) > 0 {
		var next []Work
		for i, result := range step(t, m, work...) {
			slot := work[i].Slot
			answers[slot] = append(answers[slot], result.Token)
			if !slices.Contains(m.endTokens, result.Token) && len(answers[slot]) < 64 {
				next = append(next, Work{Slot: slot, Tokens: answers[slot][len(answers[slot])-1:], Sample: true})
			}
		}
		work = next
	}
	return answers
}

func TestAbacusAnswers(t *testing.T) {
	for _, name := range []string{"ternary", "drafter"} {
		t.Run(name, func(t *testing.T) {
			m := loadFolder(t, filepath.Join(abacus, name), Limits{Slots: 16, Context: 256})
			if ends := m.EndTokens(); !slices.Equal(ends, []int32{441, 443}) {
				t.Errorf("end tokens %v", ends)
			}
			for batch := range slices.Chunk(questions(t, name), 16) {
				for i, got := range answer(t, m, batch) {
					if !slices.Equal(got, batch[i].Tokens) {
						t.Errorf("%s: answer %v, recorded %v", batch[i].ID, got, batch[i].Tokens)
					}
				}
			}
		})
	}
}

func BenchmarkAbacus(b *testing.B) {
	for _, name := range []string{"ternary", "drafter"} {
		m := loadFolder(b, filepath.Join(abacus, name), Limits{Slots: 16, Context: 512})
		prompt := make([]int32, 0, 256)
		for len(prompt) < 256 {
			prompt = append(prompt, int32(len(prompt)*7%400))
		}
		for _, slots := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/decode-%d", name, slots), func(b *testing.B) {
				var work []Work
				for slot := range slots {
					work = append(work, Work{Slot: slot, Tokens: prompt[slot : slot+1], Sample: true})
				}
				for range b.N {
					for slot := range slots {
						if m.Length(slot) == m.limits.Context {
							m.Reset(slot)
						}
					}
					step(b, m, work...)
				}
				b.ReportMetric(float64(b.N*slots)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
		b.Run(name+"/prefill-256", func(b *testing.B) {
			for range b.N {
				m.Reset(0)
				step(b, m, Work{Slot: 0, Tokens: prompt})
			}
			b.ReportMetric(float64(b.N*len(prompt))/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
