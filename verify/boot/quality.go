package boot

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slipway/verify/boot/ask"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// wilson returns the 95% confidence interval of a share of which right of n
// were observed (E. B. Wilson, "Probable inference, the law of succession, and
// statistical inference", 1927).
func wilson(right, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959964
	share, count := float64(right)/float64(n), float64(n)
	middle := share + z*z/(2*count)
	spread := z * math.Sqrt(share*(1-share)/count+z*z/(4*count*count))
	scale := 1 + z*z/count
	return max(0, (middle-spread)/scale), min(1, (middle+spread)/scale)
}

// answerQuality counts how good answers are.
func answerQuality(answers []ask.Answer, wanted profiles.Quality) *report.Quality {
	q := &report.Quality{Questions: len(answers), Floor: wanted.Accuracy, Chance: wanted.Chance}
	var guessed float64
	for _, a := range answers {
		if n := a.Question.Options(); n > 0 {
			guessed += 1 / float64(n)
		}
		if a.Failed != nil {
			q.Failed++
			continue
		}
		if a.Right() {
			q.Right++
		}
		if a.Parsed() {
			q.Parsed++
		}
		if a.Finish == "length" {
			q.Truncated++
		}
	}
	if q.Questions > 0 {
		q.Accuracy = float64(q.Right) / float64(q.Questions)
		if q.Chance == 0 {
			q.Chance = guessed / float64(q.Questions)
		}
	}
	q.Low, q.High = wilson(q.Right, q.Questions)
	return q
}

// chanceKnown reports whether it is known of every question what guessing it
// reaches.
func chanceKnown(answers []ask.Answer, wanted profiles.Quality) bool {
	return wanted.Chance > 0 || !slices.ContainsFunc(answers, func(a ask.Answer) bool { return a.Question.Options() == 0 })
}

func draftQuality(a ask.Acceptance, wanted profiles.Quality) *report.Quality {
	return &report.Quality{Floor: wanted.Tau, Tau: a.Tau(), PerPrompt: a.PerPrompt, Steps: a.Steps, Tokens: a.Tokens, Failed: a.Failed}
}

// agreement compares pairs of texts.
func agreement(names []string, pairs [][2]string) *report.Agreement {
	if len(pairs) == 0 {
		return nil
	}
	a := &report.Agreement{Compared: len(pairs)}
	for i, pair := range pairs {
		if pair[0] == pair[1] {
			a.Same++
		} else if a.First == "" {
			from := differAt(pair[0], pair[1])
			a.First = fmt.Sprintf("%s: %s, and %s", names[i], quotedFrom(pair[0], from), quotedFrom(pair[1], from))
		}
	}
	a.Share = float64(a.Same) / float64(a.Compared)
	return a
}

// quotedRunes is how much of a text is quoted.
const quotedRunes = 60

// differAt is from where on two texts are quoted, in runes: from their beginning,
// or, where what differs would be cut off, from a little before it.
func differAt(a, b string) int {
	x, y := []rune(a), []rune(b)
	if max(len(x), len(y)) <= quotedRunes {
		return 0
	}
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	if same < quotedRunes/2 {
		return 0
	}
	return same - quotedRunes/3
}

// quoted is the beginning of a text in quotation marks.
func quoted(text string) string { return quotedFrom(text, 0) }

// quotedFrom is a part of a text in quotation marks, from a rune on.
func quotedFrom(text string, from int) string {
	runes := []rune(text)
	end := min(len(runes), from+quotedRunes)
	part := string(runes[from:end])
	if from > 0 {
		part = "..." + part
	}
	if end < len(runes) {
		part += "..."
	}
	return fmt.Sprintf("%q", part)
}

// aloneAgreement compares what the batch was answered with what the same
// requests were answered alone, and counts the right ones (for drafts: accepted
// ids) of both.
func (o *observed) aloneAgreement() (a *report.Agreement, batch, alone int) {
	var names []string
	var pairs [][2]string
	for _, pair := range o.alone {
		names = append(names, "question "+pair.batch.Question.ID)
		pairs = append(pairs, [2]string{strings.TrimSpace(pair.batch.Content), strings.TrimSpace(pair.alone.Content)})
		if pair.batch.Right() {
			batch++
		}
		if pair.alone.Right() {
			alone++
		}
	}
	for i, pair := range o.aloneDrafts {
		names = append(names, fmt.Sprintf("draft %d", i+1))
		pairs = append(pairs, [2]string{fmt.Sprint(pair[0].Draft), fmt.Sprint(pair[1].Draft)})
		batch += pair[0].Accepted
		alone += pair[1].Accepted
	}
	return agreement(names, pairs), batch, alone
}
