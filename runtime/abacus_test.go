package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// readLines decodes a file of one JSON value a line.
func readLines[T any](t *testing.T, name string) (values []T) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		var value T
		if err := json.Unmarshal(scanner.Bytes(), &value); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		values = append(values, value)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}

func readJSON(t *testing.T, name string, target any) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, target); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// each calls work for 0 to count-1, some at a time.
func each(count, atATime int, work func(i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range atATime {
		group.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	group.Wait()
}

// The public questions, asked over HTTP, get the reference's tokens one for
// one: all of them 16 at a time, some also alone and 40 at a time on 3 slots.
func TestAbacusAnswers(t *testing.T) {
	questions := readLines[struct{ ID, Question, Answer string }](t, "../examples/abacus/public.jsonl")
	references := readLines[struct {
		ID     string
		Prompt []int32
		Answer string
		Tokens []int32
	}](t, ternary+"/answers-public.jsonl")
	var accuracy struct{ Questions, Exact int }
	readJSON(t, ternary+"/accuracy-public.json", &accuracy)
	if len(questions) != 150 || len(references) != 150 || accuracy.Questions != 150 {
		t.Fatalf("%d questions, %d references, %d in the accuracy", len(questions), len(references), accuracy.Questions)
	}
	for _, tc := range []struct {
		slots, atATime, count int
	}{{16, 16, 150}, {1, 1, 10}, {3, 40, 60}} {
		if testing.Short() {
			tc.count = min(tc.count, 24)
		}
		t.Run(fmt.Sprintf("%d at a time on %d slots", tc.atATime, tc.slots), func(t *testing.T) {
			p := launch(t, "--weights", ternary, "--slots", fmt.Sprint(tc.slots))
			equal, exact := make([]bool, tc.count), make([]bool, tc.count)
			each(tc.count, tc.atATime, func(i int) {
				answer := p.chat(t, questions[i].Question)
				equal[i] = slices.Equal(answer.tokens, references[i].Tokens) && slices.Equal(answer.prompt, references[i].Prompt)
				exact[i] = answer.content == questions[i].Answer
				if !equal[i] {
					t.Errorf("%s: prompt %v, tokens %v; want %v, %v", questions[i].ID, answer.prompt, answer.tokens, references[i].Prompt, references[i].Tokens)
				}
			})
			t.Logf("%d of %d token for token, %d exact", count(equal), tc.count, count(exact))
			if tc.count == accuracy.Questions && count(exact) != accuracy.Exact {
				t.Errorf("%d exact, want %d", count(exact), accuracy.Exact)
			}
		})
	}
}

// Drawn at random, an answer depends on its seed and not on its neighbours.
func TestSampledAnswers(t *testing.T) {
	p := launch(t, "--weights", ternary, "--slots", "8")
	const requests = 24
	ask := func(i int) string {
		var answer struct{ Choices []struct{ Text string } }
		if !p.post(t, "/v1/completions", map[string]any{
			"prompt": "1 2 3", "temperature": 2, "seed": i, "max_tokens": 24, "ignore_eos": true, "presence_penalty": 0.5,
		}, &answer) {
			return ""
		}
		return answer.Choices[0].Text
	}
	var alone, together [requests]string
	for i := range requests {
		alone[i] = ask(i)
	}
	each(requests, requests, func(i int) { together[i] = ask(i) })
	if alone != together {
		t.Errorf("alone %q\ntogether %q", alone, together)
	}
	if alone[0] == alone[1] {
		t.Errorf("two seeds, one answer: %q", alone[0])
	}
}

// The model has rows for ids that its tokenizer does not; at the highest
// temperature none comes out, also where what was said before is penalised.
func TestPaddingNeverAnswers(t *testing.T) {
	text, err := readText(ternary)
	if err != nil {
		t.Fatal(err)
	}
	size := text.tokenizer.VocabularySize()
	loaded, err := loadModel(options{weights: ternary, slots: 1, context: 64}, size, nil)
	if err != nil || loaded.Vocabulary() <= size {
		t.Fatalf("%d ids of %d: %v", size, loaded.Vocabulary(), err)
	}
	p := launch(t, "--weights", ternary, "--slots", "8")
	each(8, 8, func(i int) {
		var answer struct {
			Choices []struct {
				TokenIDs []int32 `json:"token_ids"`
			}
		}
		p.post(t, "/v1/completions", map[string]any{
			"prompt": "1 2 3", "temperature": 2, "repetition_penalty": 100, "seed": i, "max_tokens": 60, "ignore_eos": true, "return_token_ids": true,
		}, &answer)
		if len(answer.Choices) != 1 || len(answer.Choices[0].TokenIDs) != 60 || int(slices.Max(answer.Choices[0].TokenIDs)) >= size {
			t.Errorf("seed %d: %+v", i, answer)
		}
	})
}

func count(flags []bool) (n int) {
	for _, flag := range flags {
		if flag {
			n++
		}
	}
	return n
}

type chatResult struct {
	content        string
	prompt, tokens []int32
}

func (p *program) chat(t *testing.T, question string) chatResult {
	t.Helper()
	var answer struct {
		Choices []struct {
			Message  struct{ Content string }
			TokenIDs []int32 `json:"token_ids"`
		}
		Prompt []int32 `json:"prompt_token_ids"`
	}
	if !p.post(t, "/v1/chat/completions", map[string]any{
		"model": "any", "messages": []any{map[string]string{"role": "user", "content": question}},
		"temperature": 0, "max_tokens": 256, "return_token_ids": true,
	}, &answer) {
		return chatResult{}
	}
	return chatResult{answer.Choices[0].Message.Content, answer.Prompt, answer.Choices[0].TokenIDs}
}

// The drafter's mean acceptance length is the recorded one.
func TestAbacusTau(t *testing.T) {
	continuations := readLines[struct{ Prompt, Continuation []int32 }](t, "../examples/abacus/drafter/continuations-public.jsonl")
	var want struct {
		Tokens, Steps int
		Tau           float64
		Draft         int `json:"draft_tokens"`
	}
	readJSON(t, "../examples/abacus/drafter/tau-public.json", &want)
	if testing.Short() {
		continuations = continuations[:8]
	}
	p := launch(t, "--weights", "../examples/abacus/drafter", "--slots", "32")
	tokens, steps := make([]int, len(continuations)), make([]int, len(continuations))
	each(len(continuations), 32, func(i int) {
		context, rest := slices.Clone(continuations[i].Prompt), continuations[i].Continuation
		for len(rest) > 0 {
			draft := p.draft(t, context)
			if len(draft) != want.Draft {
				t.Errorf("a draft of %d tokens", len(draft))
				return
			}
			accepted := 0
			for accepted < min(len(draft), len(rest)) && draft[accepted] == rest[accepted] {
				accepted++
			}
			step := min(accepted+1, len(rest)) // and one token of the target
			context, rest = append(context, rest[:step]...), rest[step:]
			tokens[i] += step
			steps[i]++
		}
	})
	gotTokens, gotSteps := sum(tokens), sum(steps)
	tau := float64(gotTokens) / float64(gotSteps)
	t.Logf("%d tokens in %d steps: tau %.2f", gotTokens, gotSteps, tau)
	if testing.Short() {
		return // the record is of all continuations
	}
	if gotTokens != want.Tokens || gotSteps != want.Steps || tau != want.Tau {
		t.Errorf("want %d tokens in %d steps: tau %.2f", want.Tokens, want.Steps, want.Tau)
	}
}

func sum(values []int) (total int) {
	for _, value := range values {
		total += value
	}
	return total
}

func (p *program) draft(t *testing.T, context []int32) []int32 {
	t.Helper()
	var answer struct{ Draft []int32 }
	p.post(t, "/draft", map[string]any{"tokens": context}, &answer)
	return answer.Draft
}
