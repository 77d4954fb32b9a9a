//go:build unix

package boot

import (
	"fmt"
	"strings"
	"testing"

	"slipway/verify/boot/ask"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// goldenDrafts are n that the test server gives, of as many ids as asked for.
func goldenDrafts(n, ids int) (all []ask.DraftReference) {
	for i := range n {
		r := ask.DraftReference{ID: fmt.Sprint(i), Prompt: []int32{9, int32(20 * i)}}
		for id := range ids {
			r.Draft = append(r.Draft, int32(20*i+id+1))
		}
		all = append(all, r)
	}
	return all
}

// Drafts are compared id by id, whatever the profile's length of a draft is: the
// same ones pass, those of another model or of a server that pads do not.
func TestGoldenDrafts(t *testing.T) {
	without := func(p *profiles.Profile) { p.Quality = nil }
	other := goldenDrafts(10, 4)
	other[3].Draft[2] = 7
	for name, test := range map[string]struct {
		fault   string
		golden  []ask.DraftReference
		share   float64
		profile func(*profiles.Profile)
		status  report.Status
		same    int
		say     string
	}{
		"the same":               {"", goldenDrafts(10, 4), 1, nil, report.Pass, 10, "10 of 10 golden drafts are given too, compared id by id"},
		"longer ones":            {"", goldenDrafts(10, 6), 1, nil, report.Pass, 10, "10 of 10 golden drafts"},
		"one id is another":      {"", other, 1, nil, report.Fail, 9, `draft 3: "[61 62 63 64]", and "[61 62 7 64]"`},
		"as many as may be":      {"", other, 0.9, nil, report.Pass, 9, "9 of 10 golden drafts"},
		"without a profile's":    {"", goldenDrafts(10, 4), 1, without, report.Undecided, 10, "10 of 10 golden drafts"},
		"another model, without": {"random", goldenDrafts(10, 4), 0, without, report.Fail, 0, "the drafts are not those of the golden file"},
		"padding, without":       {"pads", goldenDrafts(16, 4), 0, without, report.Fail, 0, "the drafts are not those of the golden file"},
		"no draft at all":        {"short", goldenDrafts(10, 4), 0, without, report.Undecided, -1, "the first requests failed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := testSubmission{fault: test.fault, drafts: true, profile: test.profile}.rehearsal(t, true)
			r.GoldenDrafts, r.GoldenShare = test.golden, test.share
			measured, gates := run(t, r)
			if g := gates["quality"]; g.Status != test.status || !strings.Contains(findings(g), test.say) {
				t.Errorf("gate %s\n%s", g.Status, findings(g))
			}
			if test.same < 0 {
				return
			}
			if g := measured.Quality.Golden; g == nil || g.Compared != len(test.golden) || g.Same != test.same && test.fault == "" {
				t.Errorf("golden %+v", g)
			}
		})
	}
	r := testSubmission{}.rehearsal(t, true)
	r.GoldenDrafts = goldenDrafts(1, 4)
	if _, _, err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "and the profile asks /v1/chat/completions") {
		t.Errorf("of a chat server: %v", err)
	}
}

// Without examples a drafter is asked for drafts after ids that it knows. How good
// they are, and how long the graded load takes, is not decided by them.
func TestMadeUpDrafts(t *testing.T) {
	without := func(p *profiles.Profile) { p.Quality, p.Floor, p.Load.GradedTokens = nil, 4, 1<<40 }
	r := testSubmission{fault: "few ids", drafts: true, profile: without, change: func(r *Rehearsal) { r.Vocabulary = 10 }}.rehearsal(t, true)
	_, gates := run(t, r)
	if got := failing(gates); len(got) > 0 {
		t.Errorf("failed: %v\n%s", got, findings(gates[got[0]]))
	}
	for gate, say := range map[string]string{
		"quality":  "the profile has no public examples",
		"deadline": "with a tau of 4, the profile's floor, the graded 1099511627776 tokens take 274877906944 drafts: ",
	} {
		if g := gates[gate]; g.Status != report.Undecided || !strings.Contains(findings(g), say) {
			t.Errorf("%s: %s\n%s", gate, g.Status, findings(g))
		}
	}
	for _, gate := range []string{"first-request", "batch", "still-healthy"} {
		if gates[gate].Status != report.Pass {
			t.Errorf("%s: %s\n%s", gate, gates[gate].Status, findings(gates[gate]))
		}
	}
	r = testSubmission{fault: "few ids", drafts: true, profile: without}.rehearsal(t, true)
	if _, gates := run(t, r); gates["first-request"].Status != report.Fail {
		t.Errorf("the twin that nobody says the vocabulary of: %s", gates["first-request"].Status)
	}
	for _, vocabulary := range []int64{0, 1, 10, 512, 1 << 40} {
		for i := range 64 {
			for _, id := range madeUpContinuation(i, vocabulary).Prompt {
				if id < 0 || id >= smallIDs || vocabulary > 0 && int64(id) >= vocabulary {
					t.Fatalf("id %d of a vocabulary of %d", id, vocabulary)
				}
			}
		}
	}
}

// Continuations in ids of another vocabulary are no fault of the server: it is not
// started, nor is it where one has nothing to be measured along.
func TestContinuationsOfAnotherVocabulary(t *testing.T) {
	none := func(p *profiles.Profile) { p.Quality.Continuations = []byte(`{"id":"1","prompt":[1]}`) }
	for name, test := range map[string]struct {
		largest  int64
		examples string
		profile  func(*profiles.Profile)
		want     string
	}{
		"profile's":       {90, "", nil, "read the profile's continuations: line 1: id 90 is beyond vocab_size 90 of config.json"},
		"own":             {54, "own.jsonl", nil, "read own.jsonl: line 1: id 54 is beyond vocab_size 54 of config.json"},
		"no continuation": {0, "", none, "read the profile's continuations: line 1: it has no continuation, which drafts are measured against"},
	} {
		r := testSubmission{drafts: true, profile: test.profile, change: func(r *Rehearsal) { r.Largest, r.Examples = test.largest, test.examples }}.rehearsal(t, true)
		r.Step = func(format string, args ...any) { t.Errorf("%s: "+format, append([]any{name}, args...)...) }
		if _, _, err := r.Run(t.Context()); err == nil || err.Error() != test.want {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
	r := testSubmission{drafts: true, change: func(r *Rehearsal) { r.Largest = 91 }}.rehearsal(t, true)
	if _, gates := run(t, r); gates["quality"].Status != report.Pass {
		t.Errorf("of its own vocabulary: %s", findings(gates["quality"]))
	}
}

// What does not start on a machine that submissions are not for says nothing of
// them.
func TestForeignMachine(t *testing.T) {
	const script = "echo 'serve: cannot execute binary file: Exec format error'; exit 126"
	for foreign, want := range map[string]report.Status{"": report.Fail, "darwin/arm64": report.Undecided} {
		r := testSubmission{script: script, change: func(r *Rehearsal) { r.Foreign = foreign }}.rehearsal(t, true)
		_, gates := run(t, r)
		startup := gates["startup"]
		if startup.Status != want || foreign != "" && !strings.Contains(startup.Notes[0], "this machine, which runs darwin/arm64, and submissions are for linux/amd64: the server ended before it was healthy") {
			t.Errorf("%q: %s\n%s", foreign, startup.Status, findings(startup))
		}
		if quality := gates["quality"]; quality.Status != report.Undecided {
			t.Errorf("%q: quality %s", foreign, quality.Status)
		}
	}
}
