package ask

import (
	"strings"
	"testing"
)

// Continuations that nothing can be measured along are refused with their line;
// prompts to draft after need none.
func TestReadContinuationsRefuses(t *testing.T) {
	const sound = `{"id":"1","prompt":[1,2],"continuation":[3,511]}` + "\n\n"
	for line, fault := range map[string]string{
		`{"id":"2","prompt":[1]}`:                        "line 3: it has no continuation, which drafts are measured against",
		`{"id":"2","prompt":[1],"continuation":[]}`:      "line 3: it has no continuation",
		`{"id":"2","prompt":[],"continuation":[1]}`:      "line 3: it has no id in its prompt",
		`{"id":"2","prompt":[1],"continuation":[-1]}`:    "line 3: id -1 is below 0",
		`{"id":"2","prompt":[512],"continuation":[1]}`:   "line 3: id 512 is beyond vocab_size 512 of config.json",
		`{"id":"2","prompt":[1],"continuation":[1,600]}`: "line 3: id 600 is beyond vocab_size 512 of config.json",
		`{"id":"2","prompt":[1],"draft":[1]}`:            "line 3",
	} {
		if _, err := ReadContinuations([]byte(sound+line), 512); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: error %v, want %q", line, err, fault)
		}
	}
	if all, err := ReadContinuations([]byte(sound), 512); err != nil || len(all) != 1 {
		t.Errorf("%d, %v", len(all), err)
	}
	if all, err := ReadContinuations([]byte(`{"id":"1","prompt":[1],"continuation":[2000000000]}`), 0); err != nil || len(all) != 1 {
		t.Errorf("without a vocabulary: %d, %v", len(all), err)
	}
	if all, err := ReadPrompts([]byte(sound + `{"id":"2","prompt":[1]}`)); err != nil || len(all) != 2 {
		t.Errorf("prompts: %d, %v", len(all), err)
	}
	if _, err := ReadPrompts([]byte(`{"id":"2"}`)); err == nil || !strings.Contains(err.Error(), "line 1: it has no id in its prompt") {
		t.Errorf("no prompt: %v", err)
	}
}
