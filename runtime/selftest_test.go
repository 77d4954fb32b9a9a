package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"slipway/runtime/engine"
	"slipway/runtime/model"
)

// What --write-selftest writes is the same each time, has what it promises, and is
// what the server accepts; a changed token is not.
func TestWriteSelftest(t *testing.T) {
	for _, weights := range []string{ternary, "../examples/abacus/drafter"} {
		folder := t.TempDir()
		var written [2][]byte
		for i := range written {
			name := filepath.Join(folder, "selftest.json")
			var stderr bytes.Buffer
			if code := run([]string{"--weights", weights, "--write-selftest", name}, nil, &stderr, nil); code != exitDone || stderr.Len() > 0 {
				t.Fatalf("exit code %d: %s", code, &stderr)
			}
			var err error
			if written[i], err = os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(written[0], written[1]) {
			t.Errorf("%s: two runs differ", weights)
		}
		name := filepath.Join(folder, "selftest.json")
		known, err := readSelftest(name)
		if err != nil {
			t.Fatal(err)
		}
		longest := 0
		for _, answer := range known {
			longest = max(longest, len(answer.Prompt))
			if len(answer.Tokens) == 0 || len(answer.Tokens) > knownTokens {
				t.Errorf("%s: an answer of %d tokens", weights, len(answer.Tokens))
			}
		}
		if len(known) != len(knownLengths) || longest <= 64 {
			t.Errorf("%s: %d answers, the longest prompt has %d tokens", weights, len(known), longest)
		}
		launch(t, "--weights", weights, "--selftest", name)
	}
}

func TestWriteSelftestFails(t *testing.T) {
	name := filepath.Join(t.TempDir(), "selftest.json")
	var stderr bytes.Buffer
	if code := run([]string{"--weights", "nowhere", "--write-selftest", name}, nil, &stderr, nil); code != exitCannotRun || stderr.Len() == 0 {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("something was written")
	}
}

func TestClearTokens(t *testing.T) {
	token := func(logprobs ...float32) engine.Token {
		var top []model.TokenLogprob
		for _, l := range logprobs {
			top = append(top, model.TokenLogprob{Logprob: l})
		}
		return engine.Token{Top: top}
	}
	clear, close := token(-0.1, -2), token(-0.7, -0.74)
	for _, tc := range []struct {
		tokens []engine.Token
		want   int
	}{
		{nil, 0},
		{[]engine.Token{clear, clear}, 2},
		{[]engine.Token{clear, close, clear}, 1},
		{[]engine.Token{close}, 0},
		{[]engine.Token{clear, token(-0.1)}, 1},
	} {
		if got := clearTokens(tc.tokens); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.tokens, got, tc.want)
		}
	}
}

func TestEncodeSelftest(t *testing.T) {
	for want, known := range map[string]selftest{
		"[]\n": {},
		"[\n {\"prompt\":[1,2],\"tokens\":[3]},\n {\"prompt\":[4],\"tokens\":[5]}\n]\n": {{[]int32{1, 2}, []int32{3}}, {[]int32{4}, []int32{5}}},
	} {
		if got, err := known.encode(); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

// Prompts reach both ends of a vocabulary, whatever its size.
func TestKnownPrompt(t *testing.T) {
	for _, ids := range []int{2, 512, 248320} {
		low, high := int32(ids), int32(0)
		for number, length := range knownLengths {
			for _, id := range knownPrompt(number, length, ids) {
				low, high = min(low, id), max(high, id)
			}
		}
		if low < 0 || int(low) > ids/20 || int(high) >= ids || int(high) < ids-1-ids/20 {
			t.Errorf("ids %d to %d of %d", low, high, ids)
		}
	}
}
