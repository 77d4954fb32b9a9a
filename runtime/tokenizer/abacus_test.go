package tokenizer

import (
	"encoding/json"
	"slices"
	"testing"
)

// The abacus models were trained on these ids.
func TestAbacus(t *testing.T) {
	tokenizer, err := Load("testdata/abacus")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	readLines(t, "testdata/abacus/answers.ndjson", func(line []byte) {
		var v struct {
			Question, Answer string
			Prompt, Tokens   []int32
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		count++
		prompt := "<|im_start|>user\n" + v.Question + "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
		if got := tokenizer.Encode(prompt); !slices.Equal(got, v.Prompt) {
			t.Errorf("%q:\ngot  %v\nwant %v", v.Question, got, v.Prompt)
		}
		if got := tokenizer.Decode(v.Prompt, false); got != prompt {
			t.Errorf("decoded prompt %q, want %q", got, prompt)
		}
		if got := streamed(tokenizer, v.Tokens, true); got != v.Answer {
			t.Errorf("decoded answer %q, want %q", got, v.Answer)
		}
	})
	if count != 150 {
		t.Errorf("%d questions", count)
	}
}
