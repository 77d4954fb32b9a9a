package boot

import (
	"fmt"
	"slices"

	"slipway/verify/boot/ask"
	"slipway/verify/report"
	"slipway/verify/words"
)

// judgeQuality decides whether the answers or drafts are good enough. Where they
// are not, its notes say what the numbers look like.
func (o *observed) judgeQuality() verdict {
	quality := o.rehearsal.Profile.Quality
	reason := o.blocked()
	switch {
	case quality == nil && len(o.rehearsal.Golden)+len(o.rehearsal.GoldenDrafts) == 0:
		return undecided("%s", o.howToDecide())
	case reason != "":
		return undecided("%s", reason)
	case o.Shrunk != "":
		return undecided("%s; %s", o.Shrunk, ofTheRealModel)
	}
	var v verdict
	if quality == nil {
		o.Quality = &report.Quality{}
		o.judgeGolden(&v)
		return v.open("%s", o.howToDecide())
	}
	if o.drafts != nil {
		o.Quality = draftQuality(*o.drafts, *quality)
	} else {
		o.Quality = answerQuality(o.answers, *quality)
	}
	var batch, alone int
	o.Quality.Alone, batch, alone = o.aloneAgreement()
	if o.drafts != nil {
		o.judgeTau(&v)
	} else {
		o.judgeAccuracy(&v)
	}
	o.judgeGolden(&v)
	o.judgeAlone(&v, batch, alone)
	return v
}

// ofTheRealModel is the remedy where a twin was started in the place of the model.
const ofTheRealModel = "rehearse the real model on a machine that it fits"

// howToDecide says what quality lacks to be decided, and who can give it: public
// examples, or a floor for those that there are.
func (o *observed) howToDecide() string {
	profile := o.rehearsal.Profile
	file, floor, what := "--questions FILE", "--floor X", "share of right answers"
	if profile.Load.Endpoint == ask.DraftPath {
		file, floor, what = "--continuations FILE", "--tau X", "mean acceptance length"
	}
	switch {
	case profile.Quality != nil:
		return fmt.Sprintf("the profile has no floor: %s, the least %s, decides quality", floor, what)
	case profile.Floor > 0:
		return fmt.Sprintf("the profile has no public examples: %s decides quality by your own, with its floor of %v", file, profile.Floor)
	}
	return fmt.Sprintf("the profile has no public examples: %s %s decides quality by your own", file, floor)
}

// enoughQuestions is from how many answers on a model that cannot be told from
// guessing is one that guesses.
const enoughQuestions = 30

func (o *observed) judgeAccuracy(v *verdict) {
	q := o.Quality
	numbers := fmt.Sprintf("%d right of %d, accuracy %.4f, 95%% interval %.4f to %.4f; %.0f%% parse, %.0f%% are cut off, %d failed; chance is %s",
		q.Right, q.Questions, q.Accuracy, q.Low, q.High, percent(q.Parsed, q.Questions), percent(q.Truncated, q.Questions), q.Failed, chanceText(q.Chance))
	floor := fmt.Sprintf("an accuracy of at least %.4f", q.Floor)
	guesses := q.Chance > 0 && q.Low <= q.Chance
	best, _ := wilson(q.Right+q.Failed, q.Questions)
	switch {
	case q.Failed > 0 && q.Accuracy < q.Floor && float64(q.Right+q.Failed) >= q.Floor*float64(q.Questions):
		v.open("with the answers to the %s that failed it could reach the floor of %.4f, see gate batch; %s", words.Plural(q.Failed, "request"), q.Floor, numbers)
	case q.Failed > 0 && q.Floor == 0 && guesses && best > q.Chance:
		v.open("with the answers to the %s that failed it could be better than guessing, see gate batch; %s", words.Plural(q.Failed, "request"), numbers)
	case q.Accuracy < q.Floor && q.Floor > q.High:
		v.Fail(report.Finding{Problem: "the answers are worse than the floor, and by more than luck", Want: floor, Got: numbers, Hint: o.diagnosis()})
	case q.Accuracy < q.Floor:
		v.Fail(report.Finding{Problem: "the answers are worse than the floor; with so few questions luck could explain it", Want: floor, Got: numbers, Hint: o.diagnosis()})
	case guesses && q.Questions >= enoughQuestions:
		v.Fail(report.Finding{Problem: "the answers cannot be told from guessing" + noHigher(q.Floor), Want: "more than chance", Got: numbers, Hint: o.diagnosis()})
	case q.Floor == 0 && (q.Low <= q.Chance || !chanceKnown(o.answers, *o.rehearsal.Profile.Quality)):
		v.open("%s; %s", o.howToDecide(), numbers)
	case q.Floor == 0:
		v.Note("%s; the profile has no floor: more than chance is all that is asked", numbers)
	default:
		v.Note("%s; the floor is %.4f", numbers, q.Floor)
		if q.Low < q.Floor {
			v.Warn(report.Finding{Problem: "the floor lies within the interval: other questions may go the other way", Want: floor, Got: numbers,
				Hint: "ask more questions, or leave more room above the floor"})
		}
	}
	if !v.Failed() {
		return
	}
	if i := slices.IndexFunc(o.answers, func(a ask.Answer) bool { return a.Failed == nil && !a.Right() }); i >= 0 {
		v.Note("the first wrong answer: question %s, want %s, got %s", o.answers[i].Question.ID, quoted(o.answers[i].Question.Answer), quoted(o.answers[i].Content))
	}
	if guesses {
		v.Note("at chance: a model that guesses gets %.4f; a wrong layout of the codes, a forgotten tied head, scales of another tensor or an untrained part look like this", q.Chance)
	}
	if percent(q.Truncated, q.Questions) >= 20 {
		v.Note("%.0f%% are cut off at %d tokens: a thought that eats the budget looks like this", percent(q.Truncated, q.Questions), o.rehearsal.Profile.Load.MaxTokens)
	}
	if percent(q.Parsed, q.Questions) < 20 {
		v.Note("almost no answer has the form that was asked for: a forgotten tied head or near-random weights look like this")
	}
}

// diagnosis is the remedy that fits the numbers best.
func (o *observed) diagnosis() string {
	q := o.Quality
	switch {
	case percent(q.Failed, q.Questions) >= 20:
		return "answer the requests first: see gate batch"
	case o.blind():
		return "answers do not depend on the image, as gate first-request found: see that image_url parts reach the model"
	case percent(q.Truncated, q.Questions) >= 20:
		return "where the answers make sense, turn thinking off or end the thought before the limit of tokens; where they are noise, compare with the base model: a head that is tied and was dropped looks like this too"
	case percent(q.Parsed, q.Questions) < 20:
		return "compare with the base model: a head that is tied and was dropped, or shifted offsets, leave random weights behind"
	case percent(q.Parsed, q.Questions) < 60:
		return "many answers do not have the form that was asked for: look at the chat template and the system prompt"
	}
	return "compare with the base model on the same questions, layer by layer"
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

func chanceText(chance float64) string {
	if chance == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.4f", chance)
}

// noHigher says of a floor, where there is one, that it does not keep out what
// does not deserve to pass.
func noHigher(floor float64) string {
	if floor == 0 {
		return ""
	}
	return ", though the floor is no higher"
}

// randomTau is a mean acceptance length that near-random drafts have.
const randomTau = 1.5

func (o *observed) judgeTau(v *verdict) {
	q := o.Quality
	numbers := fmt.Sprintf("tau %.4f (%s in %s), %.4f averaged over prompts, %s",
		q.Tau, words.Plural(q.Tokens, "token"), words.Plural(q.Steps, "step"), q.PerPrompt, words.Plural(q.Failed, "empty draft"))
	least := max(q.Floor, randomTau)
	most := q.Tokens + q.Failed*o.rehearsal.Profile.Load.MaxTokens
	switch {
	case q.Tau >= least && q.Floor > 0:
		v.Note("%s; the floor is %.4f", numbers, q.Floor)
		return
	case q.Tau >= least:
		v.open("%s; %s", o.howToDecide(), numbers)
		return
	case q.Failed > 0 && float64(most) >= least*float64(q.Steps):
		v.open("with the %s that failed it could reach a tau of %.4f, see gate batch; %s", words.Plural(q.Failed, "draft"), least, numbers)
		return
	}
	f := report.Finding{Problem: "the drafts are accepted less than the floor", Want: fmt.Sprintf("tau of at least %.4f", least), Got: numbers,
		Hint: "compare with the base drafter's own drafts on the same contexts"}
	if q.Tau >= q.Floor {
		f.Problem = "the drafts cannot be told from near-random ones" + noHigher(q.Floor)
	}
	if q.Tau < randomTau {
		f.Hint = "compare with the base model: a head that is tied and was dropped, shifted offsets, or padding without a mask leave near-random drafts"
		v.Note("hardly a drafted token is accepted: near-random weights look like this")
	}
	v.Fail(f)
}

// judgeAlone compares the batch with the same requests alone. Another answer
// alone may be rounding; more right answers are not.
func (o *observed) judgeAlone(v *verdict, batch, alone int) {
	a := o.Quality.Alone
	if a == nil {
		return
	}
	what, enough := "right answers", max(3, a.Compared/4)
	if o.drafts != nil {
		what, enough = "accepted ids", max(2*a.Compared, batch/4)
	}
	v.Note("%d of %d requests were answered the same alone and in the batch, with %d and %d %s", a.Same, a.Compared, alone, batch, what)
	if alone-batch >= enough {
		v.Fail(report.Finding{
			Problem: fmt.Sprintf("requests that are answered well alone are not when others are answered with them: %d %s alone, %d in the batch", alone, what, batch),
			Want:    "the same in both", Got: a.First,
			Hint: "padding on the left without an attention mask, or without shifted positions, looks like this",
		})
	}
}
