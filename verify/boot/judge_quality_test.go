package boot

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"slipway/verify/boot/ask"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// qualityOf judges a submission that started and was asked.
func qualityOf(r Rehearsal, answers []ask.Answer, drafts *ask.Acceptance) report.GateResult {
	o := &observed{rehearsal: &r, Measured: &report.Measured{Shrunk: r.Shrunk}, replied: true, answers: answers, drafts: drafts}
	v := o.judgeQuality()
	return v.Result("quality")
}

// answered are right, wrong and failed answers, with options or without.
func answered(right, wrong, failed int, options bool) (all []ask.Answer) {
	text := "What is it?"
	if options {
		text += "\nA. a\nB. b\nC. c\nD. d\n"
	}
	for i := range right + wrong + failed {
		a := ask.Answer{Question: ask.Question{ID: fmt.Sprint(i), Question: text, Answer: "B"}, Content: "B"}
		switch {
		case i >= right+wrong:
			a.Failed = errors.New("HTTP 500")
		case i >= right:
			a.Content = "C"
		}
		all = append(all, a)
	}
	return all
}

// Without a floor nobody knows how good answers have to be: what is no better than
// chance fails, what is better passes, and where chance is unknown nothing is
// decided.
func TestAnswersWithoutFloor(t *testing.T) {
	const give = "the profile has no floor: --floor X, the least share of right answers, decides quality"
	for name, test := range map[string]struct {
		answers []ask.Answer
		chance  float64
		floor   float64
		status  report.Status
		say     string
	}{
		"no chance, bad":     {answered(0, 40, 0, false), 0, 0, report.Undecided, give},
		"no chance, good":    {answered(40, 0, 0, false), 0, 0, report.Undecided, give},
		"none":               {nil, 0, 0, report.Undecided, give},
		"options, good":      {answered(30, 10, 0, true), 0, 0, report.Pass, "more than chance is all that is asked"},
		"options, bad":       {answered(10, 30, 0, true), 0, 0, report.Fail, "cannot be told from guessing"},
		"options, few":       {answered(1, 3, 0, true), 0, 0, report.Undecided, give},
		"options of some":    {append(answered(2, 38, 0, false), answered(2, 0, 0, true)...), 0, 0, report.Undecided, give},
		"a given chance":     {answered(30, 10, 0, false), 0.25, 0, report.Pass, "more than chance is all that is asked"},
		"failed, can be":     {answered(10, 10, 20, true), 0, 0, report.Undecided, "with the answers to the 20 requests that failed it could be better than guessing"},
		"failed, can not be": {answered(0, 39, 1, true), 0, 0, report.Fail, "cannot be told from guessing"},
		"failed, floor":      {answered(19, 20, 1, true), 0, 0.5, report.Undecided, "with the answers to the 1 request that failed it could reach the floor of 0.5000"},
		"a floor":            {answered(40, 0, 0, false), 0, 0.8, report.Pass, "the floor is 0.8000"},
	} {
		g := qualityOf(Rehearsal{Profile: profiles.Profile{Load: profiles.Load{Endpoint: ask.ChatPath}, Quality: &profiles.Quality{Questions: []byte("{}"), Accuracy: test.floor, Chance: test.chance}}}, test.answers, nil)
		if g.Status != test.status || !strings.Contains(findings(g), test.say) {
			t.Errorf("%s: %s\n%s", name, g.Status, findings(g))
		}
	}
}

// A floor within the interval is warned of: few questions decide little.
func TestFloorWithinInterval(t *testing.T) {
	for name, test := range map[string]struct {
		answers []ask.Answer
		warned  bool
	}{
		"few":  {answered(17, 3, 0, true), true},
		"many": {answered(170, 30, 0, true), false},
	} {
		g := qualityOf(Rehearsal{Profile: profiles.Profile{Load: profiles.Load{Endpoint: ask.ChatPath}, Quality: &profiles.Quality{Questions: []byte("{}"), Accuracy: 0.78}}}, test.answers, nil)
		warned := len(g.Findings) == 1 && g.Findings[0].Level == report.Warning && strings.Contains(g.Findings[0].Problem, "the floor lies within the interval")
		if g.Status != report.Pass || warned != test.warned || !warned && len(g.Findings) > 0 {
			t.Errorf("%s: %s\n%s", name, g.Status, findings(g))
		}
		if strings.Contains(findings(g), "the first wrong answer") {
			t.Errorf("%s is diagnosed like a failure:\n%s", name, findings(g))
		}
	}
}

// Drafts that are hardly better than none fail whatever the floor is; others are
// not good without one.
func TestDraftsWithoutFloor(t *testing.T) {
	for name, test := range map[string]struct {
		drafts ask.Acceptance
		floor  float64
		status report.Status
		say    string
	}{
		"random":            {ask.Acceptance{Tokens: 104, Steps: 100}, 0, report.Fail, "the drafts cannot be told from near-random ones"},
		"random, low floor": {ask.Acceptance{Tokens: 120, Steps: 100}, 1.1, report.Fail, "near-random ones, though the floor is no higher"},
		"random, floor":     {ask.Acceptance{Tokens: 120, Steps: 100}, 3, report.Fail, "accepted less than the floor"},
		"better":            {ask.Acceptance{Tokens: 400, Steps: 100}, 0, report.Undecided, "the profile has no floor: --tau X, the least mean acceptance length, decides quality"},
		"floor":             {ask.Acceptance{Tokens: 400, Steps: 100}, 3, report.Pass, "the floor is 3.0000"},
		"failed":            {ask.Acceptance{Tokens: 10, Steps: 10, Failed: 9}, 0, report.Undecided, "with the 9 drafts that failed it could reach a tau of 1.5000"},
		"no step":           {ask.Acceptance{}, 3, report.Fail, "tau 0.0000 (0 tokens in 0 steps)"},
		"one":               {ask.Acceptance{Tokens: 1, Steps: 1, Failed: 1}, 0, report.Undecided, "with the 1 draft that failed it could reach a tau of 1.5000, see gate batch; tau 1.0000 (1 token in 1 step), 0.0000 averaged over prompts, 1 empty draft"},
	} {
		g := qualityOf(Rehearsal{Profile: profiles.Profile{Load: profiles.Load{Endpoint: ask.DraftPath, MaxTokens: 4}, Quality: &profiles.Quality{Continuations: []byte("{}"), Tau: test.floor}}}, nil, &test.drafts)
		if g.Status != test.status || !strings.Contains(findings(g), test.say) {
			t.Errorf("%s: %s\n%s", name, g.Status, findings(g))
		}
	}
}

// An undecided gate says itself what decides it.
func TestQualitySaysWhatDecidesIt(t *testing.T) {
	chat, drafts := profiles.Load{Endpoint: ask.ChatPath}, profiles.Load{Endpoint: ask.DraftPath}
	for say, r := range map[string]Rehearsal{
		"the profile has no public examples: --questions FILE --floor X decides quality by your own":                  {Profile: profiles.Profile{Load: chat}},
		"the profile has no public examples: --questions FILE decides quality by your own, with its floor of 0.4":     {Profile: profiles.Profile{Load: chat, Floor: 0.4}},
		"the profile has no public examples: --continuations FILE --tau X decides quality by your own":                {Profile: profiles.Profile{Load: drafts}},
		"the profile has no public examples: --continuations FILE decides quality by your own, with its floor of 4.6": {Profile: profiles.Profile{Load: drafts, Floor: 4.6}},
		"a twin of 2 of 8 layers; rehearse the real model on a machine that it fits":                                  {Shrunk: "a twin of 2 of 8 layers", Profile: profiles.Profile{Load: chat, Quality: &profiles.Quality{}}},
	} {
		if g := qualityOf(r, nil, nil); g.Status != report.Undecided || g.Notes[0] != "could not be decided: "+say {
			t.Errorf("%s: %q, want %q", g.Status, g.Notes, say)
		}
	}
}

// What is quoted of two long texts shows where they differ.
func TestQuotedDifference(t *testing.T) {
	long := strings.Repeat("same ", 40)
	for _, test := range []struct{ a, b, want string }{
		{"B", "D", `q: "B", and "D"`},
		{long + "one", long + "two", `q: "...same same same same one", and "...same same same same two"`},
		{long, long[:150], `q: "...same same same same same same same same same same same same ...", and "...same same same same "`},
		{"x" + long, "y" + long, fmt.Sprintf("q: %q, and %q", "x"+long[:59]+"...", "y"+long[:59]+"...")},
	} {
		if a := agreement([]string{"q"}, [][2]string{{test.a, test.b}}); a.First != test.want {
			t.Errorf("%s\nwant\n%s", a.First, test.want)
		}
	}
}
