package boot

import (
	"fmt"
	"math"
	"strings"
	"time"

	"slipway/verify/report"
	"slipway/verify/words"
)

// project scales the sample that was measured to the graded load, in seconds on
// this machine:
//
//	chat       first + batch * graded/sampled
//	drafting   sample * all_tokens/sample_tokens + first
//
// The first request counts once and is never scaled. Of a sample in which
// requests failed, those that were answered count: a failure is no work done, and
// of a failed draft's step only one token came for nothing. ok is false where the
// profile does not say how much is graded.
func (o *observed) project() (p report.Projection, ok bool) {
	load := o.rehearsal.Profile.Load
	first := o.First[0].Took
	p.Limit = load.TotalSeconds
	tokens, requests := o.Batch.Tokens-o.Batch.Failed, o.Batch.Requests-o.Batch.Failed
	switch {
	case o.drafts != nil && load.GradedTokens > 0 && tokens > 0:
		p.Seconds = o.Batch.Seconds*float64(load.GradedTokens)/float64(tokens) + first
		p.Formula = fmt.Sprintf("%.4g s * %d/%d tokens + %.3g s of the first request", o.Batch.Seconds, load.GradedTokens, tokens, first)
	case o.drafts == nil && load.GradedRequests > 0 && requests > 0:
		p.Seconds = first + o.Batch.Seconds*float64(load.GradedRequests)/float64(requests)
		p.Formula = fmt.Sprintf("%.3g s of the first request + %.4g s * %d/%d requests", first, o.Batch.Seconds, load.GradedRequests, requests)
	default:
		return p, false
	}
	return p, true
}

// leastMargin is the share of the limit that should be left.
const leastMargin = 0.2

// judgeDeadline decides whether the graded load ends in time.
func (o *observed) judgeDeadline() verdict {
	var v verdict
	reason := o.blocked()
	switch {
	case reason != "":
		return undecided("%s", reason)
	case o.Shrunk != "":
		return undecided("%s; %s", o.Shrunk, ofTheRealModel)
	case o.ended != "":
		return undecided("the server ended under load: see gate batch")
	case o.Batch.Failed == o.Batch.Requests:
		return undecided("no request was answered: see gate batch")
	}
	o.judgeMemory(&v)
	scaled := o.scaleTo(o.rehearsal.Profile.Device)
	p, known := o.project()
	switch {
	case o.madeUp:
		return o.unknownLoad(v, scaled, "the profile has no public examples, and the requests that were made up are not those that are graded")
	case !known:
		return o.unknownLoad(v, scaled, "the profile does not say how large the graded load is")
	}
	if o.late != "" {
		p.Seconds = math.Max(p.Seconds, p.Limit)
	}
	p.Seconds *= scaled.factor
	p.Device = scaled.text
	o.Projection = &p
	margin := (p.Limit - p.Seconds) / p.Limit
	v.Note("%s = %.0f s of %.0f s, a margin of %.0f%%", p.Formula, p.Seconds, p.Limit, 100*margin)
	if scaled.text != "" {
		v.Note("%s", scaled.text)
	}
	if o.drafts != nil {
		budget := p.Limit * float64(o.Batch.Tokens) / float64(o.rehearsal.Profile.Load.GradedTokens)
		v.Note("the sample of %s took %.4g s of a budget of %.0f s", words.Plural(o.Batch.Tokens, "token"), o.Batch.Seconds*scaled.factor, budget)
	}
	finding := report.Finding{Path: serveScript, Want: fmt.Sprintf("at most %.0f s", p.Limit), Got: fmt.Sprintf("%s = %.0f s", p.Formula, p.Seconds),
		Hint: fmt.Sprintf("measure tokens a second at %d at a time: batch what is asked together", o.Batch.Concurrency)}
	switch {
	case scaled.blind:
		return v.open("%s", scaled.text)
	case p.Seconds > p.Limit && scaled.slower:
		return v.open("%.0f s of %.0f s without the accelerator that the profile has: run it there", p.Seconds, p.Limit)
	case p.Seconds > p.Limit:
		finding.Problem = "the graded load takes longer than it may"
		v.Fail(finding)
	case margin < leastMargin && !scaled.slower:
		finding.Problem = fmt.Sprintf("the margin is %.0f%% of the time there is", 100*margin)
		v.Warn(finding)
	}
	return v
}

// judgeMemory compares the weights with the memory of the grader's accelerator:
// what does not fit is read again and again, or not at all.
func (o *observed) judgeMemory(v *verdict) {
	device := o.rehearsal.Profile.Device
	if device == nil || device.MemoryBytes == 0 {
		return
	}
	var weights int64
	for _, file := range o.rehearsal.Files {
		if strings.HasSuffix(file.Path, ".safetensors") && !o.rehearsal.Unused[file.Path] {
			weights += file.Size
		}
	}
	if weights <= device.MemoryBytes {
		v.Note("%d bytes of weights, and %s has %d of memory: what a server makes of them at the start, and its cache, come on top", weights, device.Name, device.MemoryBytes)
		return
	}
	v.Warn(report.Finding{Path: serveScript, Problem: "the weights are larger than the memory of " + device.Name, Want: fmt.Sprintf("at most %d bytes", device.MemoryBytes),
		Got: fmt.Sprintf("%d bytes", weights), Hint: "what was measured here says nothing of a card that they do not fit: store fewer bits a weight"})
}

// unknownLoad says how fast it is, which is all that can be said.
func (o *observed) unknownLoad(v verdict, scaled scaling, why string) verdict {
	b, load := o.Batch, o.rehearsal.Profile.Load
	each := b.Seconds * scaled.factor / float64(b.Requests-b.Failed)
	v.Note("%.3g requests and %.3g tokens a second at %d at a time: %.0f such requests fit in the %.0f s that the profile gives",
		1/each, float64(b.Tokens)/(b.Seconds*scaled.factor), b.Concurrency, math.Floor(load.TotalSeconds/each), load.TotalSeconds)
	if floor := o.rehearsal.Profile.Floor; o.drafts != nil && floor > 0 && load.GradedTokens > 0 {
		steps := math.Ceil(float64(load.GradedTokens) / floor)
		v.Note("with a tau of %v, the profile's floor, the graded %d tokens take %.0f drafts: %.0f s, if they are like these", floor, load.GradedTokens, steps, steps*each)
	}
	if scaled.text != "" {
		v.Note("%s", scaled.text)
	}
	if o.late != "" && !scaled.slower && !scaled.blind {
		v.Fail(report.Finding{Path: serveScript, Problem: "what was asked here alone takes longer than the whole load may", Want: fmt.Sprintf("at most %s", time.Duration(load.TotalSeconds*1e9)), Got: o.late})
		return v
	}
	return v.open("%s", why)
}
