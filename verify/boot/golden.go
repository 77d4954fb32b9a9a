package boot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/boot/ask"
	"slipway/verify/report"
)

// goldenPair is a reference and the answer to the same question.
type goldenPair struct {
	reference ask.Reference
	answer    ask.Answer
}

// goldenQuestions pairs the references with their questions: their own, or the
// public ones of the same id, which alone have the images. It is an error where
// nothing can be compared.
func (r *Rehearsal) goldenQuestions(e examples) ([]goldenPair, error) {
	if drafts := r.Profile.Load.Endpoint == ask.DraftPath; drafts && len(r.Golden) > 0 || !drafts && len(r.GoldenDrafts) > 0 {
		return nil, fmt.Errorf("compare with golden ones: answers are of a chat endpoint and drafts of %s, and the profile asks %s", ask.DraftPath, r.Profile.Load.Endpoint)
	}
	if len(r.Golden) == 0 {
		return nil, nil
	}
	byID := map[string]ask.Question{}
	for _, q := range e.questions {
		byID[q.ID] = q
	}
	var pairs []goldenPair
	for _, reference := range r.Golden {
		q, known := byID[reference.ID]
		if reference.Question != "" && (reference.Question != q.Question || len(reference.Images) == 0) {
			q, known = ask.Question{ID: reference.ID, Question: reference.Question, Answer: q.Answer}, true
		}
		if known && (reference.Question == "" || slices.Equal(reference.Images, q.Shown())) {
			pairs = append(pairs, goldenPair{reference, ask.Answer{Question: q}})
		}
	}
	if len(pairs) == 0 {
		return nil, manifest.WithHint(fmt.Errorf("compare with golden answers: none of the %d has its question, or the id of a public one", len(r.Golden)),
			"write them again with slipway weights golden")
	}
	return pairs, nil
}

// askGolden asks what the references are answers to, with token ids where the
// server knows how to say them.
func (s *session) askGolden(ctx context.Context, o *observed, pairs []goldenPair) error {
	if len(pairs) == 0 || s.Shrunk != "" {
		return nil
	}
	var questions []ask.Question
	for _, pair := range pairs {
		questions = append(questions, pair.answer.Question)
	}
	load := s.requestLoad()
	load.Temperature, load.IDs = 0, true
	answers, err := ask.All(ctx, s.server, questions, load)
	if err == nil && !slices.ContainsFunc(answers, func(a ask.Answer) bool { return a.Failed == nil }) {
		load.IDs = false // a server may refuse what it does not know
		answers, err = ask.All(ctx, s.server, questions, load)
	}
	for i := range answers {
		pairs[i].answer = answers[i]
	}
	o.golden = pairs
	return err
}

// goldenAgreement compares answers with references: by token ids where both have
// some, else by text. An answer that was cut off is compared as far as it goes.
func goldenAgreement(golden []goldenPair) (a *report.Agreement, byIDs int) {
	var names []string
	var pairs [][2]string
	for _, pair := range golden {
		got, want := strings.TrimSpace(pair.answer.Content), strings.TrimSpace(pair.reference.Answer)
		if pair.reference.Finish == "length" && strings.HasPrefix(got, want) || pair.answer.Finish == "length" && strings.HasPrefix(want, got) {
			got = want
		}
		if pair.answer.Failed != nil {
			got = "no answer: " + pair.answer.Failed.Error()
		}
		if ids, wanted := pair.answer.IDs, pair.reference.Tokens; pair.answer.Failed == nil && len(ids) > 0 && len(wanted) > 0 {
			byIDs++
			// Whether the token that ended the answer is there is a matter of taste.
			shorter := min(len(ids), len(wanted))
			cut := pair.answer.Finish == "length" || pair.reference.Finish == "length" || max(len(ids), len(wanted)) == shorter+1
			if same := slices.Equal(ids[:shorter], wanted[:shorter]) && (cut || len(ids) == len(wanted)); !same && got == want {
				got, want = fmt.Sprint(ids), fmt.Sprint(wanted)
			} else if same {
				got = want
			}
		}
		names, pairs = append(names, "question "+pair.reference.ID), append(pairs, [2]string{got, want})
	}
	return agreement(names, pairs), byIDs
}

// goldenDraft is a reference and how the request for the same draft went. Its
// step's target is the reference.
type goldenDraft struct {
	id   string
	step ask.DraftStep
	ask.Exchange
}

// askGoldenDrafts asks for the drafts of the references, each as long as its own.
func (s *session) askGoldenDrafts(ctx context.Context, o *observed) {
	if s.Shrunk != "" || len(s.GoldenDrafts) == 0 {
		return
	}
	var steps []ask.DraftStep
	for _, reference := range s.GoldenDrafts {
		steps = append(steps, ask.DraftStep{Context: reference.Prompt, Target: reference.Draft})
	}
	load := s.requestLoad()
	load.MaxTokens = 0
	for i, x := range ask.Drafts(ctx, s.server, steps, load) {
		o.goldenDrafts = append(o.goldenDrafts, goldenDraft{s.GoldenDrafts[i].ID, steps[i], x})
	}
}

// draftAgreement compares drafts with references, id by id.
func draftAgreement(golden []goldenDraft) *report.Agreement {
	var names []string
	var pairs [][2]string
	for _, d := range golden {
		got, want := fmt.Sprint(d.step.Draft), fmt.Sprint(d.step.Target)
		if d.Failed != nil {
			got = "no draft: " + d.Failed.Error()
		}
		names, pairs = append(names, "draft "+d.id), append(pairs, [2]string{got, want})
	}
	return agreement(names, pairs)
}

func (o *observed) judgeGolden(v *verdict) {
	g, byIDs := goldenAgreement(o.golden)
	what, how := "answers", fmt.Sprintf("%d of them compared by their token ids", byIDs)
	if len(o.goldenDrafts) > 0 {
		g, what, how = draftAgreement(o.goldenDrafts), "drafts", "compared id by id"
	}
	if g == nil {
		return
	}
	o.Quality.Golden = g
	numbers := fmt.Sprintf("%d of %d golden %s are given too, %s", g.Same, g.Compared, what, how)
	if share := o.rehearsal.GoldenShare; g.Share < share {
		v.Fail(report.Finding{Problem: "the " + what + " are not those of the golden file", Want: fmt.Sprintf("%.0f%% of them", 100*share), Got: numbers + "; the first other one: " + g.First,
			Hint: "for weights that were changed on purpose, say with --golden-share how many " + what + " should stay"})
		return
	}
	v.Note("%s", numbers)
}
