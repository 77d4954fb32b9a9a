package boot

import (
	"fmt"
	"slices"

	"slipway/verify/boot/ask"
	"slipway/verify/report"
)

// judgeQuality decides whether the answers or drafts are good enough. Where they
// are not, its notes say what the numbers look like.
func (o *observed) judgeQuality() verdict {
	quality := o.rehearsal.Profile.Quality
	reason := o.blocked()
	switch {
	case quality == nil && len(o.golden) == 0:
		return undecided("the profile has no public examples")
	case reason != "":
		return undecided("%s", reason)
	case o.Shrunk != "":
		return undecided("%s", o.Shrunk)
	}
	var v verdict
	if quality == nil {
		o.Quality = &report.Quality{}
		o.judgeGolden(&v)
		return v.open("the profile has no public examples and no floor")
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
		o.judgeGolden(&v)
	}
	o.judgeAlone(&v, batch, alone)
	return v
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
	if q.Accuracy < q.Floor && float64(q.Right+q.Failed) >= q.Floor*float64(q.Questions) {
		v.open("with the answers to the %d requests that failed it could reach the floor of %.4f, see gate batch; %s", q.Failed, q.Floor, numbers)
		return
	}
	switch {
	case q.Accuracy < q.Floor && q.Floor > q.High:
		v.Fail(report.Finding{Problem: "the answers are worse than the floor, and by more than luck", Want: floor, Got: numbers, Hint: o.diagnosis()})
	case q.Accuracy < q.Floor:
		v.Fail(report.Finding{Problem: "the answers are worse than the floor; with so few questions luck could explain it", Want: floor, Got: numbers, Hint: o.diagnosis()})
	case guesses && q.Questions >= enoughQuestions:
		v.Fail(report.Finding{Problem: "the answers cannot be told from guessing, though the floor is no higher", Want: "more than chance", Got: numbers, Hint: o.diagnosis()})
	default:
		v.Note("%s; the floor is %.4f", numbers, q.Floor)
		if q.Low < q.Floor {
			v.Note("the floor lies within the interval: other questions may go the other way")
		}
	}
	if len(v.Findings) == 0 {
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

// randomTau is a mean acceptance length that near-random drafts have.
const randomTau = 1.5

func (o *observed) judgeTau(v *verdict) {
	q := o.Quality
	numbers := fmt.Sprintf("tau %.4f (%d tokens in %d steps), %.4f averaged over prompts, %d empty drafts", q.Tau, q.Tokens, q.Steps, q.PerPrompt, q.Failed)
	if q.Tau >= q.Floor {
		v.Note("%s; the floor is %.4f", numbers, q.Floor)
		return
	}
	if most := q.Tokens + q.Failed*o.rehearsal.Profile.Load.MaxTokens; float64(most) >= q.Floor*float64(q.Steps) {
		v.open("with the %d drafts that failed it could reach the floor of %.4f, see gate batch; %s", q.Failed, q.Floor, numbers)
		return
	}
	hint := "compare with the base drafter's own drafts on the same contexts"
	if q.Tau < randomTau {
		hint = "compare with the base model: a head that is tied and was dropped, shifted offsets, or padding without a mask leave near-random drafts"
		v.Note("hardly a drafted token is accepted: near-random weights look like this")
	}
	v.Fail(report.Finding{Problem: "the drafts are accepted less than the floor", Want: fmt.Sprintf("tau of at least %.4f", q.Floor), Got: numbers, Hint: hint})
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
