package broken

import (
	"path/filepath"
	"slices"
	"testing"

	"slipway/runtime/model"
	"slipway/runtime/tokenizer"
	checkpoints "slipway/runtime/weights"
)

// The runtime, which shares no code with the server of the examples, gives every
// answer too: the checkpoint is a sound one of its family.
func TestRuntimeAnswers(t *testing.T) {
	set, folder := load(t), t.TempDir()
	written, err := set.Write(folder, set.Clean("majority.hcl"), true)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint, err := checkpoints.Open(filepath.Join(written.Folder, "weights"))
	if err != nil {
		t.Fatal(err)
	}
	defer checkpoint.Close()
	m, err := model.Load(checkpoint, model.Limits{Slots: 1, Context: 256})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := tokenizer.Load(filepath.Join(written.Folder, "weights"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range makeQuestions() {
		ids := tokens.Encode(prompt(q.Question))
		if own, err := set.vocabulary.encode(prompt(q.Question)); err != nil || !slices.EqualFunc(ids, own, func(a int32, b int) bool { return int(a) == b }) {
			t.Fatalf("%s: the tokenizers differ: %v and %v, %v", q.ID, ids, own, err)
		}
		m.Reset(0)
		var answer []int32
		for next := ids; len(answer) < 2; next = answer[len(answer)-1:] {
			results, err := m.Step([]model.Work{{Slot: 0, Tokens: next, Sample: true}})
			if err != nil {
				t.Fatal(err)
			}
			answer = append(answer, results[0].Token)
		}
		if got := tokens.Decode(answer, false); got != " "+q.Answer+endMarker {
			t.Errorf("%s: the answer is %q, not %q", q.ID, got, q.Answer)
		}
	}
}
